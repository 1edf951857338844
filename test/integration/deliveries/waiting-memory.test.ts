/** The memory that deliveries take while they wait: they stay in the database. */
import type { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { addAll, deliveryId, newDelivery, takeNumbers } from '../../support/deliveries/delivery-place.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';
import { heldBytes } from '../../support/heap.ts';

const COUNT = 100_000;
const KEYED = 10_000;

/**
 * Adds rows as those that are there: the first has a key, the others wait for it if they have one too.
 * @param sender undefined: each has its own
 */
function insertMany(db: DatabaseSync, from: number, to: number, orderKey: string | null, sender?: string): void {
  db.prepare(`WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
    INSERT INTO deliveries (number, id, kind, route, upstream, accepted_at, owner, sender, order_key, state, until, attempts,
      size, waits_since)
    SELECT n, printf('id-%08d', n), 0, '/hooks', 'shop', 1000, ifnull(?4, printf('%016x', n)), ifnull(?4, printf('%016x', n)), ?3, ?3 IS NOT NULL, 1000, 0, 0, 1000 FROM numbers`).run(
    ...[from, to, orderKey, sender ?? null],
  );
}

test('of a hundred thousand deliveries is not that of this process, also if one key is hot', async () => {
  const place = sqlitePlace();
  const before = place.start();
  await addAll(before, newDelivery(1, { orderKey: 'hot' }), newDelivery(2));
  await before.store.list({ limit: 10 });
  const few = heldBytes();
  insertMany(before.database.db, 3, KEYED, 'hot', 'ab12');
  insertMany(before.database.db, KEYED + 1, COUNT, null, 'ab12');
  const process = place.start();
  const { store } = process;
  expect(store.totals).toMatchObject({ counts: { waiting: COUNT }, oldestAt: 1000 });
  expect([await takeNumbers(process, 1000, 2), (await store.list({ limit: 10 })).length]).toEqual([[1, 2], 10]);
  expect((heldBytes() - few) / COUNT).toBeLessThan(5);
  // The next with the key is due, not all of them.
  store.end(deliveryId(1), 'delivered', 1000, undefined);
  await process.settle();
  expect([(await store.find('id-00000003'))?.state, store.totals.counts.waiting]).toEqual([
    ...[{ kind: 'waiting', until: 1000 }, COUNT - 2],
  ]);
  const due = process.database.db.prepare('SELECT count(*) AS n FROM deliveries WHERE state = 0').get();
  expect(due).toEqual({ n: COUNT - KEYED + 2 });
});

test('of deliveries of a hundred thousand senders is not that of this process', async () => {
  const place = sqlitePlace();
  const before = place.start();
  await addAll(before, newDelivery(1), newDelivery(2));
  const few = heldBytes();
  insertMany(before.database.db, 3, COUNT, null);
  const process = place.start({ maxCount: COUNT + 10 });
  expect(process.store.totals.counts.waiting).toBe(COUNT);
  expect(await addAll(process, newDelivery(COUNT + 1))).toEqual([{ kind: 'stored' }]);
  expect((heldBytes() - few) / COUNT).toBeLessThan(5);
});
