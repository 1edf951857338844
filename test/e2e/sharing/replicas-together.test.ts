/** Replicas that share limits through Redis act as one, also when one of them dies or exits. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { PracticeOptions } from '../../../src/simulator/practice/practice-server.ts';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { loadLuaScript } from '../../../src/sharing/redis/lua-script.ts';
import { pause } from '../../support/pause.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import type { Replicas } from '../../support/proxy/replicas.ts';
import {
  CLIENT_KEY,
  expectUnharmed,
  HIDDEN,
  LIMIT,
  startReplica,
  startReplicas,
  stateAt,
} from '../../support/proxy/replicas.ts';
import { send } from '../../support/clients/send.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';
import { eventually, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

const PATIENCE = 90_000;

test('the tokens of a killed replica go to the others', AGAIN_IF_STALLED, async () => {
  const { run, kill } = await startWithVictim();
  const figures = await run.during(async () => {
    await kill();
    await pause(1000);
  });
  await expectUnharmed(run, figures);
});

test('a killed replica releases its share of a concurrency limit', AGAIN_IF_STALLED, async () => {
  const limit = { kind: 'concurrency', limit: LIMIT / 5 } as const;
  const { run, kill } = await startWithVictim({ limit, latency: { kind: 'constant', mean: 200 } });
  const before = await run.during(() => pause(1500));
  await kill();
  const after = await run.during(() => pause(1500));
  // The killed replica held a third of the limit.
  run.stalls.unlessStalled(() => {
    expect(after.goodput).toBeGreaterThan(0.85 * before.goodput);
    expect(after.waste).toBeLessThan(0.05);
  });
});

/** Starts two replicas that share with a third in a process of its own. */
async function startWithVictim(
  options?: Partial<PracticeOptions>,
): Promise<{ readonly run: Replicas; readonly kill: () => Promise<void> }> {
  const redis = await startRedis();
  const upstream = await startUpstream(options ?? { limit: HIDDEN, latency: { kind: 'constant', mean: 10 } });
  const api = `{url: "${upstream.url}", rateLimit: {initialRate: ${2 * LIMIT}/s}}`;
  const victim = await startWorkers(`${CLIENT_KEY}${stateAt(redis.url)}upstreams: {api: ${api}}\n`);
  const clients = Array.from({ length: 5 }, (_, i) => ({ name: `victim-${i}`, rate: LIMIT / 5 }));
  const traffic = startTraffic({ target: victim.url, clients, seed: 9 });
  onTestFinished(() => traffic.stop(0));
  const run = await startReplicas([redis.url, redis.url], { upstream });
  const membersKey = `tidegate:{api/upstream}:${loadLuaScript().layout}:heard`;
  const counted = (): Promise<number> => redis.client().zcard(membersKey);
  expect(await counted()).toBe(3);
  const kill = async (): Promise<void> => {
    victim.child.kill('SIGKILL');
    await victim.ended;
    await eventually(counted, (count) => count === 2, PATIENCE);
  };
  return { run, kill };
}

test('a client held by one replica is held by all, including one that starts later', AGAIN_IF_STALLED, async () => {
  const stalls = watchStalls();
  const redis = await startRedis();
  const upstream = await startUpstream({ latency: { kind: 'constant', mean: 1 } });
  const [one, other] = await Promise.all([startReplica(redis.url, upstream), startReplica(redis.url, upstream)]);
  const headers = ['x-api-key', 'hasty'];
  const held = await send(one.url, '/', { headers: [...headers, 'x-practice-script', '429; retry-after=30'] });
  expect(held.status).toBe(429);
  const since = performance.now();
  await eventually(
    () => other.view().clients.byState.held,
    (count) => count === 1,
  );
  const known = performance.now() - since;
  stalls.unlessStalled(() => expect(known).toBeLessThan(200));
  const { received } = upstream.stats();
  for (const gate of [other, await startReplica(redis.url, upstream)]) {
    await eventually(
      () => gate.view().clients.byState.held,
      (count) => count === 1,
    );
    const answer = await send(gate.url, '/', { headers });
    expect(answer.status).toBe(429);
    expect(Number(answer.header('retry-after'))).toBeGreaterThan(20);
    expect((await send(gate.url, '/', { headers: ['x-api-key', 'patient'] })).status).toBe(200);
  }
  expect(upstream.stats().received).toBe(received + 2);
});

