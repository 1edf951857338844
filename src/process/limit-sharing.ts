import type { Config } from '../config/schema/config-schema.ts';
import type { Membership } from './worker-membership.ts';
import type { Clock } from '../core/exchange/attempt-outcome.ts';
import type { ReplicaParts } from './redis-sharing.ts';
import type { Held } from '../sharing/workers/limit-client.ts';
import type { MemoryOptions } from '../store/memory-store.ts';

/** Limits that other processes have a share in, and how they are borrowed here. */
export interface SharedLimits {
  /** For the store. */
  readonly options: Pick<MemoryOptions, 'makeMeter' | 'sharing' | 'isPinnedElsewhere'>;
  /** The store and its gate are there. */
  wire(held: Held): void;
  close(): void;
}

/** Most share their limits with nobody, and get undefined: they need not read what Redis needs. */
export async function shareLimits(
  { state }: Pick<Config, 'state'>,
  { membership, ...parts }: ReplicaParts & { readonly membership: Membership | undefined },
): Promise<SharedLimits | undefined> {
  if (state.store === 'memory') return membership && shareAmongWorkers(membership, parts.clock);
  const { shareByRedis } = await import('./redis-sharing.ts');
  return shareByRedis(state, parts);
}

/** Lent by the primary of several workers. */
export function shareAmongWorkers({ leaseholder }: Membership, clock: Clock): SharedLimits {
  return {
    options: {
      makeMeter: (ref, rate) => leaseholder.makeMeter(ref, rate),
      sharing: leaseholder,
      isPinnedElsewhere: true,
    },
    wire: (held) => leaseholder.wire(held, clock.now()),
    close: () => undefined,
  };
}
