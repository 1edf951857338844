/** Quotas that replicas share, with a real Redis. A month does not end during a test, or its count begins anew for all alike. */
import { performance } from 'node:perf_hooks';
import { describe, expect, test } from 'vitest';
import { type CalendarQuotaSettings, CARRIED_RETRY } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { periodId, type QuotaPeriod } from '../../../src/core/quota/calendar/quota-period.ts';
import { QuotaKeeper } from '../../../src/sharing/quotas/quota-keeper.ts';
import type { QuotaCall, QuotaTerms } from '../../../src/sharing/quotas/quota-protocol.ts';
import { RedisQuotas } from '../../../src/sharing/redis/quotas/redis-quotas.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { quotaSettings, UTC_HOUR } from '../../support/core/quota-builders.ts';
import { isUsedUp, type QuotaReplica, startQuotaReplica } from '../../support/quotas/redis-replica.ts';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.ts';
import { testConnection } from '../../support/redis/test-connection.ts';

const HOUR = 3_600_000;
const UTC_MONTH: QuotaPeriod = { kind: 'calendar', unit: 'month', timeZone: 'UTC', offsetAt: () => 0 };
const ROLLING: QuotaPeriod = { kind: 'rolling', length: 24 * HOUR };
const settingsOf = (settings: Partial<CalendarQuotaSettings>): CalendarQuotaSettings =>
  quotaSettings({ period: ROLLING, ...settings });

const startMany = (redis: RedisServer, count: number, settings: CalendarQuotaSettings): Promise<QuotaReplica[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => startQuotaReplica(redis, `replica-${i}`, settings)));

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

/** Each sends as much as it can until all know that the quota is used up. */
async function useUp(replicas: readonly QuotaReplica[]): Promise<number> {
  const areAllDone = (): boolean => replicas.every((each) => isUsedUp(each));
  return sum(await Promise.all(replicas.map((each) => each.send(Number.POSITIVE_INFINITY, areAllDone))));
}

describe('eight replicas', () => {
  test('use up a quota exactly', async () => {
    const redis = await startRedis();
    const replicas = await startMany(redis, 8, settingsOf({ limit: 5000 }));
    let sent = sum(await Promise.all(replicas.map((each) => each.send(400, () => false))));
    expect(sent).toBe(3200);
    await Promise.all(replicas.slice(4).map((each) => each.close()));
    sent += await useUp(replicas.slice(0, 4));
    expect(sent).toBe(5000);
  });

  test('never exceed it when some are killed, and lose only what these had leased', async () => {
    const redis = await startRedis();
    const replicas = await startMany(redis, 8, settingsOf({ limit: 5000 }));
    let isOver = false;
    const sending = replicas.map((each) => each.send(Number.POSITIVE_INFINITY, () => isOver));
    const early = await Promise.all(replicas.slice(0, 2).map((each) => each.send(100, () => isUsedUp(each))));
    for (const each of replicas.slice(0, 2)) each.kill();
    const others = replicas.slice(2);
    const last = useUp(others);
    const sent = await last;
    isOver = true;
    const all = sent + sum(await Promise.all(sending)) + sum(early);
    expect(all).toBeLessThanOrEqual(5000);
    expect(all).toBeGreaterThan(4800);
  });

  test('never exceed it when Redis is restarted without its data', async () => {
    const redis = await startRedis();
    const replicas = await startMany(redis, 8, settingsOf({ limit: 5000 }));
    let sent = sum(await Promise.all(replicas.map((each) => each.send(300, () => false))));
    await redis.restart();
    sent += await useUp(replicas);
    expect(sent).toBeLessThanOrEqual(5000);
    expect(sent).toBeGreaterThan(4500);
  });

  test('use only what they have leased while Redis hangs, and continue after it', async () => {
    const redis = await startRedis();
    const replicas = await startMany(redis, 8, settingsOf({ limit: 5000 }));
    let sent = sum(await Promise.all(replicas.map((each) => each.send(100, () => false))));
    redis.freeze();
    const areAllLost = (): boolean => replicas.every(({ quota }) => quota.isLost);
    const alone = sum(await Promise.all(replicas.map((each) => each.send(Number.POSITIVE_INFINITY, areAllLost))));
    expect(alone).toBeLessThan(1000);
    redis.thaw();
    sent += alone + (await useUp(replicas));
    expect(sent).toBeLessThanOrEqual(5000);
    expect(sent).toBeGreaterThan(4500);
  });
});

