/** The first token of a limit of a client or path: it costs Redis little, and no replica can have it twice. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { decodeResponse, encodeRequest, encodeSettings } from '../../../src/sharing/redis/lease-codec.ts';
import { loadLuaScript } from '../../../src/sharing/redis/lua-script.ts';
import { SENT, TOKEN_UNUSED } from '../../../src/sharing/protocol/usage-entries.ts';
import { CLAIM_LIMIT } from '../../../src/sharing/redis/limit-claim.ts';
import { VALID_FOR } from '../../../src/sharing/replicas/limit-retention.ts';
import type { Received } from '../../support/clients/send.ts';
import { headerOf, send } from '../../support/clients/send.ts';
import { pause } from '../../support/pause.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import type { HttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

type RedisClient = ReturnType<Awaited<ReturnType<typeof startRedis>>['client']>;

/** How often Redis has run a command since the last reset, in scripts or not. */
async function countCalls(redis: RedisClient, command: string): Promise<number> {
  const stats = await redis.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

/** Starts a replica in front of one upstream, with a limit for each client. */
function startReplica(
  upstream: HttpUpstream,
  redis: { readonly url: string },
  rate: string,
  maxWait = '20s',
): Promise<Tidegate> {
  return startTidegate(`
upstreams: {one: {url: "${upstream.url}", retry: {attempts: 1}, queue: {maxWait: ${maxWait}}, rateLimit: {scope: client, ${rate}}}}
routes: [{path: /, upstream: one}]
clients: {key: ["header:x-api-key", ip]}
state: {store: redis, url: "${redis.url}", timeout: 240ms}
`);
}

const of = (client: string): { readonly headers: string[] } => ({ headers: ['X-Api-Key', client] });

/**
 * Records which scripts run for limits of clients and of paths except `known`, by the key of the limit, in the order of their first
 * runs. The upstream's own limit calls when it is due.
 */
async function recordScripts(port: number): Promise<Map<string, string[]>> {
  const scripts = new Map<string, string[]>();
  const socket = connect({ host: '127.0.0.1', port });
  onTestFinished(() => void socket.destroy());
  const lines = createInterface({ input: socket });
  lines.on('line', (line) => {
    const [, keyCount, key = ''] = / "evalsha" "\w+" "(\d)" "([^"]*)"/i.exec(line) ?? [];
    if (keyCount === undefined || key.includes('{paths/upstream}') || key.includes('/known}')) return;
    scripts.set(key, [...(scripts.get(key) ?? []), keyCount === '1' ? 'claim' : 'limit.lua']);
  });
  socket.write('MONITOR\r\n');
  await once(lines, 'line'); // OK
  return scripts;
}

// limit.lua takes Redis a hundred times as long as a claim.
test('runs no limit.lua for clients and paths that are used once', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('served'));
  const redis = await startRedis();
  const gate = await startTidegate(`
upstreams:
  clients: {url: "${upstream.url}", rateLimit: {scope: client, initialRate: 100/s}}
  paths:
    url: "${upstream.url}"
    limits: [{name: endpoint, match: {path: ["/paths/{resource}"]}, initialRate: 100/s}]
routes: [{path: /paths, upstream: paths}, {path: /, upstream: clients}]
clients: {key: ["header:x-api-key", ip]}
state: {store: redis, url: "${redis.url}", timeout: 240ms}
`);
  // Loads the scripts.
  for (const path of ['/', '/paths/known', '/paths/known']) expect((await send(gate.url, path)).status).toBe(200);
  const scripts = await recordScripts(redis.port);
  /** By request: whether its token cannot have expired. On a busy machine, one that has is leased again. */
  const inTime: boolean[] = [];
  const sendInTime = async (count: number, sendNext: (n: number) => Promise<Received>): Promise<void> => {
    const until = inTime.filter(Boolean).length + count;
    while (inTime.filter(Boolean).length < until) {
      const since = performance.now();
      expect((await sendNext(inTime.length)).status).toBe(200);
      inTime.push(performance.now() - since < VALID_FOR);
    }
  };
  await sendInTime(50, (n) => send(gate.url, '/', of(`invented-${n}`)));
  await sendInTime(50, (n) => send(gate.url, `/paths/invented-${n}`));
  await eventually(
    () => scripts.size,
    (count) => count === inTime.length,
  );
  await pause(500); // in which limit.lua would run
  const ofThoseInTime = [...scripts.values()].filter((_, n) => inTime[n]);
  expect(ofThoseInTime).toEqual(Array.from({ length: 100 }, () => ['claim']));
});

test('leases the second token of a client no sooner at another replica than at the first', async () => {
  const arrivedAt: number[] = [];
  const upstream = await startHttpUpstream((_n, response) => {
    arrivedAt.push(performance.now());
    response.end('served');
  });
  const redis = await startRedis();
  const rate = 'initialRate: 0.5/s, maxRate: 0.5/s';
  const replicas = [await startReplica(upstream, redis, rate), await startReplica(upstream, redis, rate)];
  const since = performance.now();
  for (const { url } of [...replicas, ...replicas]) expect((await send(url, '/', of('spread'))).status).toBe(200);
  expect(arrivedAt).toHaveLength(4);
  // The next token is due two seconds after the time of the one before, however late that arrived. A replica knows the time of Redis
  // to half a round trip.
  for (const [nth, at] of arrivedAt.entries()) expect(at - since).toBeGreaterThan(2000 * nth - 500);
});

