/** Failures and rejections of one path, client or address block that alone, and no block goes long without a probe. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { HttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import type { Received } from '../../support/clients/send.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

interface Asker {
  readonly key: string;
  readonly address?: string;
  readonly path?: string;
}

interface Scene {
  readonly upstream: HttpUpstream;
  readonly gate: Tidegate;
  readonly ask: (asker: Asker) => Promise<Received>;
  readonly statusOf: (asker: Asker) => Promise<number>;
}

type Answer = 'ok' | 'reset' | 'hang' | readonly [status: number, retryAfter?: number];

async function start(
  answer: (asker: Required<Asker>) => Answer,
  more = 'queue: {maxWait: 10ms}',
  top = '',
): Promise<Scene> {
  const upstream = await startHttpUpstream((_, response, { headers, target }) => {
    const valueOf = (name: string): string =>
      headers[headers.findIndex((each) => each.toLowerCase() === name) + 1] ?? '';
    const answered = answer({ key: valueOf('x-api-key'), address: valueOf('x-forwarded-for'), path: target });
    if (answered === 'ok') return response.end('served');
    if (answered === 'reset') return response.destroy();
    if (answered === 'hang') return response;
    const [status, retryAfter] = answered;
    return response.writeHead(status, retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }).end();
  });
  const gate = await startTidegate(`
clients: {trustedProxies: [127.0.0.1], key: ["header:x-api-key", ip]}
${top}upstreams:
  api:
    url: ${upstream.url}
    retry: {attempts: 1}
    ${more}
`);
  const ask = ({ key, address = '203.0.113.1', path = '/' }: Asker): Promise<Received> =>
    send(gate.url, path, { headers: ['X-Api-Key', key, 'X-Forwarded-For', address] });
  return { upstream, gate, ask, statusOf: async (asker) => (await ask(asker)).status };
}

/** Sends requests until the first probe, which comes early and fails: the next one comes later. */
async function failProbe({ upstream, ask }: Scene, asker: Asker): Promise<void> {
  const sent = upstream.hits.length;
  await eventually(
    async () => {
      await ask(asker);
      return upstream.hits.length;
    },
    (hits) => hits > sent,
  );
}

const fivePaths = ['/charges', '/charges/1', '/refunds', '/', '/report'];
const eight = Array.from({ length: 8 }, (_, i) => i);

function addressOf(i: number): string {
  return `203.0.113.${10 + i}`;
}

test('blocks only the path that answers eight clients 503 with a Retry-After of five minutes', async () => {
  const scene = await start(({ path }) => (path.startsWith('/reports') ? [503, 300] : 'ok'));
  const { upstream, gate, ask, statusOf } = scene;
  for (const i of eight) await ask({ key: `k${i}`, address: addressOf(i), path: `/reports/${i}` });
  await failProbe(scene, { key: 'first', address: '198.51.100.2', path: '/reports/8' });
  // A client without a hold: other paths are served, this one is not.
  const sent = upstream.hits.length;
  const answer = await ask({ key: 'other', address: '198.51.100.1', path: '/reports/9' });
  expect([answer.status, answer.json()['reason']]).toEqual([503, 'blocked']);
  expect(Number(answer.header('retry-after'))).toBeLessThanOrEqual(31);
  for (const path of fivePaths) expect(await statusOf({ key: 'other', address: '198.51.100.1', path })).toBe(200);
  expect(upstream.hits).toHaveLength(sent + 5);
  expect(await gate.metric('tidegate_ratelimit_blocks{upstream="api",cause="errors",part="path"}')).toBe(1);
  expect(await gate.metric('tidegate_ratelimit_state{upstream="api",state="blocked"}')).toBe(0);
});

test('blocks only the address whose keys get 429s with a long Retry-After', async () => {
  const scene = await start(({ address }) => (address.startsWith('203.0.113.66') ? [429, 300] : 'ok'), '');
  const { ask, statusOf } = scene;
  for (const key of ['a', 'b', 'c', 'd']) await ask({ key, address: '203.0.113.66' });
  for (let i = 0; i < 5; i += 1) expect(await statusOf({ key: 'other', address: '198.51.100.1' })).toBe(200);
  await failProbe(scene, { key: 'e', address: '203.0.113.66' });
  const stopped = await ask({ key: 'f', address: '203.0.113.66' });
  expect([stopped.status, stopped.json()['reason']]).toEqual([503, 'blocked']);
});

