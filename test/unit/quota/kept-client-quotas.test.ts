/** Quotas of classes and clients that several workers share: the primary counts them. */
import { expect, test } from 'vitest';
import type { CalendarQuotaSettings } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { QuotaKeeper } from '../../../src/sharing/quotas/quota-keeper.ts';
import type { QuotaCall } from '../../../src/sharing/quotas/quota-protocol.ts';
import { HOUR, MemoryJournal, quotaSettings, UTC_HOUR } from '../../support/core/quota-builders.ts';

const SHARED = quotaSettings({ name: 'class:partners/day', limit: 10 });
const PER_CLIENT = quotaSettings({ name: 'class:partners/client/day', limit: 3 });

function configure(
  keeper: QuotaKeeper,
  perClient: readonly CalendarQuotaSettings[] = [PER_CLIENT],
  maxClients?: number,
): void {
  keeper.configure([{ name: 'up', classQuotas: [{ className: 'partners', shared: [SHARED], perClient }] }], maxClients);
}

function makeKeeper(parts: { readonly journal?: MemoryJournal; readonly maxClients?: number } = {}): QuotaKeeper {
  const { maxClients, ...rest } = parts;
  const keeper = new QuotaKeeper({ wallTimeAt: (now) => now, ...rest });
  configure(keeper, [PER_CLIENT], maxClients);
  for (const worker of [1, 2]) keeper.join(worker);
  return keeper;
}

/** Leases one part. Returns how many were granted; undefined if the keeper does not have the quota. */
function lease(keeper: QuotaKeeper, worker: number, key: string | undefined): number | undefined {
  const { name } = key === undefined ? SHARED : PER_CLIENT;
  const call: QuotaCall = {
    ...{ upstream: 'up', name, key, period: 'day UTC', want: 1, isOrdinary: true, mayUseReserve: false },
    ...{ overdrawn: 0, returns: [], held: 0 },
  };
  return keeper.onCall(worker, call, HOUR)?.granted;
}

/** The worker holds nothing any more: it has used what it leased. */
function use(keeper: QuotaKeeper, worker: number, key: string, returned = 0): void {
  const returns = returned === 0 ? [] : [{ since: 0, count: returned }];
  const of = { upstream: 'up', name: PER_CLIENT.name, key, period: 'day UTC' };
  keeper.onCall(
    worker,
    { ...of, want: 0, isOrdinary: true, mayUseReserve: false, overdrawn: 0, returns, held: 0 },
    HOUR,
  );
}

const leaseMany = (keeper: QuotaKeeper, count: number, key: string | undefined): number[] =>
  Array.from({ length: count }, (_, i) => lease(keeper, 1 + (i % 2), key) ?? Number.NaN);

test('grants each client no more than its quota, whichever worker calls, and the class no more than that of all', () => {
  const keeper = makeKeeper();
  for (const client of ['a', 'b']) expect(leaseMany(keeper, 5, client)).toEqual([1, 1, 1, 0, 0]);
  expect(leaseMany(keeper, 12, undefined).filter((granted) => granted === 1)).toHaveLength(10);
});

test('shows the quota of the class, and not those of clients', () => {
  const keeper = makeKeeper();
  leaseMany(keeper, 2, 'a');
  leaseMany(keeper, 2, undefined);
  expect(keeper.views(HOUR)).toMatchObject([{ upstream: 'up', name: 'class:partners/day', remaining: 8 }]);
});

test('keeps the counts of clients when their limit changes, and forgets them when their quota is removed', () => {
  const keeper = makeKeeper();
  leaseMany(keeper, 3, 'a');
  configure(keeper, [{ ...PER_CLIENT, limit: 4 }]);
  expect(leaseMany(keeper, 2, 'a')).toEqual([1, 0]);
  configure(keeper, []);
  expect(lease(keeper, 1, 'a')).toBeUndefined();
});

test('reads the count of a client that has made room for others again', () => {
  const keeper = makeKeeper({ journal: new MemoryJournal(), maxClients: 2 });
  for (const client of ['a', 'b', 'c']) {
    leaseMany(keeper, 2, client);
    for (const worker of [1, 2]) use(keeper, worker, client);
  }
  expect(leaseMany(keeper, 2, 'a')).toEqual([1, 0]);
  expect(keeper.bound).toEqual({ name: 'client_quotas', used: 1, reached: 2 });
  configure(keeper, []);
  expect(keeper.bound).toBeUndefined();
});

