/** Deliveries of workers, which their primary keeps: who takes what, and who is woken. */
import { describe, expect, test } from 'vitest';
import { DeliveriesUnavailable, type DeliveryStore } from '../../../src/core/delivery/delivery-store.ts';
import { deliveryId as id, newDelivery, takeNumbers } from '../../support/deliveries/delivery-place.ts';
import { describeDeliveryStore } from '../../support/deliveries/describe-delivery-store.ts';
import { startDeliveryWorkers, workersPlace, type DeliveryWorker } from '../../support/deliveries/delivery-workers.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

describeDeliveryStore('the primary of workers', workersPlace);

const FAILED = { at: 1000, took: 20, status: 503, reason: 'not_acknowledged' };
const DONE = { at: 1000, took: 20, status: 200, reason: undefined };

/** Workers that have looked for deliveries once, as each does when it begins to serve. */
async function start(count: number, concurrency?: number) {
  const place = sqlitePlace();
  const started = startDeliveryWorkers(place, concurrency);
  const { settle, startWorker } = started;
  const workers = Array.from({ length: count }, startWorker);
  for (const worker of workers) await take(worker);
  const addTo = async ({ store }: DeliveryWorker, ...deliveries: readonly ReturnType<typeof newDelivery>[]) => {
    for (const delivery of deliveries) store.add(delivery, () => undefined);
    await settle();
  };
  const wakes = () => workers.map((worker) => worker.wakes());
  const [first, second] = workers;
  if (first === undefined || second === undefined) throw new Error('two workers are needed');
  return { ...started, clock: place.clock, workers, first, second, addTo, wakes };
}

const take = (worker: Pick<DeliveryWorker, 'store'>, limit = 100, now = 1000): Promise<number[]> =>
  takeNumbers(worker, now, limit);

const range = (from: number, to: number, changes: Parameters<typeof newDelivery>[1] = {}) =>
  Array.from({ length: to - from + 1 }, (_, i) => newDelivery(from + i, changes));

describe('workers', () => {
  test('send no more of a route at a time than its concurrency, all of them together', async () => {
    const { first, second, addTo, settle, settings } = await start(2, 4);
    await addTo(first, ...range(1, 9));
    expect([await take(first), await take(second), await take(first), await take(second)]).toEqual([
      [1, 2],
      [3],
      [4],
      [],
    ]);
    second.store.end(id(3), 'delivered', 1000, DONE);
    expect([await take(first), await take(second)]).toEqual([[5], []]);
    first.store.postpone(id(1), 9000, FAILED);
    first.store.postpone(id(2), 9000, FAILED);
    expect([await take(second), await take(first), await take(second)]).toEqual([[6], [7], []]);
    settings.concurrency = 5;
    expect([await take(second), await take(first)]).toEqual([[8], []]);
    settings.concurrency = 0; // the route does not deliver any more
    for (const n of [4, 5, 6]) for (const { store } of [first, second]) store.end(id(n), 'delivered', 1000, DONE);
    await settle();
    expect([await take(first), await take(second)]).toEqual([[], []]);
  });

  test('end only what they have taken', async () => {
    const { first, second, addTo, settle } = await start(2);
    await addTo(first, newDelivery(1));
    expect(await take(first)).toEqual([1]);
    second.store.end(id(1), 'delivered', 1000, DONE);
    await settle();
    expect((await second.store.find(id(1)))?.state.kind).toBe('sending');
  });

  test('read, retry and cancel what others send', async () => {
    const { first, second, addTo, settle } = await start(2);
    await addTo(first, ...range(1, 2));
    expect(await take(first, 1)).toEqual([1]);
    expect((await second.store.list({ limit: 9 })).map(({ state }) => state.kind)).toEqual(['sending', 'waiting']);
    expect([await second.store.cancel(id(1), 1000), await second.store.cancel(id(2), 1000)]).toEqual([false, true]);
    await settle();
    expect([await second.store.retry(id(2), 1000), (await second.store.message(id(1)))?.body.toString()]).toEqual([
      true,
      '{"n":1}',
    ]);
  });
});