test('keeps reads of other paths going after eight consecutive resets on one path', async () => {
  const { statusOf } = await start(({ path }) => (path === '/broken' ? 'reset' : 'ok'));
  for (const i of eight) expect(await statusOf({ key: 'k', address: addressOf(i), path: '/broken' })).toBe(502);
  for (let i = 0; i < 8; i += 1) expect(await statusOf({ key: 'k', path: '/fine' })).toBe(200);
});

test('blocks only the client whose requests fail on every path', async () => {
  const { statusOf } = await start(({ key }) => (key === 'bad' ? 'reset' : 'ok'));
  for (const i of eight) expect(await statusOf({ key: 'bad', path: `/${i}` })).toBe(502);
  for (const i of eight) expect(await statusOf({ key: 'good', path: `/${i}` })).toBe(200);
});

test('blocks the whole upstream when requests of several clients fail on several paths', async () => {
  const scene = await start(() => [503, 20]);
  const { gate, ask } = scene;
  for (const i of eight) await ask({ key: `k${i}`, address: addressOf(i), path: `/${i}` });
  await failProbe(scene, { key: 'first', address: '198.51.100.2', path: '/8' });
  const answer = await ask({ key: 'other', address: '198.51.100.1', path: '/elsewhere' });
  expect([answer.status, answer.json()['reason']]).toEqual([503, 'blocked']);
  expect(await gate.metric('tidegate_ratelimit_blocks{upstream="api",cause="errors",part="upstream"}')).toBe(1);
});

test('probes a blocked part before the requested hours are over, and unblocks it on success', async () => {
  let isBroken = true;
  const scene = await start(
    ({ path }) => (isBroken && path === '/slow' ? [503, 7200] : 'ok'),
    'rateLimit: {maxProbeDelay: 300ms}\n    queue: {maxWait: 10ms}',
  );
  const { gate, ask, statusOf } = scene;
  for (const i of eight) await ask({ key: `k${i}`, address: addressOf(i), path: '/slow' });
  await failProbe(scene, { key: 'first', address: '198.51.100.2', path: '/slow' });
  isBroken = false;
  const statuses: number[] = [];
  await eventually(
    async () => {
      statuses.push(await statusOf({ key: 'other', address: '198.51.100.1', path: '/slow' }));
      return statuses.at(-1);
    },
    (status) => status === 200,
  );
  expect(statuses[0]).toBe(503);
  expect(await gate.metric('tidegate_ratelimit_blocks{upstream="api",cause="errors",part="upstream"}')).toBe(0);
});

test('serves an address that has not failed although two that fail with a long Retry-After ask first and more often', async () => {
  const scene = await start(({ path }) => (path.startsWith('/charges/bad') ? [503, 300] : 'ok'), '');
  const { ask, statusOf } = scene;
  const good = { key: 'good', address: addressOf(2) };
  expect(await statusOf({ ...good, path: '/charges/ok' })).toBe(200);
  for (const i of eight) await ask({ key: `bad${i % 2}`, address: addressOf(i % 2), path: `/charges/bad${i}` });
  await failProbe(scene, { key: 'bad0', address: addressOf(0), path: '/charges/bad8' });
  const repeated = await ask({ key: 'bad0', address: addressOf(0), path: '/charges/bad9' });
  expect([repeated.status, repeated.json()['reason']]).toEqual([503, 'blocked']);
  expect(await statusOf({ ...good, path: '/charges/ok' })).toBe(200);
});

test('does not probe with the held client before its hold ends', async () => {
  const { upstream, ask } = await start(
    () => [503, 60],
    'rateLimit: {maxProbeDelay: 100ms}\n    queue: {maxWait: 10ms}',
  );
  for (const i of eight) await ask({ key: 'one', path: `/${i}` });
  const sent = upstream.hits.length;
  await sleep(300);
  expect((await ask({ key: 'one', path: '/9' })).status).toBeGreaterThanOrEqual(429);
  expect(upstream.hits).toHaveLength(sent);
});