test('gives the claimed first token to one of two replicas whose requests arrive together', async () => {
  const arrivedAt: number[] = [];
  const upstream = await startHttpUpstream((_n, response) => {
    arrivedAt.push(performance.now());
    response.end('served');
  });
  const redis = await startRedis();
  const rate = 'initialRate: 0.5/s, maxRate: 0.5/s';
  const replicas = [await startReplica(upstream, redis, rate), await startReplica(upstream, redis, rate)];
  const since = performance.now();
  const answers = await Promise.all(replicas.map(({ url }) => send(url, '/', of('both'))));
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(arrivedAt).toHaveLength(2);
  expect((arrivedAt[1] ?? 0) - since).toBeGreaterThan(1500);
});

test('applies what one replica has learned of a client to its first request at another, and to one that claimed before', async () => {
  let isRejecting = false;
  const upstream = await startHttpUpstream((_n, response) => {
    if (isRejecting) response.writeHead(429, { 'retry-after': '600' });
    response.end();
  });
  const redis = await startRedis();
  const rate = 'initialRate: 50/s';
  const [early, met, fresh] = [
    await startReplica(upstream, redis, rate, '2s'),
    await startReplica(upstream, redis, rate, '2s'),
    await startReplica(upstream, redis, rate, '2s'),
  ];
  expect((await send(early.url, '/', of('known'))).status).toBe(200);
  isRejecting = true;
  const client = redis.client();
  await client.config('RESETSTAT');
  expect((await send(met.url, '/', of('known'))).status).toBe(429);
  await eventually(
    () => countCalls(client, 'hset'), // the rejection is reported
    (count) => count > 0,
  );
  const { headers: refused } = await send(met.url, '/', of('known'));
  expect(Number(headerOf(refused, 'retry-after'))).toBeGreaterThan(200);
  const { length } = upstream.hits;
  for (const { url } of [fresh, early]) {
    const { status, headers } = await send(url, '/', of('known'));
    expect([status, Number(headerOf(headers, 'retry-after')) > 200]).toEqual([429, true]);
  }
  expect(upstream.hits).toHaveLength(length);
});

test('reports a rejection or a quota of the first request', async () => {
  const quota = { 'ratelimit-limit': '10', 'ratelimit-remaining': '5', 'ratelimit-reset': '60' };
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    if (target === '/rejected') response.writeHead(429, { 'retry-after': '1' });
    if (target === '/quota') response.writeHead(200, quota);
    response.end();
  });
  const redis = await startRedis();
  const client = redis.client();
  const { url } = await startReplica(upstream, redis, 'initialRate: 50/s');
  for (const name of ['rejected', 'quota']) {
    await client.config('RESETSTAT');
    await send(url, `/${name}`, of(name));
    const calls = await eventually(
      () => countCalls(client, 'hset'),
      (count) => count > 0,
    );
    expect(calls, name).toBeGreaterThan(0);
  }
});

test('claims nothing in the last tenth of the memory, and no limit that is stored', async () => {
  const redis = (await startRedis({ policy: 'noeviction' })).client();
  const claim = async (key: string): Promise<unknown> => redis.eval(CLAIM_LIMIT, 1, key, '3000');
  const at = await claim('a');
  expect(Math.abs(Number(at) - Date.now())).toBeLessThan(60_000);
  expect(await redis.get('a')).toBe(`claim:${String(at)}`);
  expect(await redis.pttl('a')).toBeGreaterThan(0);
  expect(await claim('a')).toBeNull();
  await redis.set('stored', 'x');
  expect(await claim('stored')).toBeNull();
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
  await redis.config('SET', 'maxmemory', String(Math.round(used / 0.8)));
  expect(await claim('b')).not.toBeNull();
  await redis.config('SET', 'maxmemory', String(Math.round(used / 0.95)));
  expect(await claim('c')).toBeNull();
  expect(await redis.exists('c')).toBe(0);
});

test.each([
  ['leases a claimed token again that was not used', true],
  ['leases no second token while the claimed one is used', false],
])('%s', async (_title, isUnused) => {
  const redis = (await startRedis()).client();
  const keys = [1, 2, 3, 4, 5].map((part) => `{one}${part}`);
  const at = Number(await redis.eval(CLAIM_LIMIT, 1, keys[0] ?? '', '200000'));
  const nothing = Number.POSITIVE_INFINITY;
  const call = encodeRequest({
    replicaId: 'a',
    now: at,
    usage: Float64Array.from(isUnused ? [TOKEN_UNUSED, at] : [SENT, 1, at]),
    leasedTokens: 0,
    inFlight: isUnused ? 0 : 1,
    unanswered: isUnused ? 0 : 1,
    want: 1,
    weight: 1,
    roundTrip: 0,
    known: { epoch: 0, since: -nothing, rate: nothing, ceiling: nothing },
    random: 0.5,
    waitingGroups: [],
    returningGroups: [],
  });
  const settings = encodeSettings({ initialRate: 0.01, maxRate: 0.01, minRate: 0.001, cooldown: 1000 }, true);
  const reply: unknown = await redis.callBuffer(
    'EVAL',
    loadLuaScript().source,
    5,
    ...keys,
    call,
    'a',
    settings,
    '',
    '',
  );
  if (!Buffer.isBuffer(reply)) throw new TypeError('no response');
  const { slots, askAgainAt, now } = decodeResponse(reply);
  expect(slots).toHaveLength(isUnused ? 1 : 0);
  if (!isUnused) expect(askAgainAt).toBeGreaterThan(now);
});