describe('a quota of a single client', () => {
  test('is used up exactly by eight replicas, and apart from that of another client', async () => {
    const redis = await startRedis();
    for (const key of ['a', 'b']) {
      const replicas = await startMany(redis, 8, settingsOf({ limit: 500, key }));
      expect(await useUp(replicas)).toBe(500);
    }
  });

  test('is restored by a replica that uses it again after Redis has lost its data', async () => {
    const redis = await startRedis();
    const replicas = await startMany(redis, 2, settingsOf({ limit: 500, key: 'a' }));
    let sent = sum(await Promise.all(replicas.map((each) => each.send(150, () => false))));
    await redis.restart();
    sent += await useUp(replicas);
    expect(sent).toBeLessThanOrEqual(500);
    expect(sent).toBeGreaterThan(400);
  });

  test('is restored only if the replica still knows it: it knows those that were used last', async () => {
    const redis = await startRedis();
    const client = redis.client();
    await client.ping();
    const { connection } = testConnection(client, { channel: 'quotas', timeout: 5000 });
    const parts = { connection, prefix: 'test', owner: '1', clock: performance, wallClock: Date.now };
    let maxClientCounts = 3;
    const redisQuotas = new RedisQuotas({ ...parts, maxClientCounts: () => maxClientCounts });
    const settings = settingsOf({ limit: 10 });
    const lease = (key: string): Promise<QuotaTerms | undefined> => {
      const of = { upstream: 'api', name: settings.name, key, period: periodId(settings.period) };
      const call = { ...of, want: 1, isOrdinary: true, mayUseReserve: false, overdrawn: 0, returns: [], held: 0 };
      return new Promise((resolve) => redisQuotas.call(call, resolve, settings));
    };
    for (const key of ['a', 'b', 'c']) await lease(key);
    maxClientCounts = 2; // a reload
    await lease('d');
    await client.flushall();
    expect(await lease('c')).toMatchObject({ isSettling: true, view: { remaining: 9 } });
    for (const key of ['a', 'b']) {
      const forgotten = await lease(key);
      expect([forgotten?.granted, forgotten?.isSettling, forgotten?.view.remaining]).toEqual([1, undefined, 9]);
    }
  });

  /** Leases one part at a time, and lets `idleFor` pass, in Redis or also here. */
  async function startIdleReplica(settings: CalendarQuotaSettings) {
    const redis = await startRedis({ clock: true });
    const client = redis.client();
    await client.ping();
    let shift = 0;
    const clock = { now: () => performance.now() + shift };
    const { connection } = testConnection(client, { channel: 'quotas', timeout: 5000, clock });
    const redisQuotas = new RedisQuotas({
      ...{ connection, prefix: 'test', owner: '1', clock },
      wallClock: () => Date.now() + shift,
    });
    const of = { upstream: 'api', name: settings.name, key: 'a', period: periodId(settings.period) };
    const call = { ...of, want: 1, isOrdinary: true, mayUseReserve: false, overdrawn: 0, returns: [], held: 0 };
    return {
      lease: () => new Promise<QuotaTerms | undefined>((resolve) => redisQuotas.call(call, resolve, settings)),
      idle: (idleFor: number, isKnownHere: boolean) => {
        redis.shiftClock(idleFor);
        if (isKnownHere) shift = idleFor;
      },
    };
  }

  test.each([
    ['a rolling period', settingsOf({ limit: 1, key: 'a' })],
    ['an hour', quotaSettings({ limit: 1, key: 'a', period: UTC_HOUR })],
  ])('begins anew at once when the client returns after Redis has forgotten its count, in %s', async (_, settings) => {
    const replica = await startIdleReplica(settings);
    expect(await replica.lease()).toMatchObject({ granted: 1 });
    expect(await replica.lease()).toMatchObject({ granted: 0 });
    replica.idle(200 * HOUR, true);
    const terms = await replica.lease();
    expect([terms?.granted, terms?.isSettling]).toEqual([1, undefined]);
  });

  test.each([
    ['a rolling period', settingsOf({ limit: 500, key: 'a' })],
    ['an hour', quotaSettings({ limit: 500, key: 'a', period: UTC_HOUR })],
  ])('grants all that is requested after that, however much was granted before, in %s', async (_, settings) => {
    const replica = await startIdleReplica(settings);
    for (let i = 0; i < 3; i += 1) expect(await replica.lease()).toMatchObject({ granted: 1 });
    replica.idle(200 * HOUR, true);
    for (const remaining of [499, 498]) {
      const terms = await replica.lease();
      expect([terms?.granted, terms?.isSettling, terms?.view.remaining]).toEqual([1, undefined, remaining]);
    }
  });

  test('is not restored from what a replica knows of an ended period', async () => {
    const replica = await startIdleReplica(settingsOf({ limit: 1, key: 'a' }));
    expect(await replica.lease()).toMatchObject({ granted: 1 });
    replica.idle(200 * HOUR, false);
    expect((await replica.lease())?.view.remaining).toBe(1);
  });
});

