import type { SharedKeyCounts } from '../../core/events/store-events.ts';
import type { ClientQuotaInspection } from '../../core/quota/clients/client-quota-inspection.ts';
import type { KeyInspection } from '../../core/idempotency/key-inspection.ts';
import type { WriteKeys } from '../../http/request/exchange-context.ts';
import type { MemoryStoreOptions } from '../../store/memory-store-options.ts';
import { computeQuotaCountCapacity } from '../../config/compile/capacities.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { WorkerMembership } from '../worker-membership.ts';
import type { QuotaBinding, QuotaClient } from '../../sharing/quotas/quota-client.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { SharedDeliveryStore } from '../deliveries/open-shared-deliveries.ts';
import type { RedisSharingParts } from './redis-sharing.ts';

/** Limits that are shared with other processes. */
export interface LimitSharing {
  /** For the store. */
  readonly storeOptions: Pick<MemoryStoreOptions, 'makeMeter' | 'sharingHooks' | 'isPinnedElsewhere'>;
  /** Where parts of quotas are leased, and how long a request waits for one at least. Undefined: this process counts them alone. */
  readonly quotas?: {
    readonly client: QuotaClient;
    readonly leaseWait: Millis;
    /** Undefined if the primary has the counts. */
    readonly inspection?: ClientQuotaInspection;
  };
  /** Called when the store and its gate exist. */
  bind(binding: QuotaBinding): void;
  /** The keys of writes; undefined if they are not shared there. */
  readonly keys?: {
    readonly writeKeys: WriteKeys;
    readonly inspection: KeyInspection;
    readonly counts: readonly SharedKeyCounts[];
  };
  /** Where replicas store deliveries, each of several workers too; undefined if they share no store. */
  readonly deliveryStore?: SharedDeliveryStore;
  close(): Promise<void>;
}

/** What an operator sees of it. */
export type SharedInspections = Pick<LimitSharing, 'keys' | 'quotas'>;

/** Undefined for a process that shares no limits. Loads the Redis modules only where they are used. */
export async function shareLimits(
  config: Config,
  {
    membership,
    configInEffect,
    ...parts
  }: Pick<RedisSharingParts, 'clock' | 'random' | 'listen'> & {
    readonly membership: WorkerMembership | undefined;
    readonly configInEffect: () => Config;
  },
): Promise<LimitSharing | undefined> {
  const { state, secret: sealSecret, limits } = config;
  if (state.store !== 'redis') return membership && shareThroughPrimary(membership, parts.clock);
  const { shareOverRedis } = await import('./redis-sharing.ts');
  return shareOverRedis(state, {
    ...{ ...parts, sealSecret, maxResponses: limits.keptResponses },
    maxClientCounts: () => computeQuotaCountCapacity(configInEffect()),
    upstreams: () => Object.keys(configInEffect().upstreams),
  });
}

/** A primary that hangs does not hold a request for longer. */
const LEASE_WAIT: Millis = 1000;

/** The primary of several workers leases tokens to them. */
export function shareThroughPrimary({ limitClient, quotaClient }: WorkerMembership, clock: Clock): LimitSharing {
  return {
    storeOptions: {
      makeMeter: (ref, rate) => limitClient.makeMeter(ref, rate),
      sharingHooks: limitClient,
      isPinnedElsewhere: true,
    },
    quotas: { client: quotaClient, leaseWait: LEASE_WAIT },
    bind: (binding) => {
      limitClient.bind(binding, clock.now());
      quotaClient.bind(binding);
    },
    close: () => {
      quotaClient.close();
      return Promise.resolve();
    },
  };
}
