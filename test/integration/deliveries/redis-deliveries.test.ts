/** Replicas that share deliveries in a real Redis: which of them has one, and what happens when Redis or a replica is away. */
import { expect, test } from 'vitest';
import { DeliveriesUnavailable } from '../../../src/core/delivery/delivery-store.ts';
import type { DeliveryAttempt } from '../../../src/core/delivery/delivery.ts';
import { RedisDeliveryStore } from '../../../src/sharing/redis/deliveries/redis-delivery-store.ts';
import { addAll, deliveryId as id, newDelivery, takeNumbers } from '../../support/deliveries/delivery-place.ts';
import { redisPlace } from '../../support/deliveries/redis-place.ts';
import { startCluster } from '../../support/redis/redis-cluster.ts';
import { testConnection } from '../../support/redis/test-connection.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const ATTEMPT: DeliveryAttempt = { at: 1000, took: 5, status: 200, reason: undefined };
/** Nothing that Redis has acknowledged is lost if it is killed. */
const DURABLE = { settings: { appendonly: 'yes', appendfsync: 'always' } };

test('each replica takes what no other one has taken', async () => {
  const { start, join } = redisPlace();
  const one = await start();
  const other = await join();
  await addAll(one, ...Array.from({ length: 40 }, (_, i) => newDelivery(i + 1)));
  const taken = await Promise.all([one, other, one, other].map((each) => takeNumbers(each, 1000, 15)));
  expect(taken.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
  await other.settle();
  expect(other.store.totals.counts).toMatchObject({ waiting: 0, sending: 40 });
});

test('of two replicas that get the same event at the same time, one stores it', async () => {
  const { start, join } = redisPlace();
  const replicas = [await start(), await join()];
  const results = await Promise.all(replicas.map((each, i) => addAll(each, newDelivery(i + 1, { eventId: 'evt' }))));
  const stored = results.findIndex(([result]) => result?.kind === 'stored');
  expect(results[stored]).toEqual([{ kind: 'stored' }]);
  expect(results[1 - stored]).toEqual([{ kind: 'duplicate', id: id(stored + 1) }]);
});

test('what a killed replica was sending is due again once its lease has ended, in order and without a counted attempt', async () => {
  const { start, join, endLeases } = redisPlace();
  const killed = await start();
  const other = await join();
  await addAll(killed, newDelivery(1, { orderKey: 'k' }), newDelivery(2, { orderKey: 'k' }));
  expect(await takeNumbers(killed, 1000)).toEqual([1]);
  expect(await takeNumbers(other, 1000)).toEqual([]);
  await endLeases();
  expect(await takeNumbers(other, 1000)).toEqual([1]);
  expect(await other.store.find(id(1))).toMatchObject({ attempts: 0, state: { kind: 'sending' } });
});

test('a replica that comes back after its lease changes nothing that another one has', async () => {
  const { start, join, endLeases } = redisPlace();
  const suspended = await start();
  const other = await join();
  await addAll(suspended, newDelivery(1), newDelivery(2));
  expect(await takeNumbers(suspended, 1000)).toEqual([1, 2]);
  await endLeases();
  expect(await takeNumbers(other, 1000)).toEqual([1, 2]);
  suspended.store.end(id(1), 'dead', 1100, ATTEMPT);
  suspended.store.postpone(id(2), 9000, ATTEMPT);
  await suspended.settle();
  const found = await Promise.all([1, 2].map((n) => other.store.find(id(n))));
  expect(found.map((each) => [each?.attempts, each?.state.kind])).toEqual([
    [0, 'sending'],
    [0, 'sending'],
  ]);
  other.store.end(id(1), 'delivered', 1200, ATTEMPT);
  await other.settle();
  expect(await suspended.store.find(id(1))).toMatchObject({ attempts: 1, state: { kind: 'delivered' } });
  // It may claim it again.
  other.store.postpone(id(2), 1200, ATTEMPT);
  await other.settle();
  expect(await takeNumbers(suspended, 1200)).toEqual([2]);
});

test('a replica that was suspended for longer than its lease sends nothing twice if it claims that again', async () => {
  const { start, endLeases } = redisPlace();
  const suspended = await start();
  await addAll(suspended, newDelivery(1));
  expect(await takeNumbers(suspended, 1000)).toEqual([1]);
  await endLeases();
  expect(await takeNumbers(suspended, 1000)).toEqual([]);
  expect((await suspended.store.find(id(1)))?.state.kind).toBe('sending');
  suspended.store.end(id(1), 'delivered', 1100, ATTEMPT);
  await suspended.settle();
  expect(await suspended.store.find(id(1))).toMatchObject({ attempts: 1, state: { kind: 'delivered' } });
});

test('a write whose replica has not reported its attempt may have taken effect, until a response settles it', async () => {
  const { start, join, endLeases } = redisPlace();
  const killed = await start();
  const other = await join();
  await addAll(killed, newDelivery(1, { kind: 'write' }), newDelivery(2));
  expect(await takeNumbers(killed, 1000)).toEqual([1, 2]);
  await endLeases();
  await other.settle();
  const marked = { at: 1000, took: 0, status: undefined, reason: 'unknown_lease_ended' };
  expect(await other.store.find(id(1))).toMatchObject({ attempts: 0, startedAt: undefined, lastAttempt: marked });
  expect((await other.store.find(id(2)))?.lastAttempt).toBe(undefined);
  const { deliveries } = await other.store.takeDue('/hooks', 1000, 1);
  expect(deliveries[0]?.delivery).toMatchObject({ id: id(1), attempts: 0, lastAttempt: marked });
  other.store.postpone(id(1), 1000, undefined);
  await other.settle();
  expect((await other.store.find(id(1)))?.lastAttempt).toEqual(marked);
});

test('what a replica reports of a write that it has claimed again while it sends it is ignored', async () => {
  const { start, join, endLeases } = redisPlace();
  const suspended = await start();
  const other = await join();
  await addAll(suspended, newDelivery(1, { kind: 'write' }));
  expect(await takeNumbers(suspended, 1000)).toEqual([1]);
  await endLeases();
  expect(await takeNumbers(other, 1000)).toEqual([1]);
  other.store.postpone(id(1), 1000, { ...ATTEMPT, status: undefined, reason: 'unknown_reset' });
  await other.settle();
  expect(await takeNumbers(suspended, 1000)).toEqual([]);
  suspended.store.end(id(1), 'dead', 1100, { ...ATTEMPT, status: 503, reason: 'status_503' });
  await suspended.settle();
  const found = await other.store.find(id(1));
  expect(found).toMatchObject({ attempts: 1, lastAttempt: { reason: 'unknown_reset' }, state: { until: 2000 } });
  // Its attempt has ended: it may send the write again.
  expect(await takeNumbers(suspended, 2000)).toEqual([1]);
  suspended.store.end(id(1), 'delivered', 2100, ATTEMPT);
  await suspended.settle();
  expect(await other.store.find(id(1))).toMatchObject({ attempts: 2, state: { kind: 'delivered' } });
});

test('the end of a write whose reply is lost is sent again, and stores its callback once', async () => {
  const { start } = redisPlace();
  const process = await start();
  await addAll(process, newDelivery(1, { kind: 'write' }));
  await takeNumbers(process, 1000);
  const change = Reflect.get(process.client, 'tidegateChangeDelivery') as (...args: unknown[]) => Promise<unknown>;
  let calls = 0;
  Reflect.set(process.client, 'tidegateChangeDelivery', async (...args: unknown[]) => {
    calls += 1;
    const reply = await change.apply(process.client, args);
    if (calls === 1) throw new Error('the connection was closed');
    return reply;
  });
  process.store.end(id(1), 'delivered', 1100, ATTEMPT, undefined, newDelivery(2, { route: '/callbacks' }));
  await process.settle();
  expect(process.runLater()).toContain(500);
  await process.settle();
  expect([calls, process.store.totals.counts]).toMatchObject([2, { waiting: 1, sending: 0, delivered: 1 }]);
  expect(await takeNumbers(process, 1100, 9, '/callbacks')).toEqual([2]);
});

test('a replica renews the lease of what it sends', async () => {
  const { start, redis, keyOf } = redisPlace();
  const one = await start();
  await addAll(one, newDelivery(1));
  await takeNumbers(one, 1000);
  const client = (await redis()).client();
  const left = Number(await client.zscore(keyOf('claimed'), id(1))) - 10_000;
  await client.call('ZADD', keyOf('claimed'), 'XX', String(left), id(1));
  expect(one.runLater()).toContain(5000);
  await eventually(
    () => client.zscore(keyOf('claimed'), id(1)),
    (score) => Number(score) > left,
  );
});

test('after Redis was away, replicas have the time of a lease to renew theirs', async () => {
  const { start, join, endLeases, redis, keyOf } = redisPlace();
  const one = await start();
  const other = await join();
  await addAll(one, newDelivery(1));
  await takeNumbers(one, 1000);
  await endLeases();
  const client = (await redis()).client();
  await client.hset(keyOf('counters'), 'seen', 1);
  expect(await takeNumbers(other, 1000)).toEqual([]);
  await client.hset(keyOf('counters'), 'grace', 1);
  expect(await takeNumbers(other, 1000)).toEqual([1]);
});

test('an addition whose reply is lost is sent again, and is stored once', async () => {
  const { start } = redisPlace();
  const process = await start();
  const add = Reflect.get(process.client, 'tidegateAddDelivery') as (...args: unknown[]) => Promise<unknown>;
  let calls = 0;
  Reflect.set(process.client, 'tidegateAddDelivery', async (...args: unknown[]) => {
    calls += 1;
    const reply = await add.apply(process.client, args);
    if (calls === 1) throw new Error('the connection was closed');
    return reply;
  });
  expect(await addAll(process, newDelivery(1, { eventId: 'evt' }))).toEqual([{ kind: 'stored' }]);
  expect([calls, process.store.totals.counts.waiting]).toEqual([2, 1]);
});

test('what is taken by a call whose reply comes too late is due again at once', async () => {
  const { start, join } = redisPlace();
  const one = await start({ timeout: 1000 });
  const other = await join();
  await addAll(other, newDelivery(1));
  const take = Reflect.get(one.client, 'tidegateTakeDeliveriesBuffer') as (...args: unknown[]) => Promise<unknown>;
  const late = Promise.withResolvers<undefined>();
  Reflect.set(one.client, 'tidegateTakeDeliveriesBuffer', async (...args: unknown[]) => {
    const reply = await take.apply(one.client, args);
    await late.promise;
    return reply;
  });
  expect(await takeNumbers(one, 1000)).toEqual([]);
  expect(await takeNumbers(other, 1000)).toEqual([]);
  late.resolve(undefined);
  await new Promise(setImmediate);
  await one.settle();
  expect(await takeNumbers(other, 1000)).toEqual([1]);
});

test('while Redis is away nothing is accepted or taken, and results of attempts are kept until it is back', async () => {
  const { start, redis } = redisPlace(DURABLE);
  const process = await start();
  const { store, client, settle } = process;
  await addAll(process, ...[1, 2, 3, 4].map((n) => newDelivery(n)));
  expect(await takeNumbers(process, 1000, 3)).toEqual([1, 2, 3]);
  const server = await redis();
  const isLost = new Promise((resolve) => client.once('close', resolve));
  await server.kill();
  await isLost;
  store.end(id(1), 'delivered', 1100, ATTEMPT);
  store.postpone(id(2), 5000, ATTEMPT);
  expect(await addAll(process, newDelivery(5))).toEqual([{ kind: 'unavailable', why: 'some cause' }]);
  expect(await takeNumbers(process, 1000)).toEqual([]);
  for (const read of [store.find(id(1)), store.list({ limit: 1 }), store.message(id(1)), store.cancel(id(4), 1000)]) {
    await expect(read).rejects.toThrow(DeliveriesUnavailable);
  }
  const isBack = new Promise((resolve) => client.once('ready', resolve));
  await server.restart();
  await isBack;
  // The store records the results of attempts before it takes more deliveries.
  expect(await takeNumbers(process, 1000)).toEqual([]);
  expect(process.runLater()).toContain(500);
  await settle();
  expect(await store.find(id(1))).toMatchObject({ state: { kind: 'delivered' }, attempts: 1 });
  expect(await store.find(id(2))).toMatchObject({ state: { kind: 'waiting', until: 5000 }, attempts: 1 });
  expect((await store.find(id(3)))?.state.kind).toBe('sending');
  expect(await takeNumbers(process, 1000)).toEqual([4]);
});

test('while the memory of Redis is full nothing is accepted, and what is stored is delivered', async () => {
  const { start, redis } = redisPlace({ policy: 'noeviction' });
  const process = await start();
  const { store, settle } = process;
  await addAll(process, newDelivery(1, { orderKey: 'k' }), newDelivery(2, { orderKey: 'k' }), newDelivery(3));
  await addAll(process, newDelivery(5, { kind: 'write', route: '/v1' }));
  const client = (await redis()).client();
  await client.config('SET', 'maxmemory', '1');
  expect((await addAll(process, newDelivery(4)))[0]?.kind).toBe('unavailable');
  expect(await takeNumbers(process, 1000)).toEqual([1, 3]);
  store.end(id(1), 'delivered', 1100, ATTEMPT, { status: 200, headers: [], body: Buffer.from('ok') });
  store.postpone(id(3), 1100, ATTEMPT);
  await settle();
  expect(await takeNumbers(process, 1100)).toEqual([2, 3]);
  // The end of a write is stored with its callback.
  expect(await takeNumbers(process, 1100, 1, '/v1')).toEqual([5]);
  store.end(id(5), 'unknown', 1200, ATTEMPT, undefined, newDelivery(6, { route: '/callbacks', acceptedAt: 1200 }));
  await settle();
  expect(process.callbacks).toEqual([['/callbacks', true]]);
  expect(await takeNumbers(process, 1200, 1, '/callbacks')).toEqual([6]);
  await client.config('SET', 'maxmemory', '0');
  expect(await addAll(process, newDelivery(4))).toEqual([{ kind: 'stored' }]);
  expect(store.totals.counts).toMatchObject({ waiting: 1, sending: 3, delivered: 1, unknown: 1 });
});

test('while the memory of Redis is full leases are renewed, and those of a killed replica end', async () => {
  const { start, join, redis, keyOf } = redisPlace({ policy: 'noeviction' });
  const one = await start();
  const killed = await join();
  await addAll(one, newDelivery(1, { kind: 'write' }));
  expect(await takeNumbers(one, 1000)).toEqual([1]);
  await addAll(one, newDelivery(2));
  expect(await takeNumbers(killed, 1000)).toEqual([2]);
  const client = (await redis()).client();
  const [claimed, counters] = [keyOf('claimed'), keyOf('counters')];
  const later = 9e15;
  await client.zadd(claimed, 'XX', later, id(1), 0, id(2));
  await client.hset(counters, 'seen', '1');
  await client.config('SET', 'maxmemory', '1');
  one.runLater();
  await one.settle();
  expect(Number(await client.zscore(claimed, id(1)))).toBeLessThan(later);
  // Redis was away: the replicas have had no chance to renew their leases.
  expect(await takeNumbers(one, 1000)).toEqual([]);
  await client.hdel(counters, 'grace');
  expect(await takeNumbers(one, 1000)).toEqual([2]);
});

test('what has waited too long ends, but for what is being sent, and the next one with its order key is due', async () => {
  const { clock, maxAge, start, join } = redisPlace();
  maxAge.value = 10_000;
  const replicas = [await start(), await join()] as const;
  const [one, other] = replicas;
  await addAll(one, newDelivery(1, { orderKey: 'k' }), newDelivery(2, { kind: 'write' }), newDelivery(3));
  expect(await takeNumbers(one, 1000)).toEqual([1, 2, 3]);
  one.store.postpone(id(1), 1e6, ATTEMPT);
  one.store.postpone(id(2), 1e6, ATTEMPT);
  await one.settle();
  await addAll(one, newDelivery(4, { orderKey: 'k', acceptedAt: 5000 }), newDelivery(5, { acceptedAt: 500 }));
  expect(await one.store.retry(id(5), 5000)).toBe(true);
  clock.time = 10_999;
  await Promise.all(replicas.map((each) => each.settle()));
  expect(replicas.map(({ expired }) => expired)).toEqual([[], []]);
  clock.time = 11_000;
  await Promise.all(replicas.map((each) => each.settle()));
  expect([...one.expired, ...other.expired].toSorted()).toEqual([id(1), id(2)]);
  const dead = await one.store.find(id(1));
  expect(dead).toMatchObject({ attempts: 1, lastAttempt: { reason: 'expired' }, state: { kind: 'dead', at: 11_000 } });
  expect((await one.store.find(id(2)))?.state.kind).toBe('unknown');
  expect(await takeNumbers(other, 11_000)).toEqual([5, 4]);
  one.store.postpone(id(3), 1e6, ATTEMPT);
  await one.settle();
  expect((await one.store.find(id(3)))?.state.kind).toBe('dead');
});

test('a cluster keeps all deliveries on one master', async () => {
  const client = (await startCluster()).client();
  await client.ping();
  const { connection, problems } = testConnection(client, { channel: 'unused', timeout: 60_000 });
  const store = new RedisDeliveryStore({
    ...{ connection, secret: 'a secret', prefix: 'p', timeout: 60_000, owner: 'one' },
    ...{ maxCount: 10, maxBytes: 1e6, maxEvents: 10, wallClock: () => 1000, keepFor: () => 0 },
    ...{ schedule: () => () => undefined, onUnreadable: () => undefined },
    onDue: () => undefined,
  });
  const add = (n: number) =>
    new Promise((resolve) => store.add(newDelivery(n, { orderKey: 'k', eventId: `evt_${n}` }), resolve));
  expect([await add(1), await add(2), await add(3)]).toEqual(Array.from({ length: 3 }, () => ({ kind: 'stored' })));
  const process = { store, settle: () => store.close(), reportedDue: () => [], unreadable: [], callbacks: [] };
  expect(await takeNumbers(process, 1000)).toEqual([1]);
  expect(await store.cancel(id(2), 1000)).toBe(true);
  store.end(id(1), 'delivered', 1000, ATTEMPT, undefined, newDelivery(4));
  await process.settle();
  expect((await store.list({ limit: 9 })).map(({ state }) => state.kind)).toEqual([
    ...['delivered', 'canceled', 'waiting', 'waiting'],
  ]);
  await store.poll();
  expect(store.totals.counts).toMatchObject({ waiting: 2, sending: 0, delivered: 0, canceled: 0 });
  expect(problems).toEqual([]);
});

test('what a replica has claimed as it ends is due for the others', async () => {
  const { start, join } = redisPlace();
  const ending = await start();
  const other = await join();
  await addAll(ending, newDelivery(1), newDelivery(2));
  await takeNumbers(ending, 1000);
  ending.store.end(id(1), 'delivered', 1000, ATTEMPT);
  const closed = ending.store.close();
  await ending.settle();
  await closed;
  expect(await takeNumbers(ending, 1000)).toEqual([]);
  expect(await takeNumbers(other, 1000)).toEqual([2]);
  expect(await other.store.find(id(2))).toMatchObject({ attempts: 0 });
});