test('replicas leave the reserve to requests with priority', async () => {
  const redis = await startRedis();
  const [first, second] = await startMany(redis, 2, settingsOf({ limit: 50, reserve: 10 }));
  if (first === undefined || second === undefined) throw new Error('no replica');
  expect(await useUp([first, second])).toBe(40);
  expect(await second.send(10, () => false, true)).toBe(10);
  expect(await first.send(1, () => isUsedUp(first, true), true)).toBe(0);
});

test('replicas share an even pace', async () => {
  const redis = await startRedis();
  // 20 requests a second.
  const replicas = await startMany(redis, 4, settingsOf({ limit: 20 * 24 * 3600, pace: 'even' }));
  const times: number[] = [];
  const sending = replicas.map(async (each) => {
    while (times.length < 40) if ((await each.send(1, () => times.length >= 40)) > 0) times.push(performance.now());
  });
  await Promise.all(sending);
  expect(Number(times[39]) - Number(times[0])).toBeGreaterThan((35 * 1000) / 20);
});

test('a clock of Redis that is set does not add requests', async () => {
  const redis = await startRedis({ clock: true });
  const settings = quotaSettings({ limit: 100, period: UTC_HOUR });
  const [replica] = await startMany(redis, 1, settings);
  if (replica === undefined) throw new Error('no replica');
  expect(await useUp([replica])).toBe(100);
  redis.shiftClock(HOUR);
  // The next hour, by the time of Redis.
  expect(await replica.send(60, () => false)).toBe(60);
  redis.shiftClock(0);
  await replica.close();
  const again = await startQuotaReplica(redis, 'again', settings);
  expect(await useUp([again])).toBeLessThanOrEqual(40);
});

