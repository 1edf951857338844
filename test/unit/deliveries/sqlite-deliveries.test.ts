/** Deliveries in SQLite: transactions, failures, the cost of queries, and what the file contains. */
import { readFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { type AddResult, DeliveriesUnavailable } from '../../../src/core/delivery/delivery-store.ts';
import { DELIVERY_QUERIES } from '../../../src/store/deliveries/delivery-statements.ts';
import { NEXT_OWNER, NEXT_SENDER } from '../../../src/store/deliveries/due-clients.ts';
import { dueAtSameTime, dueLater } from '../../../src/store/deliveries/due-cursors.ts';
import { CLIENT_COLUMNS, CLIENT_OF, ROUTE_COLUMNS } from '../../../src/store/deliveries/due-deliveries.ts';
import {
  addAll,
  deliveryId as id,
  newDelivery,
  nextDueAt,
  numberOf,
  takeNumbers,
} from '../../support/deliveries/delivery-place.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

const FAILED = { at: 1500, took: 20, status: 503, reason: 'not_acknowledged' };
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => newDelivery(from + i));

/** Nothing can be written, as on a full disk. */
const setReadOnly = (db: DatabaseSync, isReadOnly: boolean): void =>
  db.exec(`PRAGMA query_only = ${isReadOnly ? 'ON' : 'OFF'}`);