test('names the blocked part of the upstream and the reason in an explanation', async () => {
  const scene = await start(({ path }) => (path === '/slow' ? [503, 20] : 'ok'));
  const { gate, ask } = scene;
  for (const i of eight) await ask({ key: `k${i}`, address: addressOf(i), path: '/slow' });
  await failProbe(scene, { key: 'first', address: '198.51.100.2', path: '/slow' });
  await ask({ key: 'other', address: '198.51.100.1', path: '/fine' });
  const refused = await send(gate.url, '/slow', {
    headers: ['X-Api-Key', 'other', 'X-Forwarded-For', '198.51.100.1'],
  });
  const id = refused.header('x-request-id');
  const explained = await (await fetch(`${gate.adminUrl}/explain/${id}`)).text();
  expect(explained).toContain('the upstream is blocked for this path: only probes are sent');
  expect(explained).toContain('"blockedPart":"path"');
  expect(explained).toContain('"blockedCause":"errors"');
});

test('keeps other traffic flowing between a broken path and a client that fails everywhere', async () => {
  const healthy = fivePaths.slice(0, 3);
  const { statusOf } = await start(
    ({ path, key }) => (path === '/broken' || key === 'bad' ? [503, 20] : 'ok'),
    'queue: {maxWait: 1s}',
  );
  const seen: number[] = [];
  for (const i of [...eight, ...eight, ...eight]) {
    await Promise.all([
      statusOf({ key: 'bad', address: '203.0.113.66', path: `/lookup/${i}` }),
      i % 2 === 0 ? statusOf({ key: `k${i}`, address: addressOf(i), path: '/broken' }) : 0,
    ]);
    for (const path of healthy) seen.push(await statusOf({ key: 'good', address: '198.51.100.1', path }));
  }
  expect(seen.filter((status) => status !== 200)).toEqual([]);
});

test('sends another probe within maxProbeDelay when one hangs', async () => {
  let how: Answer = [503, 20];
  const { ask, statusOf } = await start(
    ({ path }) => (path === '/slow' ? how : 'ok'),
    'perTryTimeout: 20s\n    rateLimit: {maxProbeDelay: 300ms}\n    queue: {maxWait: 10ms}',
  );
  for (const i of eight) await ask({ key: `k${i}`, address: addressOf(i), path: '/slow' });
  how = 'hang';
  await sleep(400);
  const hanging = statusOf({ key: 'hangs', address: '198.51.100.9', path: '/slow' }).catch(() => undefined);
  await sleep(50);
  how = 'ok';
  const begunAt = performance.now();
  await eventually(
    () => statusOf({ key: 'other', address: '198.51.100.1', path: '/slow' }),
    (status) => status === 200,
  );
  // Long before the hanging probe times out.
  expect(performance.now() - begunAt).toBeLessThan(10_000);
  void hanging;
});

test('does not widen a client’s block to the whole upstream after a restart', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'tidegate-')), 'state.json');
  const { upstream, gate, ask } = await start(
    ({ address }) => (address.startsWith('203.0.113.66') ? [503, 300] : 'ok'),
    'queue: {maxWait: 10ms}',
    `state: {store: memory, file: ${file}}\n`,
  );
  for (const i of [...eight, 8, 9]) await ask({ key: `k${i}`, address: '203.0.113.66', path: `/${i}` });
  expect(await gate.metric('tidegate_ratelimit_blocks{upstream="api",cause="errors",part="address"}')).toBe(1);
  await gate.close();
  expect(readFileSync(file, 'utf8')).toContain('"block"');
  const next = await startTidegate(`
state: {store: memory, file: ${file}}
upstreams: {api: {url: "${upstream.url}", queue: {maxWait: 10ms}}}
`);
  for (let i = 0; i < 20; i += 1) expect((await send(next.url, '/fine')).status).toBe(200);
});

