/** Limits that replicas share: kept in Redis, which leases tokens to each replica. Loaded only where it is used. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import type { EventSink } from '../../core/events/proxy-events.ts';
import { nestedLimitField } from '../../core/limits/limit-ref.ts';
import type { Clock, Millis, Random } from '../../core/scalars.ts';
import type { LimitSharing } from './limit-sharing.ts';
import { ReplicaLimitClient } from '../../sharing/replicas/replica-limit-client.ts';
import { StoreDegradation } from '../../sharing/redis/store-degradation.ts';
import { RedisBackend } from '../../sharing/redis/redis-backend.ts';
import { RedisQuotas } from '../../sharing/redis/quotas/redis-quotas.ts';
import { QuotaClient } from '../../sharing/quotas/quota-client.ts';
import { backgroundTimer } from './background-timer.ts';
import { RedisKeys } from './redis-keys.ts';
import type { RedisStateConfig } from './redis-location.ts';
import { redisLocation } from './redis-location.ts';
import { WakeTimer } from '../../http/wake-timer.ts';

export interface RedisSharingParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly listen: EventSink;
  /** The configured secret. */
  readonly sealSecret: string | undefined;
  /** The maximum of kept responses, of all replicas. */
  readonly maxResponses: number;
  /** In the configuration in effect. */
  readonly upstreams: () => readonly string[];
}

/** A request for a part of a quota may have to wait for the response of a call before it, too. */
const LEASE_WAIT_FACTOR = 2;
/** How long the end of this process waits until its unused parts of quotas are returned. */
const RETURNED_WITHIN: Millis = 1000;
/** How long the start waits for Redis, so that the first requests find the shared limits. */
const STARTUP_WAIT: Millis = 1000;

/** @throws an Error of node:fs that names the path, when a certificate cannot be read */
export async function shareOverRedis(
  state: RedisStateConfig,
  { clock, random, listen, sealSecret, maxResponses, upstreams }: RedisSharingParts,
): Promise<LimitSharing> {
  const replicaId = `${hostname()}-${process.pid}-${randomBytes(6).toString('base64url')}`;
  const limitClient: ReplicaLimitClient = new ReplicaLimitClient({
    replicaId,
    clock,
    random,
    call: (borrower, call) => backend.lease(borrower, call),
    claim: (borrower) => backend.claim(borrower),
    publishHold: (hold) => backend.publishHold(hold),
    onDecrease: (ref, { cause, from, to }) =>
      listen({ type: 'cut', upstream: ref.upstream, ...nestedLimitField(ref), scope: ref.scope, cause, from, to }),
    rearm: () => rearm(),
    onDegraded: (isDegraded) => degradation.setLimitsAlone(isDegraded),
  });
  const degradation = new StoreDegradation((isDegraded) => {
    const cause = isDegraded ? backend.problem : undefined;
    if (!isDegraded) backend.announceRecovery();
    listen({ type: 'store-degraded', store: 'redis', isDegraded, cause });
  });
  const backend: RedisBackend = new RedisBackend({
    location: redisLocation(state),
    prefix: state.prefix,
    timeout: state.timeout,
    clock,
    random,
    onRequest: (op, result, duration) => {
      if (op === 'key' || op === 'delivery' || op === 'quota') degradation.onStoreRequest(result, clock.now());
      listen({ type: 'store-request', store: 'redis', op, result, duration });
    },
    onBroadcast: (broadcast) => limitClient.onBroadcast(broadcast, clock.now()),
    onHold: (hold) => limitClient.applyHold(hold, clock.now()),
    onKeyNews: (message) => keys.onNews(message),
    onPubSubLost: (cause) => listen({ type: 'store-deaf', store: 'redis', isDeaf: cause !== undefined, cause }),
    onRecoverySign: (sign) => {
      if (sign === 'connected') degradation.onConnected();
      limitClient.onRecoverySign(sign, clock.now());
    },
  });
  const keys = new RedisKeys({
    connection: backend.connection,
    ...{ prefix: state.prefix, timeout: state.timeout, owner: replicaId, sealSecret, maxResponses },
    ...{ maxKeys: state.maxKeys, clock, upstreams },
    onDecidedLocally: (upstream) => listen({ type: 'key', upstream, event: 'decided_locally' }),
  });
  const { connection } = backend;
  const wallClock = (): Millis => Date.now();
  const redisQuotas = new RedisQuotas({ connection, prefix: state.prefix, owner: replicaId, clock, wallClock });
  const quotas = new QuotaClient({
    clock,
    call: redisQuotas.call,
    schedule: backgroundTimer,
    isKeeperForgetful: true,
  });
  const timer = new WakeTimer(limitClient, clock);
  let immediate: NodeJS.Immediate | undefined;
  const rearm = (): void => {
    const at = limitClient.nextWake() ?? Number.POSITIVE_INFINITY;
    if (at > clock.now()) return timer.rearm();
    // A request is waiting: setImmediate fires before any timer.
    immediate ??= setImmediate(() => {
      immediate = undefined;
      limitClient.wake(clock.now());
      timer.rearm();
    });
  };
  await backend.open(STARTUP_WAIT);
  return {
    storeOptions: { makeMeter: (ref, rate) => limitClient.makeMeter(ref, rate), sharingHooks: limitClient },
    quotas: { client: quotas, leaseWait: LEASE_WAIT_FACTOR * state.timeout },
    bind: (binding) => {
      limitClient.bind(binding);
      quotas.bind(binding);
    },
    keys,
    deliveryStore: { connection: backend.connection, prefix: state.prefix, timeout: state.timeout, owner: replicaId },
    close: async () => {
      quotas.close();
      await Promise.race([
        new Promise<void>((resolve) => {
          quotas.whenIdle(resolve);
        }),
        setTimeout(RETURNED_WITHIN, undefined, { ref: false }),
      ]);
      await keys.close();
      timer.stop();
      clearImmediate(immediate);
      backend.close();
    },
  };
}