describe('transactions', () => {
  test('store all changes of a turn at once; none is needed to take deliveries', async () => {
    const process = sqlitePlace().start();
    const { store, commits } = process;
    await addAll(process, ...range(1, 50));
    expect(commits).toEqual([true]);
    await takeNumbers(process, 1000, 20);
    process.endTurn();
    expect(commits).toEqual([true]);
    for (let n = 1; n <= 20; n += 1) store.postpone(id(n), 2000, FAILED);
    await addAll(process, ...range(51, 60));
    expect(commits).toEqual([true, true]);
  });

  test('that fail make additions unavailable, which may be repeated', async () => {
    const process = sqlitePlace().start();
    const { database, store } = process;
    setReadOnly(database.db, true);
    const event = (n: number) => newDelivery(n, { eventId: 'evt', orderKey: 'k' });
    const results: AddResult[] = [];
    store.add(event(1), (result) => results.push(result));
    process.endTurn();
    expect(results).toEqual([{ kind: 'unavailable', why: 'attempt to write a readonly database' }]);
    setReadOnly(database.db, false);
    process.runLater();
    expect([await store.find(id(1)), store.totals.counts.waiting, store.totals.bytes]).toEqual([undefined, 0, 0]);
    expect(await addAll(process, event(1))).toEqual([{ kind: 'stored' }]);
    expect(await takeNumbers(process, 1000)).toEqual([1]);
  });

  test('store the end of a write with its callback, or neither', async () => {
    const place = sqlitePlace();
    const process = place.start();
    const { database, store, callbacks } = process;
    await addAll(process, newDelivery(1, { kind: 'write' }));
    await takeNumbers(process, 1000);
    setReadOnly(database.db, true);
    store.end(id(1), 'delivered', 1500, FAILED, undefined, newDelivery(2, { route: '/callbacks' }));
    process.endTurn();
    expect([await takeNumbers(process, 1500, 1, '/callbacks'), callbacks]).toEqual([[], []]);
    setReadOnly(database.db, false);
    await process.settle();
    expect(callbacks).toEqual([['/callbacks', true]]);
    expect((await store.find(id(1)))?.state.kind).toBe('delivered');
    const next = place.start();
    expect(await takeNumbers(next, 1500, 1, '/callbacks')).toEqual([2]);
  });

  test('that fail leave results pending: nothing is sent again meanwhile, and they are stored later', async () => {
    const process = sqlitePlace().start();
    const { database, store } = process;
    await addAll(process, ...range(1, 4));
    await takeNumbers(process, 1000, 3);
    setReadOnly(database.db, true);
    store.end(id(1), 'delivered', 1500, FAILED);
    store.postpone(id(2), 2000, FAILED);
    await store.cancel(id(4), 1500);
    process.endTurn();
    process.runLater();
    expect(process.commits.slice(1)).toEqual([false, false]);
    expect([await takeNumbers(process, 9000), await nextDueAt(store, '/hooks')]).toEqual([[], undefined]);
    expect((await store.find(id(1)))?.state.kind).toBe('sending');
    store.end(id(1), 'dead', 1600, FAILED); // the first result holds
    setReadOnly(database.db, false);
    process.reportedDue();
    process.runLater();
    expect(store.totals.counts).toEqual({ waiting: 1, sending: 1, delivered: 1, dead: 0, canceled: 1, unknown: 0 });
    expect([process.reportedDue(), await takeNumbers(process, 9000)]).toEqual([['/hooks'], [2]]);
  });

  test('that fail after all deliveries were written count nothing', async () => {
    const process = sqlitePlace().start({ maxEvents: 1 });
    const { commit, store } = process;
    const other = { isFailing: false };
    commit.add({
      isEmpty: false,
      apply: () => {
        if (other.isFailing) throw new Error('of others');
      },
      onStored: () => undefined,
    });
    await addAll(process, newDelivery(1, { eventId: 'one' }));
    const before = [store.totals, store.bounds];
    other.isFailing = true;
    const results: AddResult[] = [];
    store.add(newDelivery(2, { eventId: 'two' }), (result) => results.push(result));
    process.endTurn();
    expect([results, [store.totals, store.bounds]]).toEqual([[{ kind: 'unavailable', why: 'of others' }], before]);
    other.isFailing = false;
    expect(await addAll(process, newDelivery(3, { eventId: 'one' }))).toEqual([{ kind: 'duplicate', id: id(1) }]);
    expect([store.totals, store.bounds]).toEqual(before);
  });

  test('that fail stop sending once 1000 results are not stored', async () => {
    const process = sqlitePlace().start();
    const { database, store } = process;
    await addAll(process, ...range(1, 1100));
    setReadOnly(database.db, true);
    const send = async (limit: number): Promise<number> => {
      const numbers = await takeNumbers(process, 1000, limit);
      for (const n of numbers) store.end(id(n), 'delivered', 1000, FAILED);
      process.endTurn();
      process.runLater();
      return numbers.length;
    };
    expect([await send(999), await send(10), await send(10), await nextDueAt(store, '/hooks')]).toEqual([
      999,
      10,
      0,
      undefined,
    ]);
    setReadOnly(database.db, false);
    process.reportedDue();
    process.runLater();
    expect([process.reportedDue(), await send(1000)]).toEqual([['/hooks'], 91]);
  });

  test('remove at most 1000 rows that are over in a step, 50 ms apart', async () => {
    const { clock, start } = sqlitePlace();
    const first = start();
    await addAll(first, ...range(1, 2500));
    for (const n of await takeNumbers(first, 1000, 2500)) first.store.end(id(n), 'delivered', 1000, undefined);
    await first.settle();
    const process = start();
    const { database, endTurn, runLater, store } = process;
    const rows = () => {
      const count = (table: string) => database.db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'];
      return [count('deliveries'), count('delivery_messages'), store.totals.counts.delivered];
    };
    clock.time = 6000;
    store.add(newDelivery(9000, { acceptedAt: 6000 }), () => undefined);
    endTurn();
    expect(rows()).toEqual([1501, 1501, 1500]);
    endTurn();
    expect(rows()).toEqual([1501, 1501, 1500]);
    const delays: number[] = [];
    for (let step = 0; step < 5; step += 1) {
      delays.push(...runLater());
      endTurn();
    }
    expect([rows(), delays]).toEqual([
      [1, 1, 0],
      [50, 50],
    ]);
    endTurn();
    expect(process.commits).toEqual([true, true, true]);
  });

  test('remove rows after a transaction has failed in between', async () => {
    const { clock, start } = sqlitePlace();
    const process = start();
    await addAll(process, newDelivery(1, { eventId: 'evt' }));
    await takeNumbers(process, 1000);
    process.store.end(id(1), 'delivered', 1000, undefined);
    await process.settle();
    clock.time = 6000;
    setReadOnly(process.database.db, true);
    process.store.add(newDelivery(2, { acceptedAt: 6000 }), () => undefined);
    process.endTurn();
    setReadOnly(process.database.db, false);
    await process.settle();
    expect(await process.store.find(id(1))).toBe(undefined);
    expect(process.database.db.prepare('SELECT count(*) AS n FROM delivery_events').get()).toEqual({ n: 0 });
  });

  test('accept an event whose time is over before its row is removed', async () => {
    const { clock, start } = sqlitePlace();
    const process = start();
    const { store } = process;
    const event = (n: number, acceptedAt = 1000) => newDelivery(n, { eventId: `evt_${n % 2000}`, acceptedAt });
    await addAll(process, ...Array.from({ length: 1500 }, (_, n) => event(n)));
    clock.time = 2000;
    process.commit.flush();
    const kinds: string[] = [];
    for (const n of [0, 1499]) store.add(event(2000 + n, 2000), ({ kind }) => kinds.push(kind));
    store.add(event(5499, 2000), ({ kind }) => kinds.push(kind));
    process.endTurn();
    expect(kinds).toEqual(['stored', 'stored', 'duplicate']);
  });

  test('need nothing to be removed while no time is over', async () => {
    const process = sqlitePlace().start();
    await addAll(process, newDelivery(1, { eventId: 'evt' }));
    await process.settle();
    expect(process.commits).toEqual([true]);
  });
});

