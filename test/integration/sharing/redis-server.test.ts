/** Checks the Redis server with which other tests simulate failures. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import { startCluster } from '../../support/redis/redis-cluster.ts';
import { startSentinel } from '../../support/redis/redis-sentinel.ts';
import type { RedisServer } from '../../support/redis/redis-server.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import { startRelay } from '../../support/relay/relay.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

/** How far its clock is ahead of this machine's, in ms. */
async function ahead(redis: RedisServer): Promise<number> {
  const [seconds, micros] = await redis.client().time();
  return Number(seconds) * 1000 + Number(micros) / 1000 - Date.now();
}

test('answers clients with the password, and is empty after a restart', async () => {
  const redis = await startRedis({ password: 'a b"c', maxmemory: '64mb', policy: 'noeviction' });
  const client = redis.client();
  await client.set('key', 'value');
  expect(await client.config('GET', 'maxmemory*')).toEqual(expect.arrayContaining(['67108864', 'noeviction']));
  await expect(redis.client({ password: 'wrong', retryStrategy: null }).get('key')).rejects.toThrow();
  const { port, pid } = redis;
  await redis.restart();
  expect(await client.get('key')).toBeNull();
  expect(redis.port).toBe(port);
  expect(redis.pid).not.toBe(pid);
});

test.each(['kill', 'stop'] as const)('%s: stops listening', async (how) => {
  const redis = await startRedis();
  const client = redis.client({ retryStrategy: null });
  await client.ping();
  redis.freeze();
  await redis[how]();
  await expect(redis.client({ retryStrategy: null }).ping()).rejects.toThrow();
  await expect(client.ping()).rejects.toThrow();
});

test('accepts commands without answering while frozen, and answers once thawed', async () => {
  const redis = await startRedis();
  const client = redis.client();
  await client.ping();
  redis.freeze();
  let answered = false;
  const answer = client.incr('count').then((count) => {
    answered = true;
    return count;
  });
  await pause(50);
  expect(answered).toBe(false);
  redis.thaw();
  expect(await answer).toBe(1);
});

test('queues commands while paused, and runs them later', async () => {
  const redis = await startRedis();
  const client = redis.client();
  await client.ping();
  await redis.pause(200);
  const since = performance.now();
  await client.ping();
  // The pause may have begun before its response arrived.
  expect(performance.now() - since).toBeGreaterThan(100);
});

test('shifts its clock forwards and back, and expires keys by it', async () => {
  const redis = await startRedis({ clock: true });
  expect(Math.abs(await ahead(redis))).toBeLessThan(5000);
  redis.shiftClock(3_600_000);
  expect(Math.abs((await ahead(redis)) - 3_600_000)).toBeLessThan(5000);
  redis.shiftClock(-90_000);
  expect(Math.abs((await ahead(redis)) + 90_000)).toBeLessThan(5000);
  const client = redis.client();
  await client.set('key', 'value', 'PX', 60_000);
  redis.shiftClock(0);
  expect(await client.get('key')).toBeNull();
  await redis.restart();
  redis.shiftClock(-3_600_000);
  expect(Math.abs((await ahead(redis)) + 3_600_000)).toBeLessThan(5000);
});

test('replicates its master, and is promoted by Sentinel when the master dies', async () => {
  const sentinel = await startSentinel({ password: 'secret' });
  const client = sentinel.client();
  await client.set('key', 'value');
  expect(await client.wait(1, 10_000)).toBe(1);
  expect(await sentinel.masterPort()).toBe(sentinel.master.port);
  await sentinel.master.kill();
  // Sentinel does nothing for half a minute after its machine stalled for 2 s.
  await eventually(sentinel.masterPort, (port) => port === sentinel.replica.port, 50_000);
  expect(await client.get('key')).toBe('value');
  await eventually(
    () => client.set('key', 'other').catch(() => undefined),
    (answer) => answer === 'OK',
  );
});

test('answers for all slots as a cluster', async () => {
  const cluster = await startCluster();
  const client = cluster.client();
  const keys = Array.from({ length: 30 }, (_, i) => `key-${i}`);
  await Promise.all(keys.map((key) => client.set(key, key)));
  expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(keys);
  const sizes = await Promise.all(cluster.nodes.map((node) => node.client().dbsize()));
  expect(Math.min(...sizes)).toBeGreaterThan(0);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(keys.length);
});

test('carries binary data through a relay, across a partition that heals', async () => {
  const redis = await startRedis();
  const relay = await startRelay(redis.url);
  onTestFinished(() => relay.close());
  const client = redis.client({ port: relay.port });
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 31) % 256));
  await client.set('bytes', bytes);
  expect(bytes.equals((await client.getBuffer('bytes')) ?? Buffer.alloc(0))).toBe(true);

  await relay.partition();
  const sent = client.incr('count');
  await pause(50);
  expect(await redis.client().get('count')).toBeNull();
  await relay.rejoin();
  expect(await sent).toBe(1);
  expect(relay.taken).toBe(1);
});

test('ends with the process that started it, even if that is killed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
  const script = `
    import { spawn } from 'node:child_process';
    import { killOnExit } from './test/support/redis/kill-on-exit.ts';
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    killOnExit(child.pid, ${JSON.stringify(folder)});
    console.log(child.pid);`;
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [pid] = (await once(createInterface(parent.stdout), 'line')) as [string];
  expect(isAlive(Number(pid))).toBe(true);
  parent.kill('SIGKILL');
  await eventually(
    () => isAlive(Number(pid)) || existsSync(folder),
    (either) => !either,
  );
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
