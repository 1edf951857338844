/** The room of the store is shared among the senders of deliveries. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { NewDelivery } from '../../../src/core/delivery/delivery-store.ts';
import type { DeliveryEnd } from '../../../src/core/delivery/delivery.ts';
import { CountSketch } from '../../../src/store/deliveries/count-sketch.ts';
import { SenderTotals } from '../../../src/store/deliveries/sender-totals.ts';
import { addAll, deliveryId, newDelivery, type StoreProcess } from '../../support/deliveries/delivery-place.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

const ATTEMPT = { at: 1500, took: 20, status: 200, reason: undefined };
/** So many deliveries of one owner, from this number on. */
const of = (owner: string, from: number, count: number, changes: Partial<NewDelivery> = {}): NewDelivery[] =>
  Array.from({ length: count }, (_, i) => newDelivery(from + i, { owner, ...changes }));

/** How many of them are stored. */
async function store(process: StoreProcess, deliveries: readonly NewDelivery[]): Promise<number> {
  const results = await addAll(process, ...deliveries);
  return results.filter((result) => result?.kind === 'stored').length;
}

/** Takes all that are due, and ends them. */
async function endAll(process: StoreProcess, end: DeliveryEnd): Promise<void> {
  const { deliveries } = await process.store.takeDue('/hooks', 1000, 1000);
  for (const { delivery } of deliveries) process.store.end(delivery.id, end, 1500, ATTEMPT);
  await process.settle();
}

test.each(['waiting', 'dead', 'unknown'] as const)(
  'a sender whose deliveries are %s leaves a ninth of their number to others, in the next process too',
  async (end) => {
    const place = sqlitePlace();
    const process = place.start({ maxCount: 90 });
    expect(await store(process, of('many', 1, 100))).toBe(80);
    if (end !== 'waiting') await endAll(process, end);
    expect(process.store.bounds[0]).toMatchObject({ reached: 20 });
    const next = place.start({ maxCount: 90 });
    expect([await store(next, of('many', 201, 1)), await store(next, of('few', 301, 5))]).toEqual([0, 5]);
    expect(await store(next, of('second', 401, 10))).toBe(5);
  },
);

test('two senders leave a seventeenth of the number to others', async () => {
  const process = sqlitePlace().start({ maxCount: 170 });
  const both = Array.from({ length: 200 }, (_, n) => [...of('one', 2 * n, 1), ...of('two', 2 * n + 1, 1)]).flat();
  expect(await store(process, both)).toBe(160);
  expect(await store(process, of('few', 1000, 5))).toBe(5);
});

test('a sender leaves a ninth of the bytes to others', async () => {
  const process = sqlitePlace().start({ maxBytes: 90_000 });
  const large = (owner: string, from: number, count: number): NewDelivery[] =>
    of(owner, from, count, { message: { ...newDelivery(1).message, body: Buffer.alloc(800) } });
  const stored = await store(process, large('many', 1, 200));
  expect(stored).toBeLessThan(100);
  expect(process.store.totals.bytes).toBeGreaterThanOrEqual(80_000);
  expect(process.store.totals.bytes).toBeLessThan(81_000);
  expect(process.store.bounds[1]).toMatchObject({ reached: 200 - stored });
  expect(await store(process, large('few', 301, 5))).toBe(5);
});

test('clients of one address are one sender, whatever credentials they invent', async () => {
  const process = sqlitePlace().start({ maxCount: 90 });
  const invented = Array.from({ length: 100 }, (_, n) => newDelivery(n, { owner: `c${n}`, sender: 'address' }));
  expect([await store(process, invented), await store(process, of('few', 301, 5))]).toEqual([80, 5]);
});

test('a sender with a part of the room is not refused while more than an eighth of that is free', async () => {
  const process = sqlitePlace().start({ maxCount: 90 });
  expect(await store(process, of('many', 1, 40))).toBe(40);
  expect(await store(process, of('other', 101, 40))).toBe(40);
  expect(await store(process, of('many', 201, 5))).toBe(5);
});

test('what one sender has stored and is over does not displace what few others have', async () => {
  const place = sqlitePlace();
  const first = place.start({ maxCount: 90 });
  await addAll(first, ...of('few', 1, 3));
  await endAll(first, 'delivered');
  for (let from = 100; from < 400; from += 50) {
    expect(await store(first, of('many', from, 50))).toBe(50);
    await endAll(first, 'delivered');
  }
  let process = first;
  const isStored = async (n: number): Promise<boolean> => (await process.store.find(deliveryId(n))) !== undefined;
  const few = (): Promise<boolean[]> => Promise.all([1, 2, 3].map(isStored));
  expect([await few(), first.store.totals.counts.delivered]).toEqual([[true, true, true], 90]);
  process = place.start({ maxCount: 90 });
  expect(await store(process, of('third', 500, 60))).toBe(60);
  expect([await few(), await isStored(399)]).toEqual([[true, true, true], true]);
});

test('a transaction that fails changes nothing of what a sender may store', async () => {
  const process = sqlitePlace().start({ maxCount: 90 });
  process.database.db.exec('PRAGMA query_only = ON');
  const kinds: string[] = [];
  for (const delivery of of('many', 1, 80)) process.store.add(delivery, ({ kind }) => kinds.push(kind));
  process.endTurn();
  expect(new Set(kinds)).toEqual(new Set(['unavailable']));
  process.database.db.exec('PRAGMA query_only = OFF');
  expect([await store(process, of('many', 101, 79)), await store(process, of('many', 201, 9))]).toEqual([79, 1]);
});

test('a sketch is never too small, and exact for few keys', () => {
  const change = fc.record({ key: fc.integer({ min: 0, max: 20 }), amount: fc.integer({ min: 1, max: 9 }) });
  fc.assert(
    fc.property(fc.array(change), fc.array(fc.nat()), (changes, removed) => {
      const sketch = new CountSketch();
      const exact = new Map<number, number>();
      const add = (key: number, amount: number): void => {
        sketch.add(`key-${key}`, amount);
        exact.set(key, (exact.get(key) ?? 0) + amount);
      };
      for (const { key, amount } of changes) add(key, amount);
      for (const i of new Set(removed)) {
        const { key, amount } = changes[i] ?? { key: 0, amount: 0 };
        add(key, -amount);
      }
      for (const [key, sum] of exact) expect(sketch.get(`key-${key}`)).toBe(sum);
    }),
  );
});

test('a sketch of 100 000 senders is at most 0.14 % of the sum too large for 98 % of them', () => {
  const sketch = new CountSketch();
  const keys = Array.from({ length: 100_000 }, (_, n) => Math.imul(n + 1, 2_654_435_761).toString(16));
  for (const key of keys) sketch.add(key, 1);
  const errors = keys.map((key) => sketch.get(key) - 1);
  expect(errors.every((error) => error >= 0)).toBe(true);
  expect(errors.filter((error) => error > 0.0014 * keys.length).length).toBeLessThan(0.02 * keys.length);
});

test('the sender with the most is found among 100 000, also if many had a large part before', () => {
  const totals = new SenderTotals();
  for (let n = 0; n < 100_000; n += 1) totals.change(`sender-${n}`, true, 1, 10);
  expect(totals.largestEvictable()).toBe(undefined);
  totals.change('large', true, 20_000, 10);
  totals.change('larger', true, 30_000, 10);
  expect(totals.largestEvictable()).toBe('larger');
  totals.change('larger', true, -15_000, -10);
  expect(totals.largestEvictable()).toBe('large');
  totals.begin();
  expect(totals.largestEvictable()).toBe(undefined);
});