describe('the wall clock', () => {
  test('neither delays deliveries nor makes them due early if it is set', async () => {
    const { clock, clockShift, start } = sqlitePlace();
    const process = start();
    const { store, settle } = process;
    const set = (step: number): void => {
      clock.time += step;
      clockShift.total += step;
    };
    await addAll(process, newDelivery(1, { eventId: 'evt' }), newDelivery(2));
    expect(await takeNumbers(process, 1000)).toEqual([1, 2]);
    store.postpone(id(1), 3000, FAILED);
    await settle();
    set(-900.25);
    expect(await store.find(id(1))).toMatchObject({ acceptedAt: 100, state: { kind: 'waiting', until: 2100 } });
    expect([await nextDueAt(store, '/hooks'), await takeNumbers(process, 2099)]).toEqual([2100, []]);
    const added = newDelivery(3, { eventId: 'evt', acceptedAt: 100, duplicatesUntil: 1100 });
    expect(await addAll(process, added)).toEqual([{ kind: 'duplicate', id: id(1) }]);
    await addAll(process, newDelivery(4, { acceptedAt: 100 }));
    expect([await takeNumbers(process, 100), await takeNumbers(process, 2100)]).toEqual([[4], [1]]);
    store.end(id(2), 'delivered', 200, FAILED);
    await settle();
    set(1e6);
    await settle();
    expect((await store.find(id(2)))?.state).toEqual({ kind: 'delivered', at: 1_000_200 });
  });

  test('may go back after deliveries were taken: those that are due earlier now are found', async () => {
    const process = sqlitePlace().start();
    await addAll(process, newDelivery(1, { acceptedAt: 5000 }));
    expect(await takeNumbers(process, 5000)).toEqual([1]);
    await addAll(process, newDelivery(2, { acceptedAt: 1000 }));
    expect([await nextDueAt(process.store, '/hooks'), await takeNumbers(process, 1000)]).toEqual([1000, [2]]);
  });
});

describe('queries', () => {
  const WITHOUT_LIMIT = /\b(SCAN|TEMP B-TREE|AUTOMATIC)\b/;
  const planOf = (db: DatabaseSync, sql: string): string[] =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => String(detail));

  test.each([
    ...Object.entries(DELIVERY_QUERIES),
    ['due at the same time', dueAtSameTime(ROUTE_COLUMNS)],
    ['due later', dueLater(ROUTE_COLUMNS)],
    ['due of a client at the same time', dueAtSameTime(CLIENT_COLUMNS)],
    ['due of a client later', dueLater(CLIENT_COLUMNS)],
    ['next sender', NEXT_SENDER],
    ['next owner', NEXT_OWNER],
    ['client', CLIENT_OF],
    ['first event', 'SELECT event, until FROM delivery_events ORDER BY until LIMIT 1'],
  ] as const)('read no more rows than they return, in an index: %s', (name, sql) => {
    const { db } = sqlitePlace().start().database;
    const plan = planOf(db, sql);
    expect(plan.length).toBeGreaterThan(0);
    const scans = plan.filter((step) => WITHOUT_LIMIT.test(step));
    // In the order of an index, up to the limit.
    expect(
      scans.filter((step) => name !== 'first event' || !/COVERING INDEX delivery_events_by_end/.test(step)),
    ).toEqual([]);
  });

  test('find what is due in an index that does not contain blocked deliveries', () => {
    const { db } = sqlitePlace().start().database;
    expect([planOf(db, dueLater(ROUTE_COLUMNS)), planOf(db, dueAtSameTime(ROUTE_COLUMNS))]).toEqual([
      ['SEARCH deliveries USING COVERING INDEX deliveries_due (route=? AND until>? AND until<?)'],
      ['SEARCH deliveries USING COVERING INDEX deliveries_due (route=? AND until=? AND rowid>?)'],
    ]);
    const ofClient = [dueLater(CLIENT_COLUMNS), dueAtSameTime(CLIENT_COLUMNS), NEXT_SENDER, NEXT_OWNER];
    expect(ofClient.map((sql) => planOf(db, sql))).toEqual(
      [
        '(route=? AND sender=? AND owner=? AND until>? AND until<?)',
        '(route=? AND sender=? AND owner=? AND until=? AND rowid>?)',
        '(route=? AND sender>?)',
        '(route=? AND sender=? AND owner>?)',
      ].map((search) => [`SEARCH deliveries USING COVERING INDEX deliveries_by_client ${search}`]),
    );
    expect(planOf(db, DELIVERY_QUERIES.unblock).join()).toContain(
      'COVERING INDEX deliveries_in_order (route=? AND order_key=? AND state=?)',
    );
  });
});

