/** Senders share the places of a route, and the room of the store, with deliveries in a real Redis. */
import { expect, test } from 'vitest';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { checkRedisKeys } from '../../support/deliveries/check-redis-keys.ts';
import {
  addAll,
  deliveryId,
  newDelivery,
  numberOf,
  type StoreProcess,
} from '../../support/deliveries/delivery-place.ts';
import { describeFairDispatch } from '../../support/deliveries/describe-fair-dispatch.ts';
import { deliveriesOf, describeFairRoom } from '../../support/deliveries/describe-fair-room.ts';
import { redisPlace } from '../../support/deliveries/redis-place.ts';
import { startRedis } from '../../support/redis/redis-server.ts';

describeFairRoom('Redis', redisPlace);
describeFairDispatch('Redis', redisPlace);

async function take(process: StoreProcess, limit: number, concurrency: number, now = 1000): Promise<number[]> {
  const { deliveries } = await process.store.takeDue('/hooks', now, limit, concurrency);
  return deliveries.map(({ delivery }) => numberOf(delivery.id));
}

test('a place goes to the sender that uses the fewest at all replicas', async () => {
  const { start, join } = redisPlace();
  const [one, other] = [await start(), await join()];
  await addAll(one, ...deliveriesOf('many', 1, 20));
  expect(await take(one, 4, 4)).toEqual([1, 2, 3, 4]);
  await addAll(other, ...deliveriesOf('few', 31, 6, { acceptedAt: 1001 }));
  expect(await take(other, 3, 4, 1001)).toEqual([31, 32, 33]);
  one.store.end(deliveryId(1), 'delivered', 1002, undefined);
  one.store.end(deliveryId(2), 'delivered', 1002, undefined);
  await one.settle();
  expect(await take(one, 2, 4, 1002)).toEqual([5, 34]);
});

test('at each replica, a sender leaves a place to others that were active at any of them', async () => {
  const { start, join } = redisPlace();
  const [one, other] = [await start(), await join()];
  await addAll(one, ...deliveriesOf('few', 1, 1));
  expect(await take(one, 3, 3)).toEqual([1]);
  await addAll(one, ...deliveriesOf('many', 11, 9));
  expect(await take(other, 3, 3)).toEqual([11, 12]);
  expect(await other.store.takeDue('/hooks', 1000, 1, 3)).toEqual({ deliveries: [], nextDueAt: 2000 });
  await addAll(one, ...deliveriesOf('later', 21, 1, { acceptedAt: 1300 }));
  expect((await other.store.takeDue('/hooks', 1000, 1, 3)).nextDueAt).toBe(1300);
  expect(await take(other, 1, 3, 1300)).toEqual([21]);
  expect(await take(one, 2, 3, 1300)).toEqual([13, 14]);
});

test('the places of a killed replica are free once its leases have ended', async () => {
  const { start, join, endLeases, redis, keyOf } = redisPlace();
  const [killed, other] = [await start(), await join()];
  await addAll(killed, ...deliveriesOf('hanging', 1, 8), ...deliveriesOf('few', 11, 2));
  expect(await take(killed, 10, 10)).toHaveLength(10);
  await endLeases();
  expect((await take(other, 4, 10)).toSorted((a, b) => a - b)).toEqual([1, 2, 11, 12]);
  await checkRedisKeys((await redis()).client(), keyOf(''));
});

test('an address with thousands of credentials delays those of another by no attempt', async () => {
  const process = await redisPlace().start();
  const invented = (n: number) => newDelivery(n, { owner: `credential-${n}`, sender: 'address' });
  await addAll(process, ...Array.from({ length: 3000 }, (_, n) => invented(n)));
  expect(await take(process, 2, 10)).toHaveLength(2);
  await addAll(process, ...deliveriesOf('other', 5000, 3, { acceptedAt: 1001 }));
  expect(await take(process, 2, 10, 1001)).toEqual([5000, 5001]);
});

test('replicas that add, send, fail and are killed leave the keys as their deliveries say', async () => {
  const server = startRedis();
  const random = seededRandom(5);
  const pick = (count: number): number => Math.floor(random() * count);
  const { start, join, endLeases, clock, keyOf, redis } = redisPlace(server);
  let replicas = [await start({ maxCount: 150 }), await join({ maxCount: 150 })];
  const client = (await redis()).client();
  const sending: (readonly [replica: number, id: string])[] = [];
  let last = 0;
  for (let step = 0; step < 400; step += 1) {
    const nth = pick(2);
    const replica = replicas[nth];
    if (replica === undefined) break;
    const choice = pick(12);
    const id = deliveryId(pick(last + 1));
    if (choice < 3) {
      const added = Array.from({ length: pick(6) }, () => {
        const sender = `s${pick(4)}`;
        const orderKey = pick(3) === 0 ? `k${pick(3)}` : undefined;
        const route = pick(5) === 0 ? '/other' : '/hooks';
        return newDelivery((last += 1), { owner: `c${pick(3)}`, sender, orderKey, route, acceptedAt: clock.time });
      });
      await addAll(replica, ...added);
    } else if (choice < 6) {
      const route = pick(5) === 0 ? '/other' : '/hooks';
      const taken = await replica.store.takeDue(route, clock.time - pick(2), pick(4), 4);
      for (const { delivery } of taken.deliveries) sending.push([nth, delivery.id]);
    } else if (choice < 9) {
      const [by, its] = sending.splice(pick(sending.length), 1)[0] ?? [0, id];
      const attempt = { at: clock.time, took: 1, status: 500, reason: 'not_acknowledged' };
      const { store } = replicas[by] ?? replica;
      if (pick(2) === 0) store.postpone(its, clock.time + pick(400), attempt);
      else store.end(its, pick(3) === 0 ? 'dead' : 'delivered', clock.time, attempt);
    } else if (choice === 9) {
      if (pick(2) === 0) await replica.store.cancel(id, clock.time);
      else await replica.store.retry(id, clock.time);
    } else if (choice === 10) clock.time += pick(900);
    else if (pick(8) === 0) {
      sending.length = 0;
      await Promise.all(replicas.map(({ settle }) => settle()));
      await endLeases();
      replicas = [await join({ maxCount: 150 }), await join({ maxCount: 150 })];
    }
    await Promise.all(replicas.map(({ settle }) => settle()));
    if (step % 10 === 0) await checkRedisKeys(client, keyOf(''));
  }
  await checkRedisKeys(client, keyOf(''));
  expect(last).toBeGreaterThan(100);
});
