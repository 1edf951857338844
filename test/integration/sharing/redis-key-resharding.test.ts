/** The state of keys in a Redis Cluster while their slot moves to another master. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import type { KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { NameSession, ownersOf } from '../../../src/core/idempotency/name-session.ts';
import type { NameChange, SwapResult } from '../../../src/sharing/keys/key-state-backend.ts';
import { NO_VERSION } from '../../../src/sharing/keys/key-state-backend.ts';
import { RedisKeyBackend } from '../../../src/sharing/redis/keys/redis-key-backend.ts';
import { COUNT_NAMES, SWAP_NAME } from '../../../src/sharing/redis/keys/key-scripts.ts';
import { RedisKeyCommands } from '../../../src/sharing/redis/keys/redis-key-commands.ts';
import { startCluster } from '../../support/redis/redis-cluster.ts';
import { testConnection } from '../../support/redis/test-connection.ts';

const NAME = { upstream: 'api', name: 'order' };
const CLIENT = 7;
const REQUEST: KeyClaimRequest = {
  identity: { ...NAME, credential: 1, owner: CLIENT, credentialHeader: 'authorization', body: 1 },
  place: { fairnessKey: 'a', client: 'a' },
  ...{ concurrent: 'wait', ttl: 60_000, endpoint: 'e1', onStoreLost: 'refuse' },
};

/** An unresolved write of `CLIENT`. */
function unresolved(expected: string, next: string): NameChange {
  const session = new NameSession('order', undefined, performance);
  session.claim('one/1', 'one', REQUEST);
  const { state } = session;
  return { expected, next, state, owners: ownersOf(state), unresolvedOwner: CLIENT, keptFor: 120_000, isNews: false };
}

/** Stores the name and an answered one, and starts to move their slot. */
async function startMove() {
  const { client: connect, nodes } = await startCluster(2);
  const client = connect();
  await client.set('ready', 'yes');
  const { connection } = testConnection(client, { channel: 'keys', timeout: 20_000 });
  const more = { prefix: 'test', timeout: 20_000, clock: performance, maxKeys: 1000 };
  const commands = new RedisKeyCommands({ ...connection, ...more });
  const backend = new RedisKeyBackend({ ...connection, commands, owner: 'one', ahead: () => 0 });
  const swap = (change: NameChange, name = NAME): Promise<SwapResult> =>
    new Promise((resolve) => backend.swap(name, change, resolve));
  const count = (): Promise<unknown> => new Promise((resolve) => commands.count('api', resolve));

  const answered = { ...unresolved(NO_VERSION, 'one.0'), owners: new Set<string>(), unresolvedOwner: undefined };
  expect((await swap(answered, { ...NAME, name: 'other' })).kind).toBe('stored');
  expect((await swap(unresolved(NO_VERSION, 'one.1'))).kind).toBe('stored');
  const masters = nodes.map((node) => node.client());
  for (const master of masters) {
    for (const script of [SWAP_NAME, COUNT_NAMES]) await master.script('LOAD', script);
  }
  const keysOf = (of: Redis): Promise<string[]> => of.keys('test:*');
  const [first] = await Promise.all(masters.map(keysOf));
  const order = first?.length === 0 ? [1, 0] : [0, 1];
  const [from, to] = order.map((index) => masters[index]) as [Redis, Redis];
  const port = nodes[order[1] ?? 0]?.port ?? 0;
  const slot = await from.cluster('KEYSLOT', (await keysOf(from))[0] ?? '');
  const ids = [await from.cluster('MYID'), await to.cluster('MYID')] as const;
  await to.cluster('SETSLOT', slot, 'IMPORTING', ids[0]);
  await from.cluster('SETSLOT', slot, 'MIGRATING', ids[1]);
  const move = async (isMoved: (key: string) => boolean): Promise<void> => {
    for (const key of (await keysOf(from)).filter(isMoved)) await from.migrate('127.0.0.1', port, key, 0, 5000);
  };
  const finish = async (): Promise<void> => {
    await move(() => true);
    for (const master of [to, from]) await master.cluster('SETSLOT', slot, 'NODE', ids[1]);
  };
  const onBoth = async (): Promise<string[]> => {
    const own = new Set(await keysOf(from));
    return (await keysOf(to)).filter((key) => own.has(key));
  };
  const isOfClients = (key: string): boolean => key.endsWith(':clients') || key.endsWith(`:client:${CLIENT}`);
  return { swap, count, move, finish, onBoth, isOfClients };
}

test('a change stores nothing at the old master once the keys of its client have moved', async () => {
  const { swap, move, finish, isOfClients } = await startMove();
  await move(isOfClients);
  expect((await swap(unresolved('one.1', 'one.2'))).kind).toBe('lost');
  await finish();
  expect((await swap(unresolved('one.1', 'one.3'))).kind).toBe('stored');
});

test('a change makes no key at the new master that the old one still has', async () => {
  const { swap, count, move, finish, onBoth, isOfClients } = await startMove();
  await move((key) => !isOfClients(key));
  expect((await swap(unresolved('one.1', 'one.2'))).kind).toBe('lost');
  await count();
  expect(await onBoth()).toEqual([]);
  await finish();
  expect((await swap(unresolved('one.1', 'one.3'))).kind).toBe('stored');
  expect(await count()).toMatchObject({ hasUnresolved: true });
});
