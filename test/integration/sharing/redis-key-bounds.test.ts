/** How many keys of writes Redis has: the numbers, and what is removed beyond their bounds. */
import { expect, test } from 'vitest';
import { MAX_EXPIRED } from '../../../src/sharing/redis/keys/key-scripts.ts';
import type { RedisKeyBackend } from '../../../src/sharing/redis/keys/redis-key-backend.ts';
import { send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import {
  ANSWERED_NAMES,
  connectKeys,
  OPEN_NAMES,
  openKeys,
  type Progress,
  stateKeyOf,
} from '../../support/redis/stored-keys.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const DAY = 86_400_000;

const recount = (backend: RedisKeyBackend): Promise<void> =>
  new Promise((resolve) => {
    backend.recount();
    backend.hasUnresolved('up', () => resolve()); // comes after it
  });

test('counts unresolved and answered keys by upstream, until they expire', async () => {
  const redis = await startRedis({ clock: true });
  const { commands, store, backendOf } = openKeys(await connectKeys(redis));
  const states: readonly Progress[] = ['claimed', 'unknown', 'unknown', 'responding', 'answered'];
  for (const [n, state] of states.entries()) await store(n, state);
  await store(9, 'answered', { upstream: 'other' });
  expect(commands.counts.all).toEqual([
    { upstream: 'up', unresolved: 3, answered: 2 },
    { upstream: 'other', unresolved: 0, answered: 1 },
  ]);
  redis.shiftClock(DAY / 2);
  await recount(backendOf('one'));
  expect(commands.counts.all[0]).toEqual({ upstream: 'up', unresolved: 3, answered: 2 });
  redis.shiftClock(DAY + 60_000);
  await recount(backendOf('one'));
  expect(commands.counts.all).toEqual([
    { upstream: 'up', unresolved: 0, answered: 0 },
    { upstream: 'other', unresolved: 0, answered: 0 },
  ]);
});

test('removes at most 200 expired keys of a kind in a step, and never counts one of them', async () => {
  const redis = await startRedis();
  const client = await connectKeys(redis);
  const { commands, store, backendOf } = openKeys(client);
  await store(0, 'unknown');
  await store(1, 'answered');
  const count = 2.5 * MAX_EXPIRED;
  for (let n = 2; n < count; n += 1) {
    await client.zadd(OPEN_NAMES, n % 2 === 0 ? 2 : -2, `expired-${n}`);
    await client.zadd(ANSWERED_NAMES, n, `expired-${n}`);
  }
  const left: number[] = [];
  const one = backendOf('one');
  for (let step = 0; step < 4; step += 1) {
    const isUnresolved = await new Promise((resolve) => one.hasUnresolved('up', resolve));
    expect(isUnresolved).toBe(true);
    expect(commands.counts.all).toEqual([{ upstream: 'up', unresolved: 1, answered: 1 }]);
    left.push(await client.zcard(OPEN_NAMES), await client.zcard(ANSWERED_NAMES));
  }
  const rest = [count - 1 - MAX_EXPIRED, count - 1 - 2 * MAX_EXPIRED];
  expect(left).toEqual([...rest.flatMap((each) => [each, each]), 1, 1, 1, 1]);
});

test('a key that is forgotten, or used again, is counted once or not at all', async () => {
  const { commands, store, swap, nextVersion } = openKeys(await connectKeys(await startRedis()));
  const { session, version } = await store(0, 'answered');
  expect(commands.counts.all).toMatchObject([{ unresolved: 0, answered: 1 }]);
  const next = nextVersion();
  await swap(0, { state: session.state, owners: session.owners, isUnresolved: true }, { expected: version, next });
  expect(commands.counts.all).toMatchObject([{ unresolved: 1, answered: 0 }]);
  const nothing = { state: undefined, owners: new Set<string>(), isUnresolved: false };
  await swap(0, nothing, { expected: next, next: nextVersion() });
  expect(commands.counts.all).toMatchObject([{ unresolved: 0, answered: 0 }]);
});

test('beyond the bound, the oldest answered keys are removed, and no unresolved one', async () => {
  const client = await connectKeys(await startRedis());
  const { commands, store } = openKeys(client, {}, { maxKeys: 5 });
  await store(0, 'unknown');
  for (let n = 1; n <= 5; n += 1) await store(n, 'answered');
  expect(commands.counts.bounds).toEqual([
    { name: 'unsettled_keys', used: 1, reached: 0 },
    { name: 'settled_keys', used: 1, reached: 0 },
  ]);
  for (let n = 6; n <= 8; n += 1) await store(n, 'answered');
  expect(commands.counts.all).toEqual([{ upstream: 'up', unresolved: 1, answered: 5 }]);
  expect(commands.counts.bounds[1]).toMatchObject({ used: 1, reached: 3 });
  const left = await Promise.all(Array.from({ length: 9 }, (_, n) => client.exists(stateKeyOf(n))));
  expect(left).toEqual([1, 0, 0, 0, 1, 1, 1, 1, 1]);
});

test('beyond the bound, the oldest unresolved keys are removed, but none that a request has', async () => {
  const client = await connectKeys(await startRedis());
  const { commands, store } = openKeys(client, {}, { maxKeys: 10 });
  for (const n of [0, 1]) await store(n, 'claimed');
  for (const n of [2, 3, 4]) await store(n, 'unknown');
  const left = await Promise.all([0, 1, 2, 3, 4].map((n) => client.exists(stateKeyOf(n))));
  expect(left).toEqual([1, 1, 0, 0, 1]);
  expect(commands.counts.all).toEqual([{ upstream: 'up', unresolved: 3, answered: 0 }]);
  expect(commands.counts.bounds[0]).toMatchObject({ name: 'unsettled_keys', reached: 2 });
});

test('the place of a key that another program has overwritten is left alone, and not counted for ever', async () => {
  const client = await connectKeys(await startRedis());
  const { commands, store, problems } = openKeys(client, {}, { maxKeys: 2 });
  for (const n of [0, 1]) await store(n, 'answered');
  await client.set(stateKeyOf(0), 'of another program');
  await store(2, 'answered');
  expect(await client.get(stateKeyOf(0))).toBe('of another program');
  expect(commands.counts.all).toEqual([{ upstream: 'up', unresolved: 0, answered: 2 }]);
  expect(problems).toEqual([]);
});

test('a process exports the numbers, and a removed key is a new write', async () => {
  const redis = await startRedis();
  const upstream = await startHttpUpstream((nth, response) => void response.end(`paid ${nth}`));
  const gate = await startTidegate(`
state: {store: redis, url: "${redis.url}", timeout: 240ms, maxKeys: 5}
upstreams: {api: {url: "${upstream.url}", idempotency: {ttl: 1s}}}
`);
  const pay = (key: string) => send(gate.url, '/pay', { method: 'POST', body: key, headers: ['Idempotency-Key', key] });
  const answered = () => gate.metric('tidegate_store_keys{store="redis",upstream="api",state="answered"}');
  for (let n = 1; n <= 8; n += 1) {
    expect((await pay(`order-${n}`)).status).toBe(200);
    await eventually(answered, (count) => count === Math.min(n, 5)); // it is stored after its response
  }
  expect(await gate.metric('tidegate_store_keys{store="redis",upstream="api",state="unresolved"}')).toBe(0);
  expect(await gate.metric('tidegate_bound_used_ratio{bound="settled_keys"}')).toBe(1);
  expect(await gate.metric('tidegate_bound_reached_total{bound="settled_keys"}')).toBe(3);
  await pause(1100);
  const repeats = await Promise.all(['order-1', 'order-8'].map(pay));
  expect(repeats.map(({ status }) => status)).toEqual([200, 409]);
  expect(repeats[1]?.json()['reason']).toBe('key_expired');
});
