/** An operator sees and resets what a client has used of its quotas. */
import { describe, expect, test } from 'vitest';
import { CountedClientQuotas } from '../../../src/core/quota/clients/client-quota-inspection.ts';
import { CalendarQuota, type CalendarQuotaSettings } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { ClassQuotas } from '../../../src/core/quota/clients/class-quotas.ts';
import { QuotaKeeper } from '../../../src/sharing/quotas/quota-keeper.ts';
import type { QuotaCall, QuotaTerms } from '../../../src/sharing/quotas/quota-protocol.ts';
import { DAY, HOUR, MemoryJournal, quotaSettings } from '../../support/core/quota-builders.ts';
import { LeasingWorld, trySend } from '../../support/quotas/leasing-world.ts';

const NOON = 12 * HOUR;
const ROLLING = { kind: 'rolling', length: DAY } as const;
const PERIODS = [quotaSettings().period, ROLLING];

const perClient = (settings: Partial<CalendarQuotaSettings> = {}) =>
  quotaSettings({ name: 'class:partners/client/day', limit: 3, ...settings });
const classOf = (...quotas: readonly CalendarQuotaSettings[]) => ({
  ...{ className: 'partners', shared: [], perClient: quotas },
});
const instant = (now: number) => ({ now, at: now });

/** The quotas of one process, at noon. */
function oneProcess(journal = new MemoryJournal(), settings = perClient()) {
  const quotas = new ClassQuotas('up', [classOf(settings)], { wallTimeAt: (now) => now, journal });
  const inspection = new CountedClientQuotas(quotas.forClient, () => instant(NOON));
  const begin = (client: string) => quotas.use({ client, className: 'partners', isClientProven: true });
  const sendOne = (client: string, now = NOON): boolean => {
    const use = begin(client);
    if (use === undefined || use.findSpent(now) !== undefined) return false;
    use.onSent(now);
    use.end();
    return true;
  };
  const sendMany = (client: string): number => [1, 2, 3, 4, 5].filter(() => sendOne(client)).length;
  return { begin, sendMany, inspection, journal };
}

describe.each(PERIODS)('in a period of kind $kind, one process', (period) => {
  test('shows what a client has used, and counts from 0 on after a reset, for this client alone', async () => {
    const { sendMany, inspection } = oneProcess(undefined, perClient({ period }));
    expect([sendMany('a'), sendMany('b')]).toEqual([3, 3]);
    const view = { upstream: 'up', name: 'class:partners/client/day', limit: 3 };
    expect(await inspection.list('a')).toMatchObject([{ ...view, used: 3 }]);
    expect(await inspection.reset('a')).toMatchObject([{ ...view, used: 0 }]);
    expect([sendMany('a'), sendMany('b')]).toEqual([3, 0]);
    expect(await inspection.list('a')).toMatchObject([{ used: 3 }]);
  });

  test('resets the stored count of a client that is not in memory, and knows no other', async () => {
    const settings = perClient({ period });
    const { journal, sendMany } = oneProcess(undefined, settings);
    sendMany('a');
    journal.close();
    const next = oneProcess(journal, settings);
    expect(await next.inspection.list('a')).toMatchObject([{ used: 3 }]);
    expect(await next.inspection.list('b')).toEqual([]);
    await next.inspection.reset('a');
    expect(oneProcess(journal, settings).sendMany('a')).toBe(3);
  });

  test('stores a reset at once, so that a kill does not restore the count', async () => {
    const settings = perClient({ period });
    const { journal, sendMany, inspection } = oneProcess(undefined, settings);
    sendMany('a');
    await inspection.reset('a');
    expect(oneProcess(journal, settings).sendMany('a')).toBe(3);
  });

  test('counts a request that was admitted before the reset and is sent after it', async () => {
    const { begin, inspection } = oneProcess(undefined, perClient({ period }));
    const use = begin('a');
    use?.reserve(NOON);
    await inspection.reset('a');
    use?.onSent(NOON);
    expect(await inspection.list('a')).toMatchObject([{ used: 1 }]);
  });

  test('gives nothing back of a request that was sent before the reset', () => {
    const quota = new CalendarQuota('up', perClient({ period }));
    quota.onSent(instant(NOON));
    quota.reset(instant(NOON + 10));
    quota.onSent(instant(NOON + 20));
    quota.giveBack(instant(NOON));
    expect(quota.used(instant(NOON + 30))).toBe(1);
    quota.giveBack(instant(NOON + 20));
    expect(quota.used(instant(NOON + 30))).toBe(0);
  });
});