test('keeps the count of a client of which a worker holds a part, also without a store, and then makes room at once', () => {
  const keeper = makeKeeper({ maxClients: 1 });
  for (const client of ['a', 'b', 'c']) expect(lease(keeper, 1, client)).toBe(1);
  expect(keeper.bound).toEqual({ name: 'client_quotas', used: 3, reached: 0 });
  use(keeper, 1, 'a', 1);
  expect(leaseMany(keeper, 4, 'b')).toEqual([1, 1, 0, 0]);
  expect(keeper.bound).toEqual({ name: 'client_quotas', used: 2, reached: 1 });
  for (const worker of [1, 2]) keeper.leave(worker);
  use(keeper, 1, 'd');
  expect(keeper.bound).toEqual({ name: 'client_quotas', used: 1, reached: 3 });
});

test('keeps the count of the client that was called about last, also if a part of each other one is held', () => {
  const keeper = makeKeeper({ maxClients: 1 });
  expect(lease(keeper, 1, 'a')).toBe(1);
  expect(leaseMany(keeper, 3, 'b')).toEqual([1, 1, 1]);
  for (const worker of [1, 2]) use(keeper, worker, 'b');
  expect(lease(keeper, 1, 'b')).toBe(0);
  expect(keeper.bound).toEqual({ name: 'client_quotas', used: 2, reached: 0 });
});

test('stores the counts of a few clients at once for each call after a reload that lowers their number', () => {
  const journal = new MemoryJournal();
  const keeper = makeKeeper({ journal, maxClients: 100 });
  for (let i = 0; i < 100; i += 1) {
    lease(keeper, 1, `c${i}`);
    use(keeper, 1, `c${i}`);
  }
  configure(keeper, [PER_CLIENT], 10);
  const reached: number[] = [];
  for (let i = 0; i < 8; i += 1) {
    const { writes } = journal;
    use(keeper, 1, 'c99');
    expect(journal.writes).toBeLessThanOrEqual(writes + 1);
    reached.push(keeper.bound?.reached ?? 0);
  }
  expect(reached).toEqual([16, 32, 48, 64, 80, 90, 90, 90]);
  expect(leaseMany(keeper, 3, 'c0')).toEqual([1, 1, 0]);
});

test('stores the counts of clients at the end, exactly', () => {
  const journal = new MemoryJournal();
  leaseMany(makeKeeper({ journal }), 2, 'a');
  journal.close();
  expect(leaseMany(makeKeeper({ journal }), 2, 'a')).toEqual([1, 0]);
});

test('counts clients at each upstream against the bound, however many quotas they have', () => {
  const hourly = { ...PER_CLIENT, name: 'class:partners/client/hour' };
  const keeper = new QuotaKeeper({ wallTimeAt: (now) => now });
  const classQuotas = [{ className: 'partners', shared: [], perClient: [PER_CLIENT, hourly] }];
  keeper.configure(
    ['up', 'other'].map((name) => ({ name, classQuotas })),
    2,
  );
  for (const upstream of ['up', 'other']) {
    for (const key of ['a', 'b']) {
      for (const { name } of [PER_CLIENT, hourly]) {
        const call = { upstream, name, key, period: 'day UTC', want: 1, isOrdinary: true, mayUseReserve: false };
        keeper.onCall(1, { ...call, overdrawn: 0, returns: [], held: 0 }, HOUR);
      }
    }
  }
  expect(keeper.bound).toEqual({ name: 'client_quotas', used: 1, reached: 0 });
});

test('stores the counts of many clients at once when a reload removes their quota, and what is unchanged never', () => {
  const journal = new MemoryJournal();
  const keeper = makeKeeper({ journal });
  const clients = Array.from({ length: 50 }, (_, i) => `c${i}`);
  for (const client of clients) lease(keeper, 1, client);
  const { writes } = journal;
  configure(keeper, []);
  expect(journal.writes).toBe(writes + 1);
  configure(keeper);
  for (const client of clients) expect(leaseMany(keeper, 3, client)).toEqual([1, 1, 0]);

  const stored = new Map(journal.stored);
  const later = makeKeeper({ journal });
  for (const client of clients) expect(lease(later, 1, client)).toBe(0);
  journal.stored.clear();
  configure(later, []);
  expect(journal.stored.size).toBe(0);
  expect(stored.size).toBe(50);
});

test('stores the count of a new period under the name of an old one when a reload changes the period', () => {
  const journal = new MemoryJournal();
  const keeper = makeKeeper({ journal });
  leaseMany(keeper, 5, undefined);
  keeper.configure([{ name: 'up', quotas: [{ ...SHARED, period: UTC_HOUR }] }]);
  const call = { upstream: 'up', name: SHARED.name, period: 'hour UTC', want: 1, isOrdinary: true };
  keeper.onCall(1, { ...call, mayUseReserve: false, overdrawn: 0, returns: [], held: 0 }, HOUR);
  journal.close();
  expect(journal.stored.get('up class:partners/day')).toEqual({ period: 'hour UTC', counts: [[HOUR, 1]] });
});
