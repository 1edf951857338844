/** What each store of deliveries does, wherever it stores them. */
import { describe, expect, test } from 'vitest';
import type { NewDelivery } from '../../../src/core/delivery/delivery-store.ts';
import type { DeliveryAttempt } from '../../../src/core/delivery/delivery.ts';
import {
  addAll,
  deliveryId,
  type DeliveryPlace,
  newDelivery,
  nextDueAt,
  numberOf,
  type StoreProcess,
  takeNumbers,
} from './delivery-place.ts';

const STORED = { kind: 'stored' };
const FAILED: DeliveryAttempt = { at: 1500, took: 20, status: 503, reason: 'not_acknowledged' };
const id = deliveryId;

export function describeDeliveryStore(name: string, makePlace: () => DeliveryPlace): void {
  const range = (from: number, to: number, changes: Partial<NewDelivery> = {}): NewDelivery[] =>
    Array.from({ length: to - from + 1 }, (_, i) => newDelivery(from + i, changes));

  describe(`deliveries in ${name}`, () => {
    test('are stored as they were added, and are due at once', async () => {
      const process = await makePlace().start();
      const message = {
        ...{ method: 'PUT', target: '/hooks/ü?a=%00', peer: '2001:db8::1' },
        headers: ['Host', 'a.test', 'X-Empty', '', 'X-Twice', 'ÿé', 'X-Twice', 'x'.repeat(300)],
        body: Buffer.from(Array.from({ length: 70_000 }, (_, i) => i % 256)),
      };
      const added = newDelivery(1, { eventId: 'evt_1', orderKey: 'order_1', message });
      expect(await addAll(process, added)).toEqual([STORED]);
      const { message: _, duplicatesUntil: __, ...kept } = added;
      const stored = { ...kept, attempts: 0, lastAttempt: undefined, startedAt: undefined };
      expect(await process.store.find(id(1))).toEqual({ ...stored, state: { kind: 'waiting', until: 1000 } });
      expect(await process.store.message(id(1))).toEqual(message);
      expect([await process.store.find(id(2)), await process.store.message(id(2))]).toEqual([undefined, undefined]);
      expect((await process.store.takeDue('/hooks', 1000, 1)).deliveries).toEqual([
        { delivery: { ...stored, state: { kind: 'sending', since: 1000 } }, message },
      ]);
      expect((await process.store.find(id(1)))?.state).toEqual({ kind: 'sending', since: 1000 });
    });

    test('are not due before they are stored', async () => {
      const process = await makePlace().start();
      const results: unknown[] = [];
      process.store.add(newDelivery(1), (result) => results.push(result));
      expect([results, await takeNumbers(process, 5000), await nextDueAt(process.store, '/hooks')]).toEqual([
        [],
        [],
        undefined,
      ]);
      await process.settle();
      expect([results, process.reportedDue()]).toEqual([[STORED], ['/hooks']]);
      expect(await takeNumbers(process, 5000)).toEqual([1]);
    });

    test('are taken once each, those that are due first first, up to the limit, of one route', async () => {
      const process = await makePlace().start();
      const { store } = process;
      await addAll(process, newDelivery(1, { acceptedAt: 1002 }), newDelivery(2, { acceptedAt: 1001 }));
      await addAll(process, ...range(3, 4), newDelivery(5, { route: '/other' }), newDelivery(6, { acceptedAt: 2000 }));
      expect([
        await nextDueAt(store, '/hooks'),
        await nextDueAt(store, '/other'),
        await nextDueAt(store, '/none'),
      ]).toEqual([...[1000, 1000, undefined]]);
      expect(await takeNumbers(process, 999)).toEqual([]);
      expect(await takeNumbers(process, 1999, 3)).toEqual([3, 4, 2]);
      expect(await nextDueAt(store, '/hooks')).toBe(1002);
      expect([await takeNumbers(process, 1999), await takeNumbers(process, 1999)]).toEqual([[1], []]);
      expect(await nextDueAt(store, '/hooks')).toBe(2000);
      expect(await takeNumbers(process, 1999, 9, '/other')).toEqual([5]);
      expect(await takeNumbers(process, 2000)).toEqual([6]);
      expect(await nextDueAt(store, '/hooks')).toBe(undefined);
      await process.settle();
      expect(store.totals.counts).toEqual({ waiting: 0, sending: 6, delivered: 0, dead: 0, canceled: 0, unknown: 0 });
    });

    test('that are postponed are due again at that time, with the attempt counted', async () => {
      const process = await makePlace().start();
      const { store, settle } = process;
      await addAll(process, ...range(1, 3));
      await takeNumbers(process, 1000);
      store.postpone(id(1), 4000, FAILED);
      store.postpone(id(2), 1000, undefined);
      expect(await takeNumbers(process, 9000)).toEqual([]); // not before this is stored
      process.reportedDue();
      await settle();
      expect(process.reportedDue()).toEqual(['/hooks']);
      expect(await store.find(id(1))).toMatchObject({ attempts: 1, lastAttempt: FAILED });
      expect((await store.find(id(1)))?.state).toEqual({ kind: 'waiting', until: 4000 });
      expect(await store.find(id(2))).toMatchObject({ attempts: 0, lastAttempt: undefined });
      expect(await nextDueAt(store, '/hooks')).toBe(1000);
      expect(await takeNumbers(process, 3999)).toEqual([2]);
      expect([await nextDueAt(store, '/hooks'), await takeNumbers(process, 4000)]).toEqual([4000, [1]]);
      const second = { at: 4000, took: 3, status: undefined, reason: 'connect' };
      store.postpone(id(1), 5000, second);
      await settle();
      expect(await store.find(id(1))).toMatchObject({ attempts: 2, lastAttempt: second });
    });

    test('that are over are not due, and are kept with their messages for a time', async () => {
      const { clock, start } = makePlace();
      const process = await start();
      const { store, settle } = process;
      await addAll(process, ...range(1, 2));
      await takeNumbers(process, 1000);
      const attempt = { at: 1500, took: 20, status: 200, reason: undefined };
      store.end(id(1), 'delivered', 1520, attempt);
      store.end(id(2), 'dead', 1520, undefined);
      await settle();
      expect([await takeNumbers(process, 1e9), await nextDueAt(store, '/hooks')]).toEqual([[], undefined]);
      expect(await store.find(id(1))).toMatchObject({ state: { kind: 'delivered', at: 1520 }, attempts: 1 });
      expect((await store.find(id(1)))?.lastAttempt).toEqual(attempt);
      expect(await store.find(id(2))).toMatchObject({ state: { kind: 'dead', at: 1520 }, attempts: 0 });
      expect(store.totals).toMatchObject({ counts: { waiting: 0, delivered: 1, dead: 1 }, oldestAt: undefined });
      clock.time = 1520 + 4999;
      await settle();
      expect((await store.message(id(1)))?.target).toBe('/hooks?n=1');
      clock.time = 1520 + 5000;
      await settle();
      expect([await store.find(id(1)), await store.message(id(1)), (await store.find(id(2)))?.id]).toEqual([
        undefined,
        undefined,
        id(2),
      ]);
      clock.time = 1520 + 9000;
      await settle();
      expect([await store.find(id(2)), store.totals.counts.dead, store.totals.bytes]).toEqual([undefined, 0, 0]);
    });

    test('outlive the process: those that were being sent are due again', async () => {
      const { start } = makePlace();
      const first = await start();
      await addAll(first, ...range(1, 5));
      await takeNumbers(first, 1000, 4);
      first.store.postpone(id(1), 7000, FAILED);
      first.store.end(id(2), 'delivered', 1600, FAILED);
      await first.settle();
      first.store.end(id(3), 'delivered', 1600, FAILED); // not stored
      const bytes = first.store.totals.bytes;
      const second = await start();
      expect(second.store.totals).toEqual({
        ...{
          counts: { waiting: 4, sending: 0, delivered: 1, dead: 0, canceled: 0, unknown: 0 },
          bytes,
          oldestAt: 1000,
        },
      });
      expect(await takeNumbers(second, 6999)).toEqual([3, 4, 5]);
      expect(await second.store.find(id(3))).toMatchObject({ attempts: 0, lastAttempt: undefined });
      expect(await takeNumbers(second, 7000)).toEqual([1]);
      expect(await second.store.find(id(1))).toMatchObject({ attempts: 1, lastAttempt: FAILED });
      expect((await second.store.message(id(2)))?.body.toString()).toBe('{"n":2}');
    });

    test('that end with a result keep it as long as themselves, in the next process too', async () => {
      const { clock, start } = makePlace();
      const first = await start();
      await addAll(first, newDelivery(1, { kind: 'write' }), ...range(2, 3, { kind: 'write' }), newDelivery(4));
      expect(await takeNumbers(first, 1000, 3)).toEqual([1, 2, 3]);
      expect([await first.store.result(id(1)), await first.store.result(id(9))]).toEqual([undefined, undefined]);
      const before = first.store.totals.bytes;
      const attempt = { at: 1500, took: 20, status: 402, reason: undefined };
      const result = { status: 402, headers: ['X-A', 'ü', 'X-A', ''], body: Buffer.from([0, 255, 7]) };
      const withoutBody = { status: 201, headers: [], body: undefined };
      first.store.end(id(1), 'delivered', 1520, attempt, result);
      first.store.end(id(2), 'delivered', 1520, attempt, withoutBody);
      first.store.end(id(3), 'unknown', 1520, attempt);
      await first.settle();
      const { totals } = first.store;
      expect(totals.counts).toEqual({ waiting: 1, sending: 0, delivered: 2, dead: 0, canceled: 0, unknown: 1 });
      expect(totals.bytes).toBeGreaterThan(before + result.body.length);
      const { store, settle } = await start();
      expect(store.totals).toEqual(totals);
      const results = await Promise.all([1, 2, 3, 4].map((n) => store.result(id(n))));
      expect(results).toEqual([result, withoutBody, undefined, undefined]);
      const kinds = await Promise.all([1, 3, 4].map(async (n) => (await store.find(id(n)))?.kind));
      expect(kinds).toEqual(['write', 'write', 'message']);
      expect(await store.find(id(3))).toMatchObject({ state: { kind: 'unknown', at: 1520 }, attempts: 1 });
      clock.time = 1520 + 5000;
      await settle();
      expect([await store.result(id(1)), (await store.find(id(3)))?.id]).toEqual([undefined, id(3)]);
      clock.time = 1520 + 9000;
      await settle();
      expect([await store.find(id(3)), store.totals.bytes]).toEqual([undefined, before / 4]);
    });

    test('that end with a callback store it in the same step', async () => {
      const { start } = makePlace();
      const write = newDelivery(1, { kind: 'write', orderKey: 'k' });
      const callback = newDelivery(2, { route: '/callbacks', acceptedAt: 1500 });
      const result = { status: 201, headers: ['X-A', 'b'], body: Buffer.from('charged') };
      const end = ({ store }: Pick<StoreProcess, 'store'>): void =>
        store.end(id(1), 'delivered', 1500, FAILED, result, callback);
      const first = await start();
      await addAll(first, write);
      await takeNumbers(first, 1000);
      end(first); // not stored
      const second = await start();
      expect([await takeNumbers(second, 1500, 1, '/callbacks'), await takeNumbers(second, 1500)]).toEqual([[], [1]]);
      second.reportedDue();
      end(second);
      await second.settle();
      expect([second.callbacks, second.reportedDue().includes('/callbacks')]).toEqual([[['/callbacks', true]], true]);
      const { store } = await start();
      expect([(await store.find(id(1)))?.state.kind, await store.result(id(1))]).toEqual(['delivered', result]);
      expect(store.totals.counts).toMatchObject({ waiting: 1, delivered: 1 });
      const [due] = (await store.takeDue('/callbacks', 1500, 9)).deliveries;
      const { message, duplicatesUntil: _, ...fields } = callback;
      expect([due?.delivery, due?.message]).toEqual([
        {
          ...fields,
          attempts: 0,
          startedAt: undefined,
          lastAttempt: undefined,
          state: { kind: 'sending', since: 1500 },
        },
        message,
      ]);
    });

    test('that end without room for their callback end without it', async () => {
      const process = await makePlace().start({ maxCount: 2 });
      const { store, callbacks } = process;
      await addAll(process, newDelivery(1, { kind: 'write' }), newDelivery(2));
      await takeNumbers(process, 1000);
      store.end(id(1), 'dead', 1500, FAILED, undefined, newDelivery(3, { route: '/callbacks' }));
      await process.settle();
      expect([(await store.find(id(1)))?.state.kind, callbacks]).toEqual(['dead', [['/callbacks', false]]]);
      expect([await store.find(id(3)), store.bounds[0]]).toEqual([
        undefined,
        { name: 'deliveries', used: 1, reached: 1 },
      ]);
    });

    test('that end make room for their callback as for any other delivery', async () => {
      const process = await makePlace().start({ maxCount: 2 });
      const { store, settle } = process;
      await addAll(process, newDelivery(1, { kind: 'write' }), newDelivery(2, { kind: 'write' }));
      await takeNumbers(process, 1000);
      store.end(id(1), 'delivered', 1500, FAILED);
      await settle();
      store.end(id(2), 'unknown', 1600, FAILED, undefined, newDelivery(3, { route: '/callbacks' }));
      await settle();
      expect([process.callbacks, await store.find(id(1))]).toEqual([[['/callbacks', true]], undefined]);
      expect((await store.list({ limit: 9 })).map((each) => numberOf(each.id))).toEqual([2, 3]);
    });

    test('that are writes are no duplicates of one that is no longer stored, and messages are', async () => {
      const { clock, start } = makePlace();
      const process = await start();
      const { store, settle } = process;
      const event = (n: number, kind: NewDelivery['kind']) =>
        newDelivery(n, { kind, eventId: kind, duplicatesUntil: 1e6 });
      await addAll(process, event(1, 'write'), event(2, 'message'));
      await takeNumbers(process, 1000);
      store.end(id(1), 'delivered', 1500, FAILED);
      store.end(id(2), 'delivered', 1500, FAILED);
      await settle();
      expect(await addAll(process, event(3, 'write'))).toEqual([{ kind: 'duplicate', id: id(1) }]);
      clock.time = 1500 + 5000;
      await settle();
      expect(await store.find(id(1))).toBe(undefined);
      expect(await addAll(process, event(4, 'write'), event(5, 'message'))).toEqual([
        STORED,
        { kind: 'duplicate', id: id(2) },
      ]);
      expect(await addAll(process, event(6, 'write'))).toEqual([{ kind: 'duplicate', id: id(4) }]);
    });

    test('lose their result if they are retried', async () => {
      const process = await makePlace().start();
      const { store, settle } = process;
      await addAll(process, newDelivery(1, { kind: 'write' }));
      const { bytes } = store.totals;
      const end = async (kind: 'dead' | 'unknown', status: number): Promise<void> => {
        await takeNumbers(process, 5000);
        store.end(id(1), kind, 2000, FAILED, { status, headers: [], body: Buffer.from('later') });
        await settle();
      };
      await end('unknown', 503);
      expect(await store.retry(id(1), 3000)).toBe(true);
      await settle();
      expect([await store.result(id(1)), store.totals.bytes]).toEqual([undefined, bytes]);
      await end('dead', 429);
      expect((await store.result(id(1)))?.status).toBe(429);
    });

    test('with an event of the same route that is remembered are duplicates, also in the same turn', async () => {
      const { clock, start } = makePlace();
      const first = await start();
      const event = (n: number, route = '/hooks', acceptedAt = 1000) =>
        newDelivery(n, { eventId: 'evt', route, acceptedAt });
      const duplicate = { kind: 'duplicate', id: id(1) };
      expect(await addAll(first, event(1), event(2), event(3, '/other'), newDelivery(4, { eventId: 'evt2' }))).toEqual([
        ...[STORED, duplicate, STORED, STORED],
      ]);
      expect(await addAll(first, event(5))).toEqual([duplicate]);
      await takeNumbers(first, 1000);
      first.store.end(id(1), 'dead', 1000, undefined);
      await first.settle();
      const second = await start();
      clock.time = 1999;
      expect(await addAll(second, event(6))).toEqual([duplicate]);
      clock.time = 2000;
      expect(await addAll(second, event(7, '/hooks', 2000), event(8, '/hooks', 2000))).toEqual([
        ...[STORED, { kind: 'duplicate', id: id(7) }],
      ]);
      expect((await second.store.list({ limit: 9 })).map((each) => each.id)).toEqual([1, 3, 4, 7].map(id));
    });

    test('with an id that is stored are duplicates', async () => {
      const process = await makePlace().start();
      expect(await addAll(process, newDelivery(1), newDelivery(1))).toEqual([STORED, { kind: 'duplicate', id: id(1) }]);
      expect(process.store.totals.counts.waiting).toBe(1);
    });
  });

  describe(`deliveries in ${name} with an order key`, () => {
    const keyed = (n: number, orderKey = 'order', route = '/hooks') => newDelivery(n, { orderKey, route });

    test('are due one after the other, in the order of acceptance', async () => {
      const { start } = makePlace();
      const process = await start();
      const { store, settle } = process;
      await addAll(process, keyed(1), keyed(2), keyed(3, 'other'), newDelivery(4), keyed(5, 'order', '/other'));
      await addAll(process, keyed(6));
      expect(await takeNumbers(process, 1000)).toEqual([1, 3, 4]);
      expect(await takeNumbers(process, 1000, 9, '/other')).toEqual([5]);
      expect([await nextDueAt(store, '/hooks'), (await store.find(id(2)))?.state.kind]).toEqual([undefined, 'waiting']);
      store.postpone(id(1), 3000, FAILED);
      await settle();
      expect([await takeNumbers(process, 2999), await nextDueAt(store, '/hooks')]).toEqual([[], 3000]);
      expect(await takeNumbers(process, 3000)).toEqual([1]);
      store.end(id(1), 'dead', 3100, FAILED);
      process.reportedDue();
      await settle();
      expect([process.reportedDue(), store.totals.counts.waiting]).toEqual([['/hooks'], 2]);
      expect([await nextDueAt(store, '/hooks'), await takeNumbers(process, 3100)]).toEqual([3100, [2]]);
      store.end(id(2), 'delivered', 3200, FAILED);
      await settle();
      expect(await takeNumbers(process, 3200)).toEqual([6]);
      store.end(id(6), 'delivered', 3300, FAILED);
      await settle();
      await addAll(process, keyed(7));
      expect(await takeNumbers(process, 3300)).toEqual([7]);
    });

    test('keep their order in the next process', async () => {
      const { start } = makePlace();
      const first = await start();
      await addAll(first, keyed(1), keyed(2), keyed(3));
      expect(await takeNumbers(first, 1000)).toEqual([1]);
      const second = await start();
      expect(await takeNumbers(second, 1000)).toEqual([1]);
      second.store.end(id(1), 'delivered', 1000, undefined);
      await second.settle();
      const third = await start();
      expect([await takeNumbers(third, 1000), await takeNumbers(third, 1000)]).toEqual([[2], []]);
    });

    test('leave the order if they are canceled, and join it again if they are retried', async () => {
      const process = await makePlace().start();
      const { store, settle } = process;
      await addAll(process, keyed(1), keyed(2), keyed(3));
      const changed = process.isChangedAtOnce ? 'canceled' : 'waiting';
      expect([await store.cancel(id(2), 1100), (await store.find(id(2)))?.state.kind]).toEqual([true, changed]);
      await settle();
      expect(await takeNumbers(process, 1100)).toEqual([1]);
      store.end(id(1), 'dead', 1200, FAILED);
      await settle();
      expect([await store.retry(id(1), 1300), await store.retry(id(2), 1300)]).toEqual([true, true]);
      await settle();
      expect(await takeNumbers(process, 1300)).toEqual([3]);
      store.end(id(3), 'delivered', 1400, FAILED);
      await settle();
      expect(await takeNumbers(process, 1400)).toEqual([1]);
      store.end(id(1), 'delivered', 1500, FAILED);
      await settle();
      expect(await takeNumbers(process, 1500)).toEqual([2]);
    });

    test('are due if the one before is canceled', async () => {
      const process = await makePlace().start();
      await addAll(process, keyed(1), keyed(2));
      await process.store.cancel(id(1), 1000);
      if (!process.isChangedAtOnce) expect(await takeNumbers(process, 1000)).toEqual([]);
      await process.settle();
      expect(await takeNumbers(process, 1000)).toEqual([2]);
    });
  });

  describe(`an operator of deliveries in ${name}`, () => {
    test('cancels those that wait', async () => {
      const process = await makePlace().start();
      const { store, settle } = process;
      await addAll(process, ...range(1, 3));
      await takeNumbers(process, 1000, 1);
      const cancel = (n: number): Promise<boolean> => store.cancel(id(n), 1100);
      expect([await cancel(1), await cancel(2), await cancel(2), await cancel(4)]).toEqual([false, true, false, false]);
      expect(await takeNumbers(process, 9000, 1)).toEqual([3]);
      if (!process.isChangedAtOnce) expect(await store.retry(id(2), 1100)).toBe(false);
      await settle();
      expect(await store.find(id(2))).toMatchObject({ state: { kind: 'canceled', at: 1100 }, attempts: 0 });
      expect([await cancel(2), store.totals.counts.canceled, await takeNumbers(process, 9000)]).toEqual([false, 1, []]);
    });

    test('retries those that are dead, canceled or waiting, with a new schedule', async () => {
      const process = await makePlace().start();
      const { store, settle } = process;
      await addAll(process, ...range(1, 5));
      expect(await takeNumbers(process, 1000, 4)).toEqual([1, 2, 3, 4]);
      store.end(id(1), 'dead', 1520, FAILED);
      store.end(id(2), 'delivered', 1520, FAILED);
      store.postpone(id(3), 8000, FAILED);
      await store.cancel(id(5), 1520);
      await settle();
      const retry = (n: number): Promise<boolean> => store.retry(id(n), 2000);
      expect(await Promise.all([1, 2, 3, 4, 5, 6].map(retry))).toEqual([true, false, true, false, true, false]);
      if (!process.isChangedAtOnce) {
        const meanwhile = [await retry(1), await store.cancel(id(3), 2000), await takeNumbers(process, 9000)];
        expect(meanwhile).toEqual([false, false, []]);
      }
      await settle();
      expect(await takeNumbers(process, 1999)).toEqual([]);
      const started = { attempts: 0, startedAt: undefined, state: { kind: 'waiting', until: 2000 } };
      for (const n of [1, 3, 5]) expect(await store.find(id(n))).toMatchObject(started);
      expect(store.totals.counts).toEqual({ waiting: 3, sending: 1, delivered: 1, dead: 0, canceled: 0, unknown: 0 });
      expect(await takeNumbers(process, 2000)).toEqual([1, 3, 5]);
    });

    test('keeps those that are retried, however long ago they ended', async () => {
      const { clock, start } = makePlace();
      const process = await start();
      await addAll(process, newDelivery(1));
      await takeNumbers(process, 1000);
      process.store.end(id(1), 'dead', 1000, FAILED);
      await process.settle();
      clock.time = 5000;
      await process.store.retry(id(1), 5000);
      await process.settle();
      clock.time = 1e6;
      await process.settle();
      expect(await takeNumbers(process, 1e6)).toEqual([1]);
    });

    test('lists them by state, route and page, in the order of acceptance', async () => {
      const { clock, start } = makePlace();
      const process = await start();
      const { store, settle } = process;
      await addAll(process, ...range(1, 4), ...range(5, 6, { route: '/other' }), ...range(7, 9, { orderKey: 'k' }));
      await takeNumbers(process, 1000, 3);
      store.end(id(1), 'dead', 1000, FAILED);
      store.end(id(2), 'delivered', 1000, FAILED);
      await settle();
      const list = async (filter: Parameters<typeof store.list>[0]): Promise<number[]> =>
        (await store.list(filter)).map((each) => Number.parseInt(each.id.slice(9, 13), 16));
      expect(await list({ limit: 100 })).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
      expect(await list({ limit: 4 })).toEqual([1, 2, 3, 4]);
      expect(await list({ limit: 4, after: id(4) })).toEqual([5, 6, 7, 8]);
      expect(await list({ limit: 4, after: id(9) })).toEqual([]);
      expect(await list({ limit: 4, route: '/other' })).toEqual([5, 6]);
      expect(await list({ limit: 4, route: '/none' })).toEqual([]);
      expect(await list({ limit: 3, states: ['waiting'] })).toEqual([4, 5, 6]);
      expect(await list({ limit: 9, states: ['sending'] })).toEqual([3]);
      expect(await list({ limit: 9, states: ['sending'], after: id(3) })).toEqual([]);
      expect(await list({ limit: 9, states: ['sending'], route: '/other' })).toEqual([]);
      expect(await list({ limit: 9, states: ['dead', 'delivered', 'sending'] })).toEqual([1, 2, 3]);
      expect(await list({ limit: 9, states: ['waiting'], route: '/hooks', after: id(7) })).toEqual([8, 9]);
      expect(await list({ limit: 9, states: [] })).toEqual([]);
      clock.time = 6000;
      await settle();
      expect([await store.find(id(2)), await list({ limit: 2, after: id(2) })]).toEqual([undefined, [3, 4]]);
    });

    test('lists the newest first, page by page', async () => {
      const { clock, start } = makePlace();
      const process = await start();
      const { store, settle } = process;
      await addAll(process, ...range(1, 4), ...range(5, 6, { route: '/other' }), ...range(7, 9, { orderKey: 'k' }));
      await takeNumbers(process, 1000, 4);
      store.end(id(1), 'dead', 1000, FAILED);
      store.end(id(4), 'delivered', 1000, FAILED);
      await settle();
      const list = async (filter: Omit<Parameters<typeof store.list>[0], 'order'>): Promise<number[]> =>
        (await store.list({ ...filter, order: 'newest' })).map((each) => numberOf(each.id));
      expect(await list({ limit: 100 })).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1]);
      expect(await list({ limit: 4 })).toEqual([9, 8, 7, 6]);
      expect(await list({ limit: 4, after: id(6) })).toEqual([5, 4, 3, 2]);
      expect(await list({ limit: 4, after: id(1) })).toEqual([]);
      expect(await list({ limit: 4, route: '/other' })).toEqual([6, 5]);
      expect(await list({ limit: 3, states: ['waiting'] })).toEqual([9, 8, 7]);
      expect(await list({ limit: 1, states: ['sending'] })).toEqual([3]);
      expect(await list({ limit: 9, states: ['sending'], after: id(3) })).toEqual([2]);
      expect(await list({ limit: 9, states: ['dead', 'delivered', 'sending'] })).toEqual([4, 3, 2, 1]);
      expect((await store.list({ limit: 2, order: 'oldest' })).map((each) => numberOf(each.id))).toEqual([1, 2]);
      clock.time = 6000;
      await settle();
      expect([await store.find(id(4)), await list({ limit: 2, after: id(4) })]).toEqual([undefined, [3, 2]]);
      expect(await list({ limit: 2, after: id(20) })).toEqual([9, 8]);
    });
  });

  describe(`the bounds of deliveries in ${name}`, () => {
    test('refuse what would exceed the number, until some are over', async () => {
      const { start } = makePlace();
      const process = await start({ maxCount: 3 });
      const { store, settle } = process;
      const full = { kind: 'full' };
      expect(await addAll(process, ...range(1, 4, {}), newDelivery(5, { eventId: 'evt' }))).toEqual([
        ...[STORED, STORED, STORED, full, full],
      ]);
      expect(store.bounds[0]).toEqual({ name: 'deliveries', used: 1, reached: 2 });
      await takeNumbers(process, 1000, 2);
      store.end(id(1), 'dead', 1000, FAILED);
      await settle();
      expect(await addAll(process, newDelivery(6))).toEqual([full]);
      store.end(id(2), 'delivered', 1000, FAILED);
      await settle();
      expect(store.bounds[0]?.used).toBeCloseTo(2 / 3);
      expect(await addAll(process, newDelivery(7, { eventId: 'evt' }), newDelivery(8))).toEqual([STORED, full]);
      // Delivered ones make room; dead ones stay.
      expect([(await store.find(id(1)))?.state.kind, await store.find(id(2))]).toEqual(['dead', undefined]);
      expect((await start({ maxCount: 3 })).store.bounds[0]?.used).toBe(1);
    });

    test('refuse what would exceed the bytes, until some are over', async () => {
      const process = await makePlace().start({ maxBytes: 10_000 });
      const { store, settle } = process;
      const large = (n: number, length = 4000) => {
        const delivery = newDelivery(n);
        return { ...delivery, message: { ...delivery.message, body: Buffer.alloc(length, 'x') } };
      };
      const full = { kind: 'full' };
      expect(await addAll(process, large(1), large(2), large(3), newDelivery(4), large(5, 20_000))).toEqual([
        ...[STORED, STORED, full, STORED, full],
      ]);
      expect(store.bounds[1]).toMatchObject({ name: 'delivery_bytes', reached: 2 });
      expect(store.totals.bytes).toBeGreaterThan(8000);
      expect(store.bounds[1]?.used).toBeCloseTo(store.totals.bytes / 10_000);
      await takeNumbers(process, 1000, 1);
      store.end(id(1), 'delivered', 1000, FAILED);
      await settle();
      expect(await addAll(process, large(6))).toEqual([STORED]);
      expect([await store.find(id(1)), (await store.find(id(2)))?.id]).toEqual([undefined, id(2)]);
      expect(store.totals.bytes).toBeLessThan(10_000);
    });

    test('forget the events that would be forgotten first, if there are too many', async () => {
      const process = await makePlace().start({ maxEvents: 2 });
      const event = (n: number, eventId: string, duplicatesUntil: number) =>
        newDelivery(n, { eventId, duplicatesUntil });
      expect(await addAll(process, event(1, 'a', 5000), event(2, 'b', 4000), event(3, 'c', 6000))).toEqual([
        ...[STORED, STORED, STORED],
      ]);
      expect(process.store.bounds[2]).toEqual({ name: 'delivery_events', used: 1, reached: 1 });
      expect(await addAll(process, event(4, 'a', 5000), event(5, 'b', 7000))).toEqual([
        ...[{ kind: 'duplicate', id: id(1) }, STORED],
      ]);
    });
  });

  test(`results of deliveries in ${name} that cannot be read are absent`, async () => {
    const { start } = makePlace();
    const first = await start();
    await addAll(first, newDelivery(1, { kind: 'write' }));
    await takeNumbers(first, 1000);
    first.store.end(id(1), 'delivered', 1000, FAILED, { status: 200, headers: [], body: Buffer.from('ok') });
    await first.settle();
    expect(await (await start({ secret: 'another secret' })).store.result(id(1))).toBe(undefined);
    expect((await (await start()).store.result(id(1)))?.body?.toString()).toBe('ok');
  });

  test(`writes in ${name} that cannot be read end as unknown: they may have been sent before`, async () => {
    const { start } = makePlace();
    await addAll(await start(), newDelivery(1, { kind: 'write' }));
    const process = await start({ secret: 'another secret' });
    expect(await takeNumbers(process, 1000)).toEqual([]);
    await process.settle();
    expect([process.unreadable, (await process.store.find(id(1)))?.state.kind]).toEqual([[id(1)], 'unknown']);
  });

  test(`deliveries in ${name} whose messages cannot be read end as dead, and do not stop the others`, async () => {
    const { start } = makePlace();
    const first = await start();
    await addAll(first, ...range(1, 3, { orderKey: 'k' }), newDelivery(4));
    const second = await start({ secret: 'another secret' });
    await addAll(second, newDelivery(5));
    expect(await second.store.message(id(4))).toBe(undefined);
    expect(await takeNumbers(second, 1000)).toEqual([5]);
    expect(second.unreadable).toEqual([id(1), id(4)]);
    await second.settle();
    expect(await second.store.find(id(4))).toMatchObject({ state: { kind: 'dead', at: 1000 }, attempts: 0 });
    expect((await second.store.find(id(4)))?.lastAttempt).toMatchObject({ status: undefined, reason: 'unreadable' });
    expect([await takeNumbers(second, 1000), second.unreadable.length]).toEqual([[], 3]); // the next with the key
    const third = await start();
    expect(await third.store.retry(id(4), 3000)).toBe(true);
    await third.settle();
    expect((await third.store.takeDue('/hooks', 3000, 9)).deliveries.map(({ message }) => message.target)).toContain(
      '/hooks?n=4',
    );
  });
}
