/** Kept responses in a real Redis: replaced, evicted and removed. */
import { expect, test } from 'vitest';
import { MAX_PER_WRITE, type ResponseBounds } from '../../../src/core/idempotency/response-store.ts';
import { RedisResponseStore } from '../../../src/sharing/redis/keys/redis-response-store.ts';
import { connectKeys } from '../../support/redis/stored-keys.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { testConnection } from '../../support/redis/test-connection.ts';

const HOUR = 3_600_000;

async function open(max: Partial<ResponseBounds>) {
  const client = await connectKeys(await startRedis());
  const { connection, problems } = testConnection(client, { channel: 'p:keys', timeout: 60_000 });
  const store = new RedisResponseStore({ connection, prefix: 'p', ...max });
  const keep = (id: string, text: string, lifetime = HOUR) =>
    new Promise<void>((resolve) => store.keep(id, Buffer.from(text.padEnd(1000)), lifetime, resolve));
  const read = (id: string) =>
    new Promise<string | undefined>((resolve) => store.read(id, (bytes) => resolve(bytes?.toString().trim())));
  const readAll = (...ids: readonly string[]) => Promise.all(ids.map(read));
  return { client, store, keep, read, readAll, problems };
}

test('evicts the oldest beyond the bound, and not a later response with the id of an old one', async () => {
  const { store, keep, readAll, problems } = await open({ maxBytes: 3 * 2536 });
  await keep('a.one', 'first');
  await keep('b.one', 'second');
  await keep('a.one', 'third');
  await keep('c.one', 'fourth');
  expect(await readAll('a.one', 'b.one', 'c.one')).toEqual(['third', 'second', 'fourth']);
  await keep('d.one', 'fifth');
  expect(await readAll('a.one', 'b.one', 'c.one', 'd.one')).toEqual(['third', undefined, 'fourth', 'fifth']);
  expect(store.bounds).toMatchObject([{ reached: 1 }]);
  expect(problems).toEqual([]);
});

test('has the time for which a response is still kept, by the clock of Redis', async () => {
  const { store, keep, client } = await open({});
  await keep('a', 'first');
  await client.pexpire('p:{responses}:r2:of:a', HOUR / 2);
  const left = await new Promise<number>((resolve) => store.read('a', (_, keptFor) => resolve(keptFor)));
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(HOUR / 2);
});

test('evicts the oldest beyond the number of responses', async () => {
  const { store, keep, readAll, problems } = await open({ maxCount: 3 });
  for (const id of ['a', 'b', 'c']) await keep(id, id);
  expect(store.bounds).toMatchObject([{ used: 1, reached: 0 }]);
  for (const id of ['d', 'e']) await keep(id, id);
  expect(await readAll('a', 'b', 'c', 'd', 'e')).toEqual([undefined, undefined, 'c', 'd', 'e']);
  expect(store.bounds).toMatchObject([{ used: 1, reached: 2 }]);
  expect(problems).toEqual([]);
});

test('counts at least the memory that Redis takes for a response', async () => {
  const { client, store, keep } = await open({ maxBytes: 2 * 1024 * 1024 });
  const taken = async () => Number(/used_memory_dataset:(\d+)/.exec(await client.info('memory'))?.[1]);
  const before = await taken();
  const write = (n: number) => String(n).padStart(64, 'f');
  const count = 500;
  for (let n = 0; n < count; n += 1) await keep(`${write(n)}.${write(n)}`, 'x');
  const counted = (store.bounds[0]?.used ?? 0) * 2 * 1024 * 1024;
  expect(counted).toBe(count * 2536);
  expect(counted).toBeGreaterThan((await taken()) - before);
});

test('removes the responses of a write for all clients, and nothing else', async () => {
  const { client, store, keep, readAll, problems } = await open({ maxBytes: 100_000 });
  for (const id of ['a.one', 'a.two', 'aa.one', 'b.one']) await keep(id, id);
  store.remove('a');
  expect(await readAll('a.one', 'a.two', 'aa.one', 'b.one')).toEqual([undefined, undefined, 'aa.one', 'b.one']);
  await keep('a.two', 'later');
  expect(await readAll('a.one', 'a.two')).toEqual([undefined, 'later']);
  for (const key of await client.keys('*')) expect([key, await client.pttl(key)]).not.toEqual([key, -1]);
  expect(problems).toEqual([]);
});

test('keeps the responses to one write for so many clients only, and for others once these have expired', async () => {
  const { client, keep, readAll, problems } = await open({ maxBytes: 100_000_000 });
  const ids = Array.from({ length: MAX_PER_WRITE }, (_, n) => `a.${n}`);
  await Promise.all(ids.map((id) => keep(id, 'first')));
  for (const id of ['a.more', 'b.one', 'a.7']) await keep(id, 'later');
  expect(await readAll('a.0', 'a.7', 'a.more', 'b.one')).toEqual(['first', 'later', undefined, 'later']);
  const [write = ''] = await client.keys('*:write:a');
  expect(await client.hlen(write)).toBe(MAX_PER_WRITE);
  const names = await client.keys('*:of:a.*');
  await client.del(names); // as if their time were over
  await keep('a.more', 'last');
  await keep('a.more', 'last');
  expect(await readAll('a.0', 'a.more')).toEqual([undefined, 'last']);
  // Each step removes a hundred; of a.7, the first one was replaced.
  expect(await client.hlen(write)).toBe(MAX_PER_WRITE - 99 + 1 - 100);
  expect(problems).toEqual([]);
});
