/** Kept responses in a real Redis: replaced, evicted and removed. */
import { expect, test } from 'vitest';
import { RedisResponseStore } from '../../../src/sharing/redis/keys/redis-response-store.ts';
import { connectKeys } from '../../support/redis/stored-keys.ts';
import { startRedis } from '../../support/redis/redis-server.ts';

const HOUR = 3_600_000;

async function open(maxBytes: number) {
  const client = await connectKeys(await startRedis());
  const problems: unknown[] = [];
  const connection = {
    ...{ client, isConnected: () => true, channel: 'p:keys', problem: () => '' },
    onProblem: (error: unknown) => void problems.push(error),
  };
  const store = new RedisResponseStore({
    ...{ connection, prefix: 'p', timeout: 60_000, clock: performance, maxBytes },
    onRequest: () => undefined,
  });
  const keep = (id: string, text: string, lifetime = HOUR) =>
    new Promise<void>((resolve) => store.keep(id, Buffer.from(text.padEnd(1000)), lifetime, resolve));
  const read = (id: string) =>
    new Promise<string | undefined>((resolve) => store.read(id, (bytes) => resolve(bytes?.toString().trim())));
  const readAll = (...ids: readonly string[]) => Promise.all(ids.map(read));
  return { client, store, keep, read, readAll, problems };
}

test('evicts the oldest beyond the bound, and not a later response with the id of an old one', async () => {
  const { store, keep, readAll, problems } = await open(3500);
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

test('removes the responses of a write for all clients, and nothing else', async () => {
  const { client, store, keep, readAll, problems } = await open(100_000);
  for (const id of ['a.one', 'a.two', 'aa.one', 'b.one']) await keep(id, id);
  store.remove('a');
  expect(await readAll('a.one', 'a.two', 'aa.one', 'b.one')).toEqual([undefined, undefined, 'aa.one', 'b.one']);
  await keep('a.two', 'later');
  expect(await readAll('a.one', 'a.two')).toEqual([undefined, 'later']);
  for (const key of await client.keys('*')) expect([key, await client.pttl(key)]).not.toEqual([key, -1]);
  expect(problems).toEqual([]);
});
