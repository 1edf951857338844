/** Limits that replicas share: kept in Redis, borrowed of it here. Loaded only where they are. */
import { randomBytes } from 'node:crypto';
import type { Config } from '../config/schema/config-schema.ts';
import { hostname } from 'node:os';
import type { Listen } from '../core/events/proxy-events.ts';
import { nameNested } from '../core/limits/limit-ref.ts';
import type { Clock, Millis, Random } from '../core/exchange/attempt-outcome.ts';
import { readClientTls } from '../http/tls/client-tls.ts';
import type { SharedLimits } from './limit-sharing.ts';
import { PoolMember } from '../sharing/replicas/replica-limit-client.ts';
import type { RedisPlace } from '../sharing/redis/redis-connection.ts';
import { RedisPool } from '../sharing/redis/redis-backend.ts';
import { WakeTimer } from '../http/wake-timer.ts';

export type RedisState = Extract<Config['state'], { store: 'redis' }>;

export interface ReplicaParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly listen: Listen;
}

/** A start waits so long for Redis: a request must not find it unknown that it is there. */
const START_WITHIN: Millis = 1000;

/** @throws an Error of node:fs that names the path, when a certificate cannot be read */
export async function shareByRedis(state: RedisState, { clock, random, listen }: ReplicaParts): Promise<SharedLimits> {
  const member: PoolMember = new PoolMember({
    holder: `${hostname()}-${process.pid}-${randomBytes(6).toString('base64url')}`,
    clock,
    random,
    call: (borrower, call) => pool.call(borrower, call),
    hold: (hold) => pool.hold(hold),
    onCut: (ref, { cause, from, to }) =>
      listen({ type: 'cut', upstream: ref.upstream, ...nameNested(ref), scope: ref.scope, cause, from, to }),
    rearm: () => rearm(),
    onAway: (isDegraded) => {
      const cause = isDegraded ? pool.problem : undefined;
      if (!isDegraded) pool.tellBack();
      listen({ type: 'store-degraded', store: 'redis', isDegraded, cause });
    },
  });
  const pool: RedisPool = new RedisPool({
    place: placeOf(state),
    prefix: state.prefix,
    timeout: state.timeout,
    clock,
    random,
    onRequest: (op, result, duration) => listen({ type: 'store-request', store: 'redis', op, result, duration }),
    onNews: (news) => member.hearNews(news, clock.now()),
    onHold: (hold) => member.hearHold(hold, clock.now()),
    onDeaf: (cause) => listen({ type: 'store-deaf', store: 'redis', isDeaf: cause !== undefined, cause }),
    onSign: (sign) => member.hearSign(sign, clock.now()),
  });
  const timer = new WakeTimer(member, clock);
  let immediate: NodeJS.Immediate | undefined;
  const rearm = (): void => {
    const at = member.nextWake() ?? Number.POSITIVE_INFINITY;
    if (at > clock.now()) return timer.rearm();
    // Somebody waits: no timer is as soon as this.
    immediate ??= setImmediate(() => {
      immediate = undefined;
      member.wake(clock.now());
      timer.rearm();
    });
  };
  await pool.open(START_WITHIN);
  return {
    options: { makeMeter: (ref, rate) => member.makeMeter(ref, rate), sharing: member },
    wire: (held) => member.wire(held),
    close: () => {
      timer.stop();
      clearImmediate(immediate);
      pool.close();
    },
  };
}

function placeOf({ url, username, password, sentinelUsername, sentinelPassword, tls }: RedisState): RedisPlace {
  const { kind, nodes, db } = url;
  return {
    kind,
    nodes,
    db,
    name: kind === 'sentinel' ? url.name : undefined,
    username: username ?? url.username,
    password: password ?? url.password,
    sentinelUsername,
    sentinelPassword,
    tls: url.tls ? readClientTls(tls) : undefined,
  };
}