test('does not reduce the rate on a cached 429', async () => {
  const date = new Date(Date.now() - 3_000_000).toUTCString();
  const upstream = await startHttpUpstream((_, response, { target }) => {
    if (target === '/cached') response.writeHead(429, { Age: '3000', Date: date, 'Retry-After': '300' });
    return response.end('said');
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}\n`);
  for (let i = 0; i < 5; i += 1) expect((await send(gate.url, '/cached')).status).toBe(429);
  for (let i = 0; i < 20; i += 1) expect((await send(gate.url, '/fine')).status).toBe(200);
  expect(await gate.metric('tidegate_ratelimit_state{upstream="api",state="open"}')).toBe(1);
});

test.each([429, 503])(
  'holds only the client of a cached %i with Retry-After, for the time left of it',
  async (status) => {
    const headers = { Age: '30', 'Retry-After': '40' };
    const upstream = await startHttpUpstream((n, response) =>
      response.writeHead(n === 1 ? status : 200, n === 1 ? headers : {}).end(),
    );
    const retry = 'retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 1ms}}';
    const gate = await startTidegate(`
clients: {key: ["header:x-api-key"]}
upstreams: {api: {url: "${upstream.url}", ${retry}, throttle: {answers: [{status: 503, is: throttled}]}}}
`);
    const ask = (key: string) => send(gate.url, '/', { headers: ['X-Api-Key', key] });
    const first = await ask('a');
    expect([first.status, upstream.hits.length]).toEqual([status, 1]); // its deadline is earlier
    const held = await ask('a');
    expect(held.status).toBe(429);
    expect(Number(held.header('retry-after'))).toBeGreaterThan(5);
    expect(Number(held.header('retry-after'))).toBeLessThanOrEqual(10);
    expect((await ask('b')).status).toBe(200);
    expect(await gate.metric('tidegate_ratelimit_cuts_total{upstream="api",cause="first"}')).toBe(0);
  },
);

test.each([
  ['credential', { a: 429, b: 200 }],
  ['client', { a: 429, b: 429 }],
] as const)('holds nobody else for a cached 429 with Retry-After at scope %s', async (scope, expected) => {
  const upstream = await startHttpUpstream((n, response) =>
    response.writeHead(n === 1 ? 429 : 200, n === 1 ? { Age: '5', 'Retry-After': '40' } : {}).end(),
  );
  const gate = await startTidegate(`
clients: {key: ["header:x-api-key"]}
upstreams: {api: {url: "${upstream.url}", rateLimit: {scope: ${scope}}, retry: {attempts: 1}}}
`);
  const ask = async (key: string, token: string) =>
    (await send(gate.url, '/', { headers: ['X-Api-Key', key, 'Authorization', `Bearer ${token}`] })).status;
  expect(await ask('one', 'a')).toBe(429);
  expect({ a: await ask('one', 'a'), b: await ask('one', 'b') }).toEqual(expected);
  expect(await ask('two', 'a')).toBe(200);
});

test('retries a cached 429 without a Retry-After like any other', async () => {
  const upstream = await startHttpUpstream((n, response) =>
    response.writeHead(n === 1 ? 429 : 200, { Age: '30' }).end(),
  );
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 1ms}}}}
`);
  expect((await send(gate.url, '/')).status).toBe(200);
  expect(await gate.metric('tidegate_ratelimit_state{upstream="api",state="open"}')).toBe(1);
});

test('keeps the rate of other addresses when one is rejected occasionally', async () => {
  let asked = 0;
  const { gate, ask, statusOf } = await start(
    ({ address }) => (address === '203.0.113.66' && (asked += 1) % 2 === 0 ? [429] : 'ok'),
    'rateLimit: {initialRate: 1000/s}\n    queue: {maxWait: 5s}',
  );
  const statuses: number[] = [];
  for (let i = 0; i < 60; i += 1) {
    const rejected = ask({ key: `k${i}`, address: '203.0.113.66', path: `/own/${i % 7}` });
    for (const n of [0, 1, 2]) {
      statuses.push(await statusOf({ key: `good${n}`, address: addressOf(n), path: `/${n}` }));
    }
    await rejected;
  }
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  expect(gate.view().limits[0]?.rate).toBeGreaterThan(900);
});
