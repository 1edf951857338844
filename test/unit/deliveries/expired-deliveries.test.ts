/** Deliveries that have waited too long end as dead, whatever their route. */
import { expect, test } from 'vitest';
import { addAll, deliveryId as id, newDelivery, takeNumbers } from '../../support/deliveries/delivery-place.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

const FAILED = { at: 1500, took: 20, status: 503, reason: 'status_503' };
const AGE = 10_000;

function agingPlace() {
  const place = sqlitePlace();
  place.maxAge.value = AGE;
  return place;
}

test('what waits for longer is dead, counted and kept, and makes way for the next with its order key', async () => {
  const { clock, start } = agingPlace();
  const process = start();
  const { store, settle, expired } = process;
  await addAll(process, newDelivery(1, { orderKey: 'k' }), newDelivery(2, { route: '/removed' }));
  clock.time = 2000;
  await addAll(process, newDelivery(3, { acceptedAt: 2000, orderKey: 'k' }));
  clock.time = 10_999;
  await settle();
  expect([expired, store.totals.counts.waiting]).toEqual([[], 3]);
  clock.time = 11_000;
  await settle();
  expect(expired).toEqual([[id(1), id(2)]]);
  expect(store.totals.counts).toMatchObject({ waiting: 1, dead: 2 });
  for (const n of [1, 2]) {
    expect(await store.find(id(n))).toMatchObject({
      ...{ state: { kind: 'dead', at: 11_000 }, attempts: 0 },
      lastAttempt: { at: 11_000, took: 0, status: undefined, reason: 'expired' },
    });
  }
  expect([await takeNumbers(process, 11_000), process.reportedDue()]).toEqual([[3], ['/hooks', '/removed']]);
  clock.time = 20_000; // after `keptFor`
  await settle();
  expect(await store.find(id(1))).toBe(undefined);
});

test('one that is being sent is left to its attempt, and expires if it is not acknowledged', async () => {
  const { clock, start } = agingPlace();
  const process = start();
  const { store, settle, expired } = process;
  await addAll(process, newDelivery(1), newDelivery(2), newDelivery(3));
  expect(await takeNumbers(process, 1000, 2)).toEqual([1, 2]);
  clock.time = 12_000;
  await settle();
  expect([expired, store.totals.counts.sending]).toEqual([[[id(3)]], 2]);
  store.end(id(1), 'delivered', 12_000, FAILED);
  store.postpone(id(2), 13_000, FAILED);
  await settle();
  expect(expired).toEqual([[id(3)], [id(2)]]);
  expect(await store.find(id(2))).toMatchObject({ state: { kind: 'dead' }, attempts: 1 });
  expect(await store.find(id(1))).toMatchObject({ state: { kind: 'delivered' } });
});

test('one that an operator retries waits as long again', async () => {
  const { clock, start } = agingPlace();
  const first = start();
  await addAll(first, newDelivery(1));
  clock.time = 11_000;
  await first.settle();
  clock.time = 15_000;
  expect(await first.store.retry(id(1), 15_000)).toBe(true);
  await first.settle();
  clock.time = 24_999;
  const second = start();
  await second.settle();
  expect(await second.store.find(id(1))).toMatchObject({ acceptedAt: 1000, state: { kind: 'waiting' } });
  clock.time = 25_000;
  await second.settle();
  expect([first.expired, second.expired]).toEqual([[[id(1)]], [[id(1)]]]);
});

test('a longer time applies at once to what waits', async () => {
  const { clock, maxAge, start } = agingPlace();
  const process = start();
  await addAll(process, newDelivery(1));
  maxAge.value = 20_000;
  clock.time = 20_999;
  await process.settle();
  expect(process.expired).toEqual([]);
  maxAge.value = 19_000;
  await process.settle();
  expect(process.expired).toEqual([[id(1)]]);
});

test('a step ends at most 1000, and none is reported or counted if it cannot be stored', async () => {
  const { clock, start } = agingPlace();
  const process = start();
  const { store, database, expired, commit, endTurn } = process;
  await addAll(process, ...Array.from({ length: 1500 }, (_, n) => newDelivery(n)));
  clock.time = 11_000;
  database.db.exec('PRAGMA query_only = ON');
  commit.request();
  endTurn();
  expect([expired, store.totals.counts]).toMatchObject([[], { waiting: 1500, dead: 0 }]);
  database.db.exec('PRAGMA query_only = OFF');
  await process.settle();
  expect(expired.map(({ length }) => length)).toEqual([1000, 500]);
  expect(store.totals.counts).toMatchObject({ waiting: 0, dead: 1500 });
});

test('a write ends as unknown, because it may have been sent before', async () => {
  const { clock, start } = agingPlace();
  const process = start();
  await addAll(process, newDelivery(1, { kind: 'write' }));
  clock.time = 11_000;
  await process.settle();
  expect(await process.store.find(id(1))).toMatchObject({
    state: { kind: 'unknown' },
    lastAttempt: { reason: 'expired' },
  });
});
