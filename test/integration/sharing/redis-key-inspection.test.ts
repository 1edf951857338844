/** The keys that replicas share, as an operator finds them in a real Redis: leases, bounds, and all masters of a cluster. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import type { WriteView } from '../../../src/core/idempotency/key-inspection.ts';
import { connectKeys, idOf, OPEN_NAMES, openKeys, stateKeyOf } from '../../support/redis/stored-keys.ts';
import { startCluster } from '../../support/redis/redis-cluster.ts';
import { startRedis } from '../../support/redis/redis-server.ts';

/** Writes of one millisecond may be listed in any order: Redis' time, which orders them, is only known to about as much. */
function inOrderOfId(writes: readonly WriteView[]): readonly WriteView[] {
  return writes.toSorted((a, b) => a.id.localeCompare(b.id));
}

test('writes of a process whose lease has ended are unresolved and can be forgotten, also those that it was answering', async () => {
  const client = await connectKeys(await startRedis());
  const { store, list, inspection } = openKeys(client);
  for (const [n, progress] of (['claimed', 'responding', 'answered', 'unknown'] as const).entries()) {
    await store(n, progress);
  }
  const states = async () => {
    const { writes } = await list({ states: ['in_progress', 'unresolved'] });
    return inOrderOfId(writes).map((write) => [write.id, write.state]);
  };
  expect(await states()).toEqual([
    [idOf(0), 'in_progress'],
    [idOf(1), 'in_progress'],
    [idOf(3), 'unresolved'],
  ]);
  expect(await inspection.forget(idOf(1))).toMatchObject({ kind: 'in_progress', write: { responses: 1 } });
  for (const n of [0, 1]) expect(await client.hset(stateKeyOf(n), 'leases', 'one 1')).toBe(0);
  expect(await states()).toEqual([
    [idOf(0), 'unresolved'],
    [idOf(1), 'unresolved'],
    [idOf(3), 'unresolved'],
  ]);
  expect(inOrderOfId((await list()).writes).map(({ state }) => state)).toEqual([
    'unresolved',
    'unresolved',
    'answered',
    'unresolved',
  ]);
  for (const n of [0, 1, 2, 3]) {
    expect(await inspection.forget(idOf(n))).toMatchObject({ kind: 'forgotten', write: { id: idOf(n) } });
    expect(await inspection.forget(idOf(n))).toEqual({ kind: 'unknown' });
  }
  expect(await list()).toMatchObject({ total: 0, matching: 0, isTruncated: false });
  // Each leaves a mark that it was forgotten. The mark expires.
  const left = await client.keys('p:*name*');
  expect(left).toHaveLength(4);
  for (const key of left) {
    expect([await client.hget(key, 'state'), await client.hget(key, 'forgets')]).toEqual(['', '1']);
    expect(await client.pttl(key)).toBeGreaterThan(3_000_000);
  }
});

test('a response to a repeat of an answered write leaves nothing unresolved, and an open name is dropped with its state', async () => {
  const client = await connectKeys(await startRedis());
  const { store, backendOf, list } = openKeys(client);
  const backend = backendOf('asked');
  const hasUnresolved = () => new Promise((resolve) => backend.hasUnresolved('up', resolve));
  await store(0, 'repeated');
  expect(await hasUnresolved()).toBe(false);
  await store(1, 'responding');
  expect(await hasUnresolved()).toBe(true);
  const [seconds] = await client.time();
  const open = async () => (await client.zrange(OPEN_NAMES, '0', '-1')).toSorted();
  const stored = await open();
  expect(stored).toHaveLength(2);
  const past = Number(seconds) * 1000 - 1;
  for (const drop of [
    () => new Promise((resolve) => backend.renew('up', [], resolve)),
    () => new Promise((resolve) => backend.hasUnresolved('up', resolve)),
  ]) {
    await client.zadd(OPEN_NAMES, past, 'aa', -past, 'bb');
    expect(await open()).toHaveLength(4);
    expect((await list({ states: ['in_progress'] })).matching).toBe(2);
    await drop();
    expect(await open()).toEqual(stored);
  }
});