describe('when a worker ends', () => {
  test('others send at once what it has taken, without a counted attempt, and in order', async () => {
    const { first, second, addTo, settle, primary, pass } = await start(2, 8);
    await addTo(first, ...range(1, 3, { orderKey: 'k' }), ...range(4, 6));
    expect([await take(first), await take(second)]).toEqual([[1, 4, 5, 6], []]);
    first.store.end(id(4), 'delivered', 1000, DONE);
    first.store.postpone(id(5), 1000, FAILED);
    await settle();
    first.kill();
    first.store.end(id(6), 'delivered', 1000, DONE); // does not arrive
    await settle();
    expect(primary.store.totals.counts).toMatchObject({ waiting: 5, sending: 0, delivered: 1 });
    await pass(100);
    expect(second.wakes()).toBeGreaterThan(0);
    expect(await take(second)).toEqual([1, 5, 6]);
    expect([await second.store.find(id(1)), await second.store.find(id(5))]).toMatchObject([
      { attempts: 0, lastAttempt: undefined },
      { attempts: 1, lastAttempt: FAILED },
    ]);
    second.store.end(id(1), 'delivered', 1000, DONE);
    await settle();
    expect(await take(second)).toEqual([2]);
  });

  test('others send what it has taken before what was due later', async () => {
    const { clock, ...started } = await start(2, 2);
    const { first, second, addTo, settle } = started;
    await addTo(first, ...range(1, 2), newDelivery(3, { acceptedAt: 1001 }));
    expect([await take(first), await take(second)]).toEqual([[1], [2]]);
    first.store.postpone(id(1), 1100, FAILED);
    await settle();
    clock.time = 2000;
    await addTo(first, newDelivery(4, { acceptedAt: 1200 }));
    expect(await take(second, 1, 2000)).toEqual([3]);
    second.kill();
    await settle();
    expect(await take(first, 100, 2000)).toEqual([2, 3]);
    for (const n of [2, 3]) first.store.end(id(n), 'delivered', 2000, DONE);
    await settle();
    expect(await take(first, 1, 2000)).toEqual([1]);
    const third = started.startWorker();
    first.kill();
    await settle();
    expect(await take(third, 1, 2000)).toEqual([1]);
  });

  test('what it takes at that moment is due again', async () => {
    const { first, second, addTo, settle, server, primary } = await start(2);
    const { takeDue } = primary.store;
    await addTo(first, newDelivery(1));
    primary.store.takeDue = async (...due) => {
      const taken = await takeDue.apply(primary.store, due);
      server.leave(first.number);
      return taken;
    };
    await take(first);
    primary.store.takeDue = takeDue;
    await settle();
    expect(await take(second)).toEqual([1]);
  });

  test('its last messages count, and later ones do not', async () => {
    const { first, second, addTo, settle, server } = await start(2);
    await addTo(first, newDelivery(1));
    await take(first);
    first.store.end(id(1), 'delivered', 1000, DONE);
    first.store.flush();
    first.kill();
    await settle();
    server.onOperations(first.number, [{ do: 'take', query: 99, route: '/hooks', now: 1000, limit: 9 }]);
    await addTo(second, newDelivery(2));
    expect([(await second.store.find(id(1)))?.state.kind, await take(second)]).toEqual(['delivered', [2]]);
  });

  test('one that drains ends its attempts, and others take the rest', async () => {
    const { first, second, addTo, settle, pass, wakes } = await start(2, 2);
    await addTo(second, ...range(1, 3));
    expect([await take(first), await take(second)]).toEqual([[1], [2]]);
    first.store.stopTaking();
    await settle();
    const before = wakes();
    first.store.end(id(1), 'delivered', 1000, DONE);
    await settle();
    await pass(2);
    expect(wakes()).toEqual([before[0], (before[1] ?? 0) + 1]);
    expect(await take(second)).toEqual([3]);
  });
});