describe('the file', () => {
  const FIELDS = {
    target: '/hooks/a-secret-target',
    headers: ['Authorization', 'a-secret-header'],
    peer: '192.0.2.99',
  };

  test('contains no message in the clear, and nothing of one when it is removed but its ciphertext', async () => {
    const process = sqlitePlace().start();
    const message = { ...newDelivery(1).message, ...FIELDS, body: Buffer.from('a-secret-body') };
    await addAll(process, { ...newDelivery(1), message });
    expect(await process.store.message(id(1))).toEqual(message);
    const { file } = process.database;
    const bytes = Buffer.concat([readFileSync(file), readFileSync(`${file}-wal`)]);
    expect(bytes.includes(id(1))).toBe(true);
    for (const text of ['a-secret', FIELDS.peer]) expect([text, bytes.includes(text)]).toEqual([text, false]);
  });

  test.each([
    ['is overwritten', 'UPDATE delivery_messages SET sealed = zeroblob(100) WHERE number = 2'],
    ['is missing', 'DELETE FROM delivery_messages WHERE number = 2'],
    [
      'is that of another delivery',
      'UPDATE delivery_messages SET sealed = (SELECT sealed FROM delivery_messages WHERE number = 1) WHERE number = 2',
    ],
  ])('may have a message that %s: its delivery alone is dead', async (_, damage) => {
    const process = sqlitePlace().start();
    await addAll(process, ...range(1, 3));
    process.database.db.exec(damage);
    expect(
      (await process.store.takeDue('/hooks', 1000, 9)).deliveries.map(({ delivery }) => numberOf(delivery.id)),
    ).toEqual([1, 3]);
    expect([process.unreadable, await process.store.message(id(2))]).toEqual([[id(2)], undefined]);
    await process.settle();
    expect(process.store.totals.counts).toMatchObject({ dead: 1, sending: 2 });
  });

  test('ends no more unreadable deliveries at a time than are asked for, so that a changed secret blocks no process', async () => {
    const { start } = sqlitePlace();
    const first = start();
    const client = (n: number) => ({ owner: `client-${n % 3}` });
    await addAll(first, ...range(1, 40).map((delivery, n) => ({ ...delivery, ...client(n) })));
    const process = start({ secret: 'another secret' });
    const taken = await process.store.takeDue('/hooks', 1000, 10, 10);
    expect([taken.deliveries, process.unreadable.length]).toEqual([[], 10]);
    // The others are due: the route is looked at again.
    expect(taken.nextDueAt).toBe(1000);
    await process.settle();
    expect(process.store.totals.counts).toMatchObject({ dead: 10, waiting: 30 });
  });

  test('is not read once it is closed, nor if it is damaged', async () => {
    const process = sqlitePlace().start();
    await addAll(process, newDelivery(1));
    process.database.db.exec('DROP INDEX deliveries_due; ALTER TABLE deliveries RENAME COLUMN upstream TO renamed');
    process.database.db.exec('ALTER TABLE deliveries RENAME COLUMN until TO lost');
    expect([await takeNumbers(process, 1000), process.problems.length]).toEqual([[], 1]);
    process.database.close();
    const { store } = process;
    expect(await store.takeDue('/hooks', 1000, 9)).toEqual({ deliveries: [], nextDueAt: undefined });
    const reads = [store.find(id(1)), store.list({ limit: 9 }), store.message(id(1))];
    for (const read of [...reads, store.retry(id(1), 1), store.cancel(id(1), 1)]) {
      await expect(read).rejects.toThrow(DeliveriesUnavailable);
    }
    expect([store.totals.oldestAt, process.problems.length]).toEqual([undefined, 1]);
  });
});
