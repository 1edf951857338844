/** How many keys of writes Redis has: the numbers, and what is removed beyond their bounds. */
import { expect, test } from 'vitest';
import { KeyRegistry } from '../../../src/core/idempotency/key-registry.ts';
import { MAX_EXPIRED } from '../../../src/sharing/redis/keys/key-scripts.ts';
import { KeyRecount } from '../../../src/sharing/redis/keys/key-recount.ts';
import type { RedisKeyCommands } from '../../../src/sharing/redis/keys/redis-key-commands.ts';
import { send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import {
  ANSWERED_NAMES,
  connectKeys,
  idOf,
  nameOf,
  OPEN_NAMES,
  openKeys,
  type Progress,
  requestFor,
  stateKeyOf,
} from '../../support/redis/stored-keys.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const DAY = 86_400_000;

/** Recounts, with each next step only when `runNext` is called. The first of what is scheduled is the next recount. */
function startRecount(commands: RedisKeyCommands, isConnected = () => true) {
  const scheduled: { readonly delay: number; readonly run: () => void }[] = [];
  const recount = new KeyRecount({
    commands,
    isConnected,
    schedule: (delay, run) => {
      const entry = { delay, run };
      scheduled.push(entry);
      return () => void (scheduled.includes(entry) && scheduled.splice(scheduled.indexOf(entry), 1));
    },
  });
  /** Redis responds in order, so the step before has its response. */
  const settle = (): Promise<unknown> => new Promise((resolve) => commands.count('other', resolve));
  const delays = (): number[] => scheduled.map(({ delay }) => delay);
  const runNext = (): void => scheduled.splice(-1)[0]?.run();
  return { recount, settle, delays, runNext };
}

async function recount(commands: RedisKeyCommands): Promise<void> {
  const { recount: each, settle } = startRecount(commands);
  each.recount();
  await settle();
}

test('counts unresolved and answered keys by upstream, until they expire', async () => {
  const redis = await startRedis({ clock: true });
  const { commands, store } = openKeys(await connectKeys(redis));
  const states: readonly Progress[] = ['claimed', 'unknown', 'responding', 'repeated', 'answered'];
  for (const [n, state] of states.entries()) await store(n, state);
  await store(9, 'answered', { upstream: 'other' });
  expect(commands.counts.all).toEqual([
    { upstream: 'up', unresolved: 3, answered: 2 },
    { upstream: 'other', unresolved: 0, answered: 1 },
  ]);
  redis.shiftClock(DAY / 2);
  await recount(commands);
  expect(commands.counts.all[0]).toEqual({ upstream: 'up', unresolved: 3, answered: 2 });
  redis.shiftClock(DAY + 60_000);
  await recount(commands);
  expect(commands.counts.all).toEqual([
    { upstream: 'up', unresolved: 0, answered: 0 },
    { upstream: 'other', unresolved: 0, answered: 0 },
  ]);
});

test('keeps no name of a request that leaves nothing to remember', async () => {
  const client = await connectKeys(await startRedis());
  const { store, swap } = openKeys(client);
  const { version, session } = await store(1, 'claimed');
  expect(await client.zcard(OPEN_NAMES)).toBe(1);
  session.change('one', (claim) => claim.release({ kind: 'other' })); // not closed yet: its response is on its way
  expect(session.state).toBe(undefined);
  expect(await swap(1, session, { expected: version, next: 'next' })).toEqual({ kind: 'stored' });
  expect([await client.zcard(OPEN_NAMES), await client.zcard(ANSWERED_NAMES)]).toEqual([0, 0]);
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

test('a recount removes expired keys in steps of at most 200 until none is left', async () => {
  const redis = await startRedis();
  const client = await connectKeys(redis);
  const { commands, store } = openKeys(client);
  await store(0, 'unknown');
  await store(1, 'answered');
  const count = 3.5 * MAX_EXPIRED;
  for (let n = 2; n < count; n += 1) {
    await client.zadd(OPEN_NAMES, 2, `expired-${n}`);
    if (n < count - MAX_EXPIRED) await client.zadd(ANSWERED_NAMES, 2, `expired-${n}`);
  }
  const { recount: expired, settle, delays, runNext } = startRecount(commands);
  const [interval = 0] = delays();
  expired.recount();
  const left: number[][] = [];
  while (left.length < 10) {
    expired.recount(); // does not double the steps that go on
    await settle();
    left.push([await client.zcard(OPEN_NAMES), await client.zcard(ANSWERED_NAMES)]);
    const [, delay] = delays();
    if (delay === undefined) break;
    expect(delay).toBeLessThan(interval / 100);
    runNext();
  }
  const rest = (all: number) => [1, 2, 3, 4].map((step) => Math.max(1, all - 1 - step * MAX_EXPIRED));
  const answered = rest(count - MAX_EXPIRED);
  expect(left).toEqual(rest(count).map((open, step) => [open, answered[step]]));
  expect(commands.counts.all[0]).toEqual({ upstream: 'up', unresolved: 1, answered: 1 });
});

test('a recount asks nothing of Redis while it is not connected or after its end', async () => {
  const client = await connectKeys(await startRedis());
  const { commands, store } = openKeys(client);
  await store(0, 'unknown');
  for (let n = 1; n <= 3 * MAX_EXPIRED; n += 1) await client.zadd(OPEN_NAMES, 2, `expired-${n}`);
  const at = { isConnected: false };
  const { recount: expired, settle, delays, runNext } = startRecount(commands, () => at.isConnected);
  expired.recount();
  await settle();
  expect(await client.zcard(OPEN_NAMES)).toBe(1 + 3 * MAX_EXPIRED);
  at.isConnected = true;
  const [interval] = delays();
  runNext();
  await settle();
  expect(await client.zcard(OPEN_NAMES)).toBe(1 + 2 * MAX_EXPIRED);
  expect(delays().filter((delay) => delay === interval).length).toBe(1);
  expired.recount();
  expired.close();
  await settle();
  expect([await client.zcard(OPEN_NAMES), delays()]).toEqual([1 + 2 * MAX_EXPIRED, []]);
});

test('a key that is forgotten, or used again, is counted once or not at all', async () => {
  const { commands, store, swap, nextVersion } = openKeys(await connectKeys(await startRedis()));
  const { session, version } = await store(0, 'answered');
  expect(commands.counts.all).toMatchObject([{ unresolved: 0, answered: 1 }]);
  const next = nextVersion();
  await swap(0, { state: session.state, unresolvedOwner: 1 }, { expected: version, next });
  expect(commands.counts.all).toMatchObject([{ unresolved: 1, answered: 0 }]);
  const nothing = { state: undefined, unresolvedOwner: undefined };
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

test('clients share the bound of unresolved keys, as in one process', async () => {
  const client = await connectKeys(await startRedis());
  const { commands, store } = openKeys(client, {}, { maxKeys: 50 });
  const keys = new KeyRegistry(10);
  const identity = requestFor(0).identity;
  // Client 2 has the oldest keys. Client 1 floods; clients 3 to 5 come later.
  const order = [2, 2, 2, ...Array.from({ length: 17 }, () => 1), 3, 1, 2, 3, 4, 4, 4, 1, 5, 4, 4, 4, 4, 1, 1, 1];
  for (const [n, owner] of order.entries()) {
    await store(n, 'unknown', { client: owner });
    const write = keys.join({ ...identity, name: nameOf(n), owner });
    keys.record(write, { firstSentAt: n, isAnswered: false });
    keys.leave(write);
    const all = [...order.keys()];
    const left = await Promise.all(all.map((each) => client.exists(stateKeyOf(each))));
    expect([n, all.filter((each) => left[each] === 1)]).toEqual([n, all.filter((each) => keys.knows(nameOf(each)))]);
  }
  expect(keys.knows(nameOf(0))).toBe(false);
  expect(commands.counts.all).toEqual([{ upstream: 'up', unresolved: 10, answered: 0 }]);
});

test('a flood of unresolved keys of one client removes none of another', async () => {
  const client = await connectKeys(await startRedis());
  const { store } = openKeys(client, {}, { maxKeys: 50 });
  for (const n of [0, 1, 2]) await store(n, 'unknown', { client: 2 });
  for (let n = 3; n < 15; n += 1) await store(n, 'claimed');
  for (let n = 15; n < 40; n += 1) await store(n, 'unknown');
  const left = await Promise.all(Array.from({ length: 40 }, (_, n) => client.exists(stateKeyOf(n))));
  expect(left.flatMap((isLeft, n) => (isLeft === 1 ? n : []))).toEqual([
    ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 39],
  ]);
});

test('of a client whose keys are answered, forgotten or expired, nothing is left', async () => {
  const redis = await startRedis({ clock: true });
  const client = await connectKeys(redis);
  const { store, swap, nextVersion, commands, inspection } = openKeys(client);
  const shares = async () => (await client.keys('*:client*')).map((key) => key.replace(/^.*:k3:/, '')).toSorted();
  const answered = await store(0, 'claimed');
  await store(1, 'unknown', { client: 2 });
  await store(2, 'unknown', { client: 3 });
  expect(await shares()).toEqual(['client:1', 'client:2', 'client:3', 'clients']);
  answered.session.change('one', (claim) => claim.release({ kind: 'answered', isFinal: true, isDelivered: true }));
  answered.session.close('one');
  await swap(0, answered.session, { expected: answered.version, next: nextVersion() });
  expect(await shares()).toEqual(['client:2', 'client:3', 'clients']);
  expect(await inspection.forget(idOf(1))).toMatchObject({ kind: 'forgotten' });
  expect(await shares()).toEqual(['client:3', 'clients']);
  for (const key of await client.keys('*')) expect([key, await client.pttl(key)]).not.toEqual([key, -1]);
  redis.shiftClock(DAY + 2 * 3_600_000);
  await recount(commands);
  expect(await shares()).toEqual([]);
});

test('names that an earlier version has removed without their client do not count as its share for long', async () => {
  const client = await connectKeys(await startRedis());
  const { commands, store } = openKeys(client, {}, { maxKeys: 25 });
  for (const n of [0, 1]) await store(n, 'unknown', { client: 2 });
  for (const n of [2, 3, 4]) await store(n, 'unknown');
  for (const n of [2, 3, 4]) {
    await client.zrem(OPEN_NAMES, Buffer.from(nameOf(n), 'latin1').toString('hex'));
  }
  for (const n of [5, 6, 7, 8]) await store(n, 'unknown');
  expect(await client.zcard(OPEN_NAMES.replace(/open$/, 'client:1'))).toBe(3);
  expect(commands.counts.all).toEqual([{ upstream: 'up', unresolved: 5, answered: 0 }]);
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

test('keeps an unresolved write for a year, and an answered one until a day after its ttl', async () => {
  const redis = await startRedis({ clock: true });
  const client = await connectKeys(redis);
  const upstream = await startHttpUpstream((_nth, response, { body }) => {
    if (body.toString() === 'unresolved') response.destroy();
    else response.end('paid');
  });
  const gate = await startTidegate(`
state: {store: redis, url: "${redis.url}", timeout: 240ms}
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, idempotency: {ttl: 1h}}}
`);
  const pay = (key: string) => send(gate.url, '/pay', { method: 'POST', body: key, headers: ['Idempotency-Key', key] });
  expect([(await pay('unresolved')).status, (await pay('answered')).status]).toEqual([504, 200]);
  const states = 'tidegate:{api/keys}:k3:name:*';
  const lifetimes = async (): Promise<number[]> => {
    const keys = await client.keys(states);
    const times = await Promise.all(keys.map((key) => client.pttl(key)));
    return times.map((time) => Math.round(time / DAY)).toSorted((a, b) => a - b);
  };
  await eventually(lifetimes, (days) => days.join() === '1,365');
  redis.shiftClock(300 * DAY);
  const late = await pay('unresolved');
  expect([late.status, late.json()['reason'], late.header('tidegate-outcome')]).toEqual([
    409,
    'key_expired',
    'unknown',
  ]);
  expect(upstream.hits).toHaveLength(2);
});