describe('a change of the store', () => {
  test('wakes one worker, whichever has added it, and the next one in turn after that', async () => {
    const { first, second, addTo, wakes } = await start(3);
    await addTo(first, ...range(1, 3));
    expect(wakes()).toEqual([1, 0, 0]);
    await addTo(first, ...range(4, 5)); // the first one will look
    expect(wakes()).toEqual([1, 0, 0]);
    expect(await take(first)).toEqual([1, 2, 3, 4, 5]);
    await addTo(first, newDelivery(6));
    expect([wakes(), await take(second)]).toEqual([[1, 1, 0], [6]]);
    expect([await take(first), await take(second)]).toEqual([[], []]); // takes nothing, so it keeps its turn
    await addTo(first, newDelivery(7));
    expect(wakes()).toEqual([1, 1, 1]);
  });

  test('wakes another one if the first is busy, hangs or ends, and none twice before it responds', async () => {
    const { workers, first, addTo, wakes, pass, settle, primary } = await start(3);
    await addTo(first, newDelivery(1));
    await pass(99);
    expect(wakes()).toEqual([1, 0, 0]);
    await pass(1);
    expect(wakes()).toEqual([1, 1, 0]);
    workers[1]?.kill();
    await settle();
    expect(wakes()).toEqual([1, 1, 1]);
    await pass(100);
    await pass(10_000);
    expect(wakes()).toEqual([1, 1, 1]); // none responds
    await first.store.find(id(1));
    expect(wakes()).toEqual([2, 1, 1]);
    expect([await take(first), primary.store.totals.counts.sending]).toEqual([[1], 1]);
    await pass(10_000);
    expect(wakes()).toEqual([2, 1, 1]);
  });

  test('wakes nobody while no more of its route may be sent', async () => {
    const { first, second, addTo, wakes, pass, timers } = await start(2, 1);
    await addTo(first, newDelivery(1));
    expect([await take(first), wakes()]).toEqual([[1], [1, 0]]);
    await addTo(second, ...range(2, 3));
    await pass(10_000);
    expect([wakes(), timers.size]).toEqual([[1, 0], 0]);
  });

  test('is found by the worker that has made room, or by another one soon after', async () => {
    const { first, second, addTo, wakes, pass, settle, timers } = await start(2, 1);
    await addTo(first, ...range(1, 3));
    expect([await take(first), await take(second)]).toEqual([[1], []]);
    first.store.end(id(1), 'delivered', 1000, DONE);
    expect(await take(first)).toEqual([2]);
    await settle();
    expect([wakes(), timers.size]).toEqual([[1, 0], 0]);
    first.store.end(id(2), 'delivered', 1000, DONE);
    await settle();
    await pass(2);
    expect(wakes().reduce((sum, each) => sum + each, 0)).toBe(2);
    expect([...(await take(second)), ...(await take(first))]).toEqual([3]);
  });

  test('lets a worker look when the next delivery is due', async () => {
    const { first, second, addTo, wakes, pass, settle } = await start(2);
    await addTo(first, ...range(1, 2));
    expect([await take(first, 1), await take(second)]).toEqual([[1], [2]]);
    first.store.postpone(id(1), 5000, FAILED);
    second.store.postpone(id(2), 7000, FAILED);
    await settle();
    for (const worker of [first, second]) expect(await take(worker)).toEqual([]);
    const before = wakes();
    await pass(3999);
    expect(wakes()).toEqual(before);
    await pass(1);
    expect(wakes()).toEqual([(before[0] ?? 0) + 1, before[1]]);
    expect(await take(first, 100, 5000)).toEqual([1]);
    await pass(2000);
    expect(wakes()).toEqual([(before[0] ?? 0) + 1, (before[1] ?? 0) + 1]);
    expect(await take(second, 100, 7000)).toEqual([2]);
  });

  test('waits for the first worker that takes deliveries', async () => {
    const { server, primary, startWorker, settle } = startDeliveryWorkers(sqlitePlace());
    const worker = startWorker();
    worker.store.add(newDelivery(1), () => undefined);
    await settle();
    expect(worker.wakes()).toBe(0);
    expect([await take(worker), primary.store.totals.counts.sending]).toEqual([[1], 1]);
    server.stop();
  });
});

describe('a worker whose primary has ended', () => {
  test('answers that nothing can be stored or read, and takes nothing', async () => {
    const { first, addTo } = await start(2);
    await addTo(first, newDelivery(1));
    const { store } = first;
    const results: unknown[] = [];
    const lost = { kind: 'unavailable', why: expect.stringMatching(/primary/) as string };
    store.add(newDelivery(2), (result) => results.push(result));
    const [taken, found] = [take(first), store.find(id(1))];
    first.losePrimary();
    const mayBeStored = { ...lost, mayBeStored: true };
    expect(results).toEqual([mayBeStored]);
    await expect(found).rejects.toThrow(DeliveriesUnavailable);
    expect(await taken).toEqual([]);
    store.add(newDelivery(3), (result) => results.push(result));
    expect(results).toHaveLength(1); // not within the call
    await new Promise(setImmediate);
    expect(results).toEqual([mayBeStored, lost]);
    store.end(id(1), 'delivered', 1000, DONE);
    expect(await take(first)).toEqual([]);
    const calls: ((each: DeliveryStore) => Promise<unknown>)[] = [
      (each) => each.find(id(1)),
      (each) => each.list({ limit: 1 }),
      (each) => each.message(id(1)),
      (each) => each.result(id(1)),
      (each) => each.retry(id(1), 1000),
      (each) => each.cancel(id(1), 1000),
    ];
    for (const call of calls) await expect(call(store)).rejects.toThrow(DeliveriesUnavailable);
  });

  test('answers the same if its database cannot be read', async () => {
    const place = sqlitePlace();
    const { primary, startWorker } = startDeliveryWorkers(place);
    const { store } = startWorker();
    const { database } = primary as ReturnType<typeof place.start>;
    database.close();
    await expect(store.find(id(1))).rejects.toThrow(DeliveriesUnavailable);
    expect(await take({ store })).toEqual([]);
  });
});