test('ends a search at its bounds, and says so', async () => {
  const client = await connectKeys(await startRedis());
  const { store, list, inspection } = openKeys(client, { maxNames: 10 });
  for (let n = 0; n < 12; n += 1) await store(n, n === 11 ? 'unknown' : 'answered');
  expect(await list()).toMatchObject({ total: undefined, matching: 10, isTruncated: true });
  expect((await list({ limit: 3 })).writes).toHaveLength(3);
  // Those that are open are found among any number of others.
  expect(await list({ states: ['unresolved'] })).toMatchObject({ matching: 1, isTruncated: false });
  // A whole id and a key select in Redis, so the bound counts only what they match.
  expect(await inspection.find(idOf(3))).toMatchObject({ kind: 'found', write: { id: idOf(3) } });
  expect(await list({ id: idOf(7).slice(0, 8) })).toMatchObject({ matching: 1, isTruncated: false });
  expect(await list({ key: 'order' })).toMatchObject({ matching: 10, isTruncated: true });

  // Keys of others count as examined.
  const pipeline = client.pipeline();
  for (let i = 0; i < 20_000; i += 1) pipeline.set(`foreign:${i}`, '');
  await pipeline.exec();
  const short = openKeys(client, { maxKeys: 2000 });
  const why = (text: string) => ({
    kind: 'unavailable',
    why: `Redis has more keys than one request searches, and ${text}`,
  });
  const notFound = why('this id is not among those searched.');
  expect(await short.inspection.find('0123456789abcdef')).toEqual(notFound);
  expect(await short.inspection.forget('0123456789abcdef')).toEqual(notFound);
  const unclear = why('others may begin like this: use a whole id.');
  expect(await short.inspection.forget(idOf(11).slice(0, 15))).toEqual(unclear);
  expect(await short.list()).toMatchObject({ total: undefined, isTruncated: true });
  expect(await short.inspection.forget(idOf(11))).toMatchObject({ kind: 'forgotten' });
  expect(await openKeys(client, { maxNames: 12 }).list()).toMatchObject({
    total: 11,
    matching: 11,
    isTruncated: false,
  });
});

test('searches one after the other, and refuses those that wait too long', async () => {
  const client = await connectKeys(await startRedis());
  const { store, inspection } = openKeys(client, { startedWithin: 0 });
  await store(0, 'answered');
  const list = () => inspection.list({ order: 'oldest', limit: 5 });
  const [first, second] = [list(), list()];
  expect(await first).toMatchObject({ total: 1 });
  const why = 'Other searches of the keys in Redis take all the time of this one. Try again.';
  expect(await second).toEqual({ kind: 'unavailable', why });
  expect(await list()).toMatchObject({ total: 1 });
  const patient = openKeys(client).inspection;
  const all = await Promise.all([1, 2, 3].map(() => patient.list({ order: 'oldest', limit: 5 })));
  expect(all).toMatchObject([{ total: 1 }, { total: 1 }, { total: 1 }]);
});

test.each<[string, (client: Redis) => Promise<unknown>]>([
  ['a hash', (client) => client.hset(stateKeyOf(1), { version: '1', state: '{' })],
  ['a value of another type', (client) => client.set(stateKeyOf(1), 'x')],
])('leaves out %s of another program in the place of a name, and says that something is missing', async (_, put) => {
  const client = await connectKeys(await startRedis());
  const { store, list, problems, inspection } = openKeys(client);
  await store(0, 'answered');
  await put(client);
  expect(await list()).toMatchObject({ total: undefined, matching: 1, isTruncated: true });
  expect(problems).toHaveLength(1);
  expect(await inspection.find(idOf(0))).toMatchObject({ kind: 'found' });
});

test('reads names with long states in several steps', async () => {
  const client = await connectKeys(await startRedis());
  const { store, list } = openKeys(client);
  for (let n = 0; n < 4; n += 1) await store(n, 'answered');
  for (const key of await client.keys('p:*name*')) {
    const state = (await client.hget(key, 'state')) ?? '';
    await client.hset(key, 'state', `${state}${' '.repeat(600_000)}`);
  }
  const scripts = async () => {
    const stats = await client.info('commandstats');
    return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
  };
  await list(); // loads the script
  const before = await scripts();
  expect(await list()).toMatchObject({ total: 4, isTruncated: false });
  expect((await scripts()) - before).toBe(2);
});

test('finds the names in all masters of a cluster', async () => {
  const cluster = (await startCluster()).client();
  await cluster.set('ready', 'yes');
  const { store, list, inspection } = openKeys(cluster);
  const upstreams = ['up', 'a', 'b', 'c', 'd', 'e', 'f', 'g'];
  for (const [n, upstream] of upstreams.entries()) await store(n, 'unknown', { upstream });
  const sizes = await Promise.all(cluster.nodes('master').map((node) => node.dbsize()));
  expect(sizes.filter((size) => size > 0).length).toBeGreaterThan(1);
  expect((await list()).writes.map(({ upstream }) => upstream).toSorted()).toEqual(upstreams.toSorted());
  expect(await list({ states: ['unresolved'] })).toMatchObject({ matching: 1 }); // at the upstreams of the configuration
  expect(await list({ states: ['unresolved'], upstream: 'e' })).toMatchObject({ matching: 1 });
  for (const n of upstreams.keys()) expect(await inspection.forget(idOf(n))).toMatchObject({ kind: 'forgotten' });
  expect(await list()).toMatchObject({ total: 0 });
});
