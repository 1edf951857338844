/** An operator reads and resets the quota of a client that Redis counts. */
import { describe, expect, test } from 'vitest';
import type { CalendarQuotaSettings } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { periodId, type QuotaPeriod } from '../../../src/core/quota/calendar/quota-period.ts';
import type { QuotaCall, QuotaTerms } from '../../../src/sharing/quotas/quota-protocol.ts';
import { RedisClientQuotas } from '../../../src/sharing/redis/quotas/redis-client-quotas.ts';
import { RedisQuotas } from '../../../src/sharing/redis/quotas/redis-quotas.ts';
import { DAY, quotaSettings } from '../../support/core/quota-builders.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startQuotaReplica } from '../../support/quotas/redis-replica.ts';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.ts';
import { testConnection } from '../../support/redis/test-connection.ts';

/** A month does not end during a test, or its count begins anew for all alike. */
const UTC_MONTH: QuotaPeriod = { kind: 'calendar', unit: 'month', timeZone: 'UTC', offsetAt: () => 0 };
const PERIODS: readonly QuotaPeriod[] = [UTC_MONTH, { kind: 'rolling', length: DAY }];

const settingsOf = (period: QuotaPeriod, limit = 100): CalendarQuotaSettings =>
  quotaSettings({ name: 'class:partners/client/month', key: 'a', limit, period });

async function connect(redis: RedisServer, owner: string, settings: CalendarQuotaSettings) {
  const client = redis.client({ enableOfflineQueue: false, maxRetriesPerRequest: 0 });
  await new Promise((resolve) => client.once('ready', resolve));
  const { connection } = testConnection(client, { channel: 'quotas', timeout: 1000 });
  const quotas = new RedisQuotas({
    ...{ connection, prefix: 'test', owner, clock: performance, wallClock: () => Date.now() },
  });
  const call = (rest: Partial<QuotaCall>): Promise<QuotaTerms | undefined> => {
    const { name, key, period } = settings;
    const all: QuotaCall = {
      ...{ upstream: 'api', name, key, period: periodId(period), want: 0, isOrdinary: true, mayUseReserve: false },
      ...{ overdrawn: 0, returns: [], held: 0, ...rest },
    };
    return new Promise((resolve) => quotas.call(all, resolve, settings));
  };
  const inspection = new RedisClientQuotas(quotas, () => [
    { upstream: 'api', settings: { ...settings, key: undefined } },
  ]);
  return { call, inspection, client };
}

describe.each(PERIODS)('in a period of kind $kind', (period) => {
  test('shows the count of a client, resets it, and does not create that of an unknown one', async () => {
    const redis = await startRedis();
    const settings = settingsOf(period);
    const { call, inspection, client } = await connect(redis, 'one', settings);
    await call({ overdrawn: 100 });
    expect((await call({ want: 1 }))?.granted).toBe(0);
    expect(await inspection.list('a')).toMatchObject([{ upstream: 'api', name: settings.name, limit: 100, used: 100 }]);
    const keys = await client.keys('*');
    for (const unknown of [await inspection.list('b'), await inspection.reset('b')]) expect(unknown).toEqual([]);
    expect(await client.keys('*')).toEqual(keys);
    expect(await inspection.reset('a')).toMatchObject([{ used: 0 }]);
    expect(await client.pttl(keys[0] ?? '')).toBeGreaterThan(0);
    expect((await call({ want: 1 }))?.granted).toBe(1);
    expect(await inspection.list('a')).toMatchObject([{ used: 1 }]);
  });

  test('discards what is returned of leases from before the reset, and withholds what is held', async () => {
    const redis = await startRedis();
    const settings = settingsOf(period);
    const one = await connect(redis, 'one', settings);
    const other = await connect(redis, 'other', settings);
    const before = await one.call({ want: 5 });
    expect(before?.granted).toBe(5);
    await other.call({ overdrawn: 90 });
    await one.inspection.reset('a');
    await other.call({ overdrawn: 95 });
    expect((await other.call({ want: 1 }))?.granted).toBe(0);
    const after = await one.call({ since: before?.since, returns: [{ since: before?.since ?? 0, count: 5 }] });
    expect(after?.since).toBeGreaterThan(before?.since ?? 0);
    expect(await one.inspection.list('a')).toMatchObject([{ used: 95 }]);
    expect((await other.call({ want: 1 }))?.granted).toBe(1);
  });

  test('withholds what was leased in the millisecond of the reset', async () => {
    const redis = await startRedis();
    // Both calls are handled in one millisecond, except at times.
    for (let round = 0; round < 5; round += 1) {
      const settings = { ...settingsOf(period), name: `class:partners/client/${round}` };
      const one = await connect(redis, 'one', settings);
      const other = await connect(redis, 'other', settings);
      const [before] = await Promise.all([one.call({ want: 5 }), one.inspection.reset('a')]);
      expect(before?.granted).toBe(5);
      await other.call({ overdrawn: 95 });
      expect((await other.call({ want: 1 }))?.granted).toBe(0);
      await one.call({ since: before?.since });
      expect((await other.call({ want: 1 }))?.granted).toBe(1);
    }
  });

  test('stays in effect when Redis loses its data, as long as a replica has called since', async () => {
    const redis = await startRedis();
    const settings = settingsOf(period);
    const stale = await connect(redis, 'stale', settings);
    const fresh = await connect(redis, 'fresh', settings);
    await stale.call({ overdrawn: 80 });
    await fresh.call({});
    await stale.inspection.reset('a');
    await fresh.call({ overdrawn: 7 });
    await fresh.client.flushall();
    await stale.call({});
    await fresh.call({});
    await stale.call({});
    expect(await fresh.inspection.list('a')).toMatchObject([{ used: 7 }]);
    await fresh.client.flushall();
    await fresh.call({});
    await stale.call({});
    expect(await fresh.inspection.list('a')).toMatchObject([{ used: 7 }]);
  });

  test('lets replicas that send all the time use the whole quota once more', async () => {
    const redis = await startRedis();
    const settings = settingsOf(period, 3000);
    const { inspection } = await connect(redis, 'operator', settings);
    const replicas = await Promise.all(['a', 'b', 'c'].map((name) => startQuotaReplica(redis, name, settings)));
    const used = async (): Promise<number> => {
      const [view] = await inspection.list('a').then((views) => ('kind' in views ? [] : views));
      return view?.used ?? Number.NaN;
    };
    let isOver = false;
    const sending = Promise.all(replicas.map((each) => each.send(Number.POSITIVE_INFINITY, () => isOver)));
    await eventually(used, (count) => count === 3000);
    await inspection.reset('a');
    await eventually(used, (count) => count === 3000);
    isOver = true;
    const sent = (await sending).reduce((sum, each) => sum + each, 0);
    expect(sent).toBeLessThanOrEqual(6000);
    expect(sent).toBeGreaterThan(5900); // leases that were in hand at the reset are void
  });
});

test('is unavailable while Redis does not respond', async () => {
  const redis = await startRedis();
  const { inspection } = await connect(redis, 'one', settingsOf(UTC_MONTH));
  redis.freeze();
  expect(await inspection.reset('a')).toMatchObject({ kind: 'unavailable' });
  redis.thaw();
});