test('a client that sends to two replicas gets one share, not two', AGAIN_IF_STALLED, async () => {
  const stalls = watchStalls();
  const redis = await startRedis();
  const upstream = await startUpstream({ latency: { kind: 'constant', mean: 5 } });
  const rateLimit = 'initialRate: 180/s, maxRate: 180/s';
  const gates = await Promise.all(['one', 'other'].map(() => startReplica(redis.url, upstream, { rateLimit })));
  for (const [i, gate] of gates.entries()) {
    const names = ['both', ...['a', 'b', 'c', 'd'].map((name) => `${name}-${i}`)];
    const traffic = startTraffic({ target: gate.url, clients: names.map((name) => ({ name, rate: 50 })), seed: i + 1 });
    onTestFinished(() => traffic.stop(0));
  }
  await pause(1000);
  const before = upstream.stats().byClient;
  await pause(6000);
  const served = Object.entries(upstream.stats().byClient).map(
    ([name, { accepted }]) => [name, accepted - (before[name]?.accepted ?? 0)] as const,
  );
  const shares = new Map(served);
  const all = [...shares.values()].reduce((sum, count) => sum + count, 0);
  expect(shares.size).toBe(9);
  stalls.unlessStalled(() => {
    expect(all / 6 / 180).toBeGreaterThan(0.85);
    expect((9 * (shares.get('both') ?? 0)) / all).toBeGreaterThan(0.9);
    expect((9 * (shares.get('both') ?? 0)) / all).toBeLessThan(1.1);
  });
});

test(
  'a replica answers its last requests and closes its connections on exit, whatever the state of Redis',
  async () => {
    const ways = ['answers', 'is gone', 'stands still', 'was never there'] as const;
    await Promise.all(ways.map(expectGoodEnd));
  },
  PATIENCE,
);

async function expectGoodEnd(how: 'answers' | 'is gone' | 'stands still' | 'was never there'): Promise<void> {
  const redis = await startRedis();
  if (how === 'was never there') await redis.kill();
  const upstream = await startUpstream({ latency: { kind: 'constant', mean: 300 } });
  const api = `{url: "${upstream.url}", rateLimit: {initialRate: 100/s}}`;
  const gate = await startWorkers(`${CLIENT_KEY}${stateAt(redis.url)}upstreams: {api: ${api}}\n`);
  const last = send(gate.url, '/');
  await eventually(
    () => upstream.stats().inFlight,
    (count) => count === 1,
  );
  if (how === 'is gone') await redis.kill();
  if (how === 'stands still') redis.freeze();
  gate.child.kill('SIGTERM');
  expect((await last).status).toBe(200);
  const { code, stderr } = await gate.ended;
  expect(code).toBe(0);
  expect(stderr).toBe('');
  if (how !== 'answers') return;
  const others = (await redis.client().call('CLIENT', 'LIST')) as string;
  expect(others.split('\n').filter((line) => line !== '' && !line.includes('cmd=client'))).toEqual([]);
}

test(
  'a closed store does not keep the process alive, whatever the state of Redis',
  async () => {
    await Promise.all((['answers', 'stands still', 'is not there'] as const).map(expectNothingAlive));
  },
  PATIENCE,
);

async function expectNothingAlive(how: 'answers' | 'stands still' | 'is not there'): Promise<void> {
  const redis = await startRedis();
  if (how === 'stands still') redis.freeze();
  if (how === 'is not there') await redis.kill();
  const script = `
      import { readFile } from './src/cli/read-file.ts';
      import { loadConfig } from './src/config/load/load-config.ts';
      import { shareOverRedis } from './src/process/sharing/redis-sharing.ts';
      const { config } = loadConfig(${JSON.stringify(`upstreams: {api: {url: "http://127.0.0.1:1"}}\n${stateAt(redis.url)}`)}, 'x', { env: {}, readFile });
      const shared = await shareOverRedis(config.state, { clock: performance, random: Math.random, listen: () => undefined });
      shared.close();`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: 'inherit' });
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(await once(child, 'close')).toEqual([0, null]);
}

test('a server that answers with garbage is treated as an outage', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.write('\u0000\u0001 no Redis speaks so\r\n'.repeat(20)));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const run = await startReplicas([`redis://127.0.0.1:${port}`, `redis://127.0.0.1:${port}`]);
  await run.degraded();
  for (const gate of run.gates) {
    expect(gate.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
    expect(gate.requests().some(({ outcome }) => outcome === 'forwarded')).toBe(true);
    expect(gate.requests().filter(({ status }) => ![200, 429, 503].includes(Number(status)))).toEqual([]);
  }
});
