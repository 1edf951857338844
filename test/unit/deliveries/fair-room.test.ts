/** The room of the store is shared among the senders of deliveries, with SQLite. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { CountSketch } from '../../../src/store/deliveries/count-sketch.ts';
import { SenderTotals } from '../../../src/store/deliveries/sender-totals.ts';
import { countStored, deliveriesOf, describeFairRoom } from '../../support/deliveries/describe-fair-room.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

describeFairRoom('SQLite', sqlitePlace);

test('a transaction that fails changes nothing of what a sender may store', async () => {
  const process = sqlitePlace().start({ maxCount: 90 });
  process.database.db.exec('PRAGMA query_only = ON');
  const kinds: string[] = [];
  for (const delivery of deliveriesOf('many', 1, 80)) process.store.add(delivery, ({ kind }) => kinds.push(kind));
  process.endTurn();
  expect(new Set(kinds)).toEqual(new Set(['unavailable']));
  process.database.db.exec('PRAGMA query_only = OFF');
  expect([
    await countStored(process, deliveriesOf('many', 101, 79)),
    await countStored(process, deliveriesOf('many', 201, 9)),
  ]).toEqual([79, 1]);
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