test('the period of a calendar ends when it would have ended without the reset', () => {
  const quota = new CalendarQuota('up', perClient());
  for (let i = 0; i < 3; i += 1) quota.onSent(instant(NOON));
  quota.reset(instant(NOON));
  for (let i = 0; i < 3; i += 1) quota.onSent(instant(NOON));
  expect(quota.untilReset(false, instant(NOON))).toBe(NOON);
  expect(quota.untilReset(false, instant(2 * NOON))).toBe(0);
});

describe.each(PERIODS)('in a period of kind $kind, several workers', (period) => {
  const settings = perClient({ limit: 100, period });

  function makeWorkers() {
    const keeper = new QuotaKeeper({ wallTimeAt: (now) => now });
    keeper.configure([{ name: 'up', classQuotas: [classOf(settings)] }]);
    for (const worker of [1, 2]) keeper.join(worker);
    const of = {
      upstream: 'up',
      name: settings.name,
      key: 'a',
      period: period.kind === 'rolling' ? `rolling ${DAY}` : 'day UTC',
    };
    let now = NOON;
    const inspection = new CountedClientQuotas(keeper.forClient, () => instant(now));
    const call = (worker: number, rest: Partial<QuotaCall>): QuotaTerms | undefined =>
      keeper.onCall(
        worker,
        { ...of, want: 0, isOrdinary: true, mayUseReserve: false, overdrawn: 0, returns: [], held: 0, ...rest },
        now,
      );
    return { inspection, call, advance: (time: number) => void (now += time) };
  }

  test('discards what is returned of leases from before the reset', async () => {
    const { inspection, call, advance } = makeWorkers();
    const before = call(1, { want: 5 });
    expect(await inspection.list('a')).toMatchObject([{ used: 5 }]);
    advance(10);
    await inspection.reset('a');
    call(1, { overdrawn: 1, returns: [{ since: before?.since ?? 0, count: 4 }] });
    expect(await inspection.list('a')).toMatchObject([{ used: 1 }]);
  });

  test('withholds what a worker held at the reset until that worker reports', async () => {
    const { inspection, call, advance } = makeWorkers();
    const before = call(1, { want: 5 });
    advance(10);
    await inspection.reset('a');
    advance(10);
    call(1, { overdrawn: 92, held: 5, since: before?.since });
    const granted = [1, 2, 3, 4, 5].map(() => call(2, { want: 1 })?.granted);
    expect(granted).toEqual([1, 1, 1, 0, 0]);
  });
});

describe('workers that send all the time', () => {
  test.each(PERIODS)('send the whole quota of a client again after a reset, and no more: $kind', async (period) => {
    const world = new LeasingWorld(quotaSettings({ name: 'class:partners/client/day', key: 'a', limit: 400, period }));
    world.runFor(NOON);
    const workers = [world.start(), world.start(), world.start()];
    const inspection = new CountedClientQuotas(world.kept.forClient, () => world.instant);
    let sent = 0;
    const sendFor = (time: number): void => {
      for (let i = 0; i < time; i += 5) {
        for (const worker of workers) if (trySend(worker, world.instant)) sent += 1;
        world.runFor(5);
      }
    };
    sendFor(300);
    expect(sent).toBeGreaterThan(100);
    expect(sent).toBeLessThan(250);
    const heldBefore = workers.reduce(
      (sum, { calls }) => sum + (calls.at(-1)?.held ?? 0) + (calls.at(-1)?.want ?? 0),
      0,
    );
    await inspection.reset('a');
    sent = 0;
    sendFor(6000);
    expect(sent).toBeGreaterThanOrEqual(400);
    // Until a worker knows of the reset, it uses parts that counted before.
    expect(sent).toBeLessThanOrEqual(400 + heldBefore);
    expect(await inspection.list('a')).toMatchObject([{ used: 400 }]);
    await inspection.reset('a');
    sent = 0;
    sendFor(6000);
    expect(sent).toBe(400);
  });
});
