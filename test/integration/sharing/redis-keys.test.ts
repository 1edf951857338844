/** The state of keys in a real Redis whose clock is set, or whose data is damaged. */
import { performance } from 'node:perf_hooks';
import { expect, test } from 'vitest';
import type { KeyClaimRequest } from '../../../src/core/idempotency/key-store.ts';
import { NameSession, ownersOf } from '../../../src/core/idempotency/name-session.ts';
import type { NameChange, RenewedLeases, StoredName, SwapResult } from '../../../src/sharing/keys/key-state-backend.ts';
import { NO_VERSION } from '../../../src/sharing/keys/key-state-backend.ts';
import { RedisKeyBackend } from '../../../src/sharing/redis/keys/redis-key-backend.ts';
import { RedisKeyCommands } from '../../../src/sharing/redis/keys/redis-key-commands.ts';
import { pause } from '../../support/pause.ts';
import type { RedisServer } from '../../support/redis/redis-server.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { testConnection } from '../../support/redis/test-connection.ts';

/** Time that has passed without a pause, in milliseconds. */
let passed = 0;
const clock = { now: () => performance.now() + passed };
/** Half of a lease. */
const AGE = 5000;
const NAME = { upstream: 'api', name: 'order' };
const REQUEST: KeyClaimRequest = {
  identity: { ...NAME, credential: 1, owner: 1, credentialHeader: 'authorization', body: 1 },
  place: { fairnessKey: 'a', client: 'a' },
  ...{ concurrent: 'wait', ttl: 60_000, endpoint: 'e1', onStoreLost: 'refuse' },
};

function connect(redis: RedisServer, owner: string) {
  const client = redis.client();
  const { connection, problems } = testConnection(client, { channel: 'keys', timeout: 5000, clock });
  const more = { prefix: 'test', timeout: 5000, clock };
  const commands = new RedisKeyCommands({ ...connection, ...more, maxKeys: 1000 });
  const backend = new RedisKeyBackend({
    ...{ ...connection, commands, owner },
    ahead: (upstream) => commands.timeOf(upstream).offset,
  });
  const read = (): Promise<StoredName | undefined> => new Promise((resolve) => backend.read(NAME, false, resolve));
  const swap = (change: NameChange): Promise<SwapResult> =>
    new Promise((resolve) => backend.swap(NAME, change, resolve));
  const renew = (): Promise<RenewedLeases | undefined> =>
    new Promise((resolve) => backend.renew('api', ['order'], resolve));
  return { client, backend, problems, read, swap, renew };
}

/** What the first request of a replica stores. */
function firstClaim(owner: string): NameChange {
  const session = new NameSession('order', undefined, clock);
  session.claim(`${owner}/1`, owner, REQUEST);
  const { state, unresolvedOwner } = session;
  return {
    expected: NO_VERSION,
    next: `${owner}.1`,
    state,
    owners: ownersOf(state),
    unresolvedOwner,
    keptFor: 120_000,
    isNews: false,
  };
}

async function startStored(owner: string) {
  const redis = await startRedis({ clock: true });
  const replica = connect(redis, owner);
  await replica.client.ping();
  const storedAt = clock.now();
  expect((await replica.swap(firstClaim(owner))).kind).toBe('stored');
  /** Lets time pass for the replicas and for Redis. */
  const pass = (ms: number): void => {
    passed += ms;
    redis.shiftClock(ms);
  };
  return { redis, replica, storedAt, storedBy: clock.now(), pass };
}

const firstSentAt = (found: StoredName | undefined): number | undefined => found?.state?.writes[0]?.firstSentAt;

test.each([-60_000, -86_400_000 * 365])(
  'a write does not become younger if the clock of Redis is set by %i ms',
  async (by) => {
    const { redis, replica, storedAt, storedBy, pass } = await startStored('one');
    const other = connect(redis, 'other');
    await other.client.ping();
    pass(AGE);
    redis.shiftClock(AGE + by);
    for (const read of [replica.read, other.read]) {
      const at = firstSentAt(await read()) ?? Number.NaN;
      // The clock of Redis is known to half a round trip.
      expect(at).toBeGreaterThan(storedAt - AGE / 2);
      expect(at).toBeLessThan(storedBy + AGE / 2);
    }
    const { gone } = (await other.read()) ?? {};
    expect(gone?.has('one')).toBe(false);
  },
);

test('a write is not younger than the last change of any key, if no replica knows that the clock of Redis was set back', async () => {
  const { redis, replica, storedAt } = await startStored('one');
  await pause(1000);
  const found = await replica.read();
  await replica.swap({ ...firstClaim('one'), expected: found?.version ?? '', next: 'one.2' });
  redis.shiftClock(-60_000);
  const other = connect(redis, 'other');
  await other.client.ping();
  const at = firstSentAt(await other.read());
  expect((at ?? Number.NaN) - storedAt).toBeLessThan(5000);
});

test('a claim whose lease is not renewed has ended, also if the clock of Redis was set back', async () => {
  const { redis, replica } = await startStored('one');
  redis.shiftClock(-60_000);
  const other = connect(redis, 'other');
  await other.client.ping();
  await replica.read();
  await pause(replica.backend.leaseTime / 2);
  await other.read();
  await replica.renew();
  await pause(0.6 * replica.backend.leaseTime);
  expect((await other.read())?.gone.has('one')).toBe(false);
  await pause(0.6 * replica.backend.leaseTime);
  expect((await other.read())?.gone.has('one')).toBe(true);
});

test('a renewal names the writes whose claims Redis has lost', async () => {
  const { redis, replica } = await startStored('one');
  expect(await replica.renew()).toEqual({ missing: new Set() });
  const other = connect(redis, 'other');
  await other.client.ping();
  expect(await other.renew()).toEqual({ missing: new Set(['order']) });
  await replica.client.flushall();
  expect(await replica.renew()).toEqual({ missing: new Set(['order']) });
});

test('a state that cannot be read counts as no response', async () => {
  const redis = await startRedis();
  const replica = connect(redis, 'one');
  await replica.client.ping();
  const change = firstClaim('one');
  await replica.swap(change);
  const [key = ''] = await replica.client.keys('test:*:name:*');
  await replica.client.hset(key, 'state', '{"writes":[{}],"claims":[]}');
  expect(await replica.read()).toBeUndefined();
  expect(await replica.swap({ ...change, expected: 'another', next: 'one.2' })).toEqual({
    kind: 'lost',
    isUnsent: true,
  });
  expect(replica.problems.map(String)).toEqual(
    Array(2).fill('TypeError: the state of a key in Redis has another form'),
  );
});
