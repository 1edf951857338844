/** Failures and refusals of one path, one client or one address block that alone, and no block is without a probe for long. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { HttpUpstream } from '../support/http-upstream.ts';
import { startHttpUpstream } from '../support/http-upstream.ts';
import type { Received } from '../support/send.ts';
import { send } from '../support/send.ts';
import type { Tidegate } from '../support/tidegate.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

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

/** The first probe of somebody who was not asked to wait goes soon. It fails too: the next one waits. */
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

test('a path that answers eight clients 503 with a Retry-After of five minutes stops no other path', async () => {
  const scene = await start(({ path }) => (path.startsWith('/reports') ? [503, 300] : 'ok'));
  const { upstream, gate, ask, statusOf } = scene;
  for (const i of eight) await ask({ key: `k${i}`, address: addressOf(i), path: `/reports/${i}` });
  await failProbe(scene, { key: 'first', address: '198.51.100.2', path: '/reports/8' });
  // Whoever was not asked to wait: other paths pass, that one does not.
  const sent = upstream.hits.length;
  const answer = await ask({ key: 'other', address: '198.51.100.1', path: '/reports/9' });
  expect([answer.status, answer.json()['reason']]).toEqual([503, 'blocked']);
  expect(Number(answer.header('retry-after'))).toBeLessThanOrEqual(31);
  for (const path of fivePaths) expect(await statusOf({ key: 'other', address: '198.51.100.1', path })).toBe(200);
  expect(upstream.hits).toHaveLength(sent + 5);
  expect(await gate.metric('tidegate_ratelimit_blocks{upstream="api",cause="errors",part="path"}')).toBe(1);
  expect(await gate.metric('tidegate_ratelimit_state{upstream="api",state="blocked"}')).toBe(0);
});

test('429s with a long Retry-After of the keys of one address stop no other address', async () => {
  const scene = await start(({ address }) => (address.startsWith('203.0.113.66') ? [429, 300] : 'ok'), '');
  const { ask, statusOf } = scene;
  for (const key of ['a', 'b', 'c', 'd']) await ask({ key, address: '203.0.113.66' });
  for (let i = 0; i < 5; i += 1) expect(await statusOf({ key: 'other', address: '198.51.100.1' })).toBe(200);
  await failProbe(scene, { key: 'e', address: '203.0.113.66' });
  const stopped = await ask({ key: 'f', address: '203.0.113.66' });
  expect([stopped.status, stopped.json()['reason']]).toEqual([503, 'blocked']);
});

test('eight resets in a row by one path stop no reads of another', async () => {
  const { statusOf } = await start(({ path }) => (path === '/broken' ? 'reset' : 'ok'));
  for (const i of eight) expect(await statusOf({ key: 'k', address: addressOf(i), path: '/broken' })).toBe(502);
  for (let i = 0; i < 8; i += 1) expect(await statusOf({ key: 'k', path: '/fine' })).toBe(200);
});

test('one client that fails everywhere stops nobody else', async () => {
  const { statusOf } = await start(({ key }) => (key === 'bad' ? 'reset' : 'ok'));
  for (const i of eight) expect(await statusOf({ key: 'bad', path: `/${i}` })).toBe(502);
  for (const i of eight) expect(await statusOf({ key: 'good', path: `/${i}` })).toBe(200);
});

test('what fails for several clients on several paths stops all', async () => {
  const scene = await start(() => [503, 20]);
  const { gate, ask } = scene;
  for (const i of eight) await ask({ key: `k${i}`, address: addressOf(i), path: `/${i}` });
  await failProbe(scene, { key: 'first', address: '198.51.100.2', path: '/8' });
  const answer = await ask({ key: 'other', address: '198.51.100.1', path: '/elsewhere' });
  expect([answer.status, answer.json()['reason']]).toEqual([503, 'blocked']);
  expect(await gate.metric('tidegate_ratelimit_blocks{upstream="api",cause="errors",part="upstream"}')).toBe(1);
});

test('a part that is blocked is probed though the upstream asked for hours, and opens with it', async () => {
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

test('the client that was asked to wait is no probe before its time', async () => {
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

test('an explanation says what of the upstream is blocked, and why', async () => {
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
  expect(explained).toContain('the upstream lets nothing through of this path at present but a probe');
  expect(explained).toContain('"blockedPart":"path"');
  expect(explained).toContain('"blockedCause":"errors"');
});

test('what fails apart from each other stops nothing between: a broken path, and a client that fails everywhere', async () => {
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

test('a probe that hangs is followed by another, within maxProbeDelay', async () => {
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
    10_000,
  );
  // Long before the one that hangs is given up.
  expect(performance.now() - begunAt).toBeLessThan(10_000);
  void hanging;
});

test('a restart that knows no client again makes no block of one to a block of all', async () => {
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

test('a cached 429 slows nobody', async () => {
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
  'a cached %i that asks to wait keeps its client waiting for the rest of it, and nobody else',
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
    expect([first.status, upstream.hits.length]).toEqual([status, 1]); // its deadline comes before
    const held = await ask('a');
    expect(held.status).toBe(429);
    expect(Number(held.header('retry-after'))).toBeGreaterThan(5);
    expect(Number(held.header('retry-after'))).toBeLessThanOrEqual(10);
    expect((await ask('b')).status).toBe(200);
    expect(await gate.metric('tidegate_ratelimit_cuts_total{upstream="api",cause="first"}')).toBe(0);
  },
);

test('a cached 429 without a Retry-After is retried as any other', async () => {
  const upstream = await startHttpUpstream((n, response) =>
    response.writeHead(n === 1 ? 429 : 200, { Age: '30' }).end(),
  );
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 1ms}}}}
`);
  expect((await send(gate.url, '/')).status).toBe(200);
  expect(await gate.metric('tidegate_ratelimit_state{upstream="api",state="open"}')).toBe(1);
});

test('an address that is rejected now and then leaves the others the rate of before', async () => {
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