describe('the script', () => {
  test('leaves to other replicas after the reset what they may still send, until they have called', async () => {
    const redis = await startRedis({ clock: true });
    const client = redis.client();
    await client.ping();
    const { connection } = testConnection(client, { channel: 'quotas', timeout: 5000 });
    const settings = quotaSettings({ limit: 3, period: UTC_HOUR });
    const of = { upstream: 'api', name: settings.name, period: periodId(settings.period), isOrdinary: true };
    const lease = (owner: string, call: Partial<QuotaCall> = {}): Promise<QuotaTerms | undefined> => {
      const parts = { connection, prefix: 'test', owner, clock: performance, wallClock: Date.now };
      const all = { ...of, want: 1, mayUseReserve: false, overdrawn: 0, returns: [], held: 0, ...call };
      return new Promise((resolve) => new RedisQuotas(parts).call(all, resolve, settings));
    };
    const untilReset = HOUR - (Date.now() % HOUR);
    redis.shiftClock(untilReset - 2000);
    for (let held = 0; held < 2; held += 1) expect(await lease('first', { held })).toMatchObject({ granted: 1 });
    redis.shiftClock(untilReset + 500);
    expect(await lease('second')).toMatchObject({ granted: 1, view: { remaining: 2 } });
    const waiting = { untilReset: CARRIED_RETRY, delay: CARRIED_RETRY };
    expect(await lease('second', { held: 1 })).toMatchObject({ granted: 0, ordinary: waiting, view: { remaining: 2 } });
    // It has two admitted requests, and does not know of the reset before this reply.
    const before = await lease('first', { want: 0, held: 2, since: 1 });
    expect(before).toMatchObject({ view: { remaining: 2 } });
    expect(await lease('second', { held: 1 })).toMatchObject({ granted: 0, ordinary: waiting, view: { remaining: 2 } });
    const known = { want: 0, overdrawn: 1, held: 1, since: before?.since };
    expect(await lease('first', known)).toMatchObject({ view: { remaining: 1 } });
    expect(await lease('second', { held: 1 })).toMatchObject({ granted: 1, view: { remaining: 0 } });
  });

  test.each([
    ['a month', quotaSettings({ limit: 200, reserve: 40, period: UTC_MONTH })],
    ['a rolling period', settingsOf({ limit: 200, reserve: 40 })],
  ] as const)('grants as the keeper of workers does in %s', async (_title, settings) => {
    const redis = await startRedis();
    const random = seededRandom(1);
    const keeper = new QuotaKeeper({ wallTimeAt: () => Date.now() });
    keeper.configure([{ name: 'api', quotas: [settings] }]);
    const client = redis.client();
    await client.ping();
    const { connection } = testConnection(client, { channel: 'quotas', timeout: 5000 });
    const members = [1, 2, 3].map((worker) => {
      keeper.join(worker);
      const parts = { connection, prefix: 'test', owner: String(worker), clock: performance, wallClock: Date.now };
      return { worker, redisQuotas: new RedisQuotas(parts), hand: [] as number[] };
    });
    const ask = (redisQuotas: RedisQuotas, call: QuotaCall): Promise<QuotaTerms | undefined> =>
      new Promise((resolve) => redisQuotas.call(call, resolve, settings));
    const of = { upstream: 'api', name: settings.name, period: periodId(settings.period) };
    const nothing = { ...of, want: 0, isOrdinary: true, mayUseReserve: false, overdrawn: 0, returns: [], held: 0 };
    for (const { redisQuotas } of members) await ask(redisQuotas, nothing);
    let [since, isSame] = [0, true];
    for (let i = 0; i < 150; i += 1) {
      const member = members[Math.floor(3 * random())];
      if (member === undefined) break;
      const count = random() < 0.3 && member.hand.length > 0 ? 1 : 0;
      if (count === 1) member.hand.pop();
      const call: QuotaCall = {
        ...nothing,
        want: Math.floor(6 * random()),
        mayUseReserve: random() < 0.3,
        overdrawn: random() < 0.1 ? 1 : 0,
        returns: count === 1 ? [{ since, count }] : [],
        held: member.hand.length,
      };
      const [expected, terms] = [
        keeper.onCall(member.worker, call, performance.now()),
        await ask(member.redisQuotas, call),
      ];
      isSame = isSame && (terms === undefined || expected?.since === terms.since);
      if (!isSame) break; // another part of the period has begun meanwhile
      if (terms === undefined || expected === undefined) throw new Error('no terms');
      since = terms.since;
      expect([terms.granted, terms.grantedReserve, terms.view.remaining]).toEqual([
        expected.granted,
        expected.grantedReserve,
        expected.view.remaining,
      ]);
      expect(terms.ordinary.untilReset > 0).toBe(expected.ordinary.untilReset > 0);
      expect(terms.priority.untilReset > 0).toBe(expected.priority.untilReset > 0);
      for (let n = 0; n < terms.granted + terms.grantedReserve; n += 1) member.hand.push(since);
    }
  });
});
