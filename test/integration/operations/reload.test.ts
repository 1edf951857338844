/** A reload: what continues, what is kept, what is new. */
import { copyFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const inFlight = 'tidegate_requests_in_flight{route="/"}';

function rateOf(gate: Tidegate): number {
  return gate.view().limits[0]?.rate ?? Number.NaN;
}

function startNamed(name: string, latency = 0) {
  return startHttpUpstream((_n, response) => {
    setTimeout(() => response.end(name), latency);
  });
}

test('drains the queue of a removed upstream, then closes its connections', async () => {
  const old = await startNamed('old', 50);
  const other = await startNamed('other');
  const api = `{url: "${old.url}", timeout: 30s, rateLimit: {initialRate: 20/s, maxRate: 20/s}, queue: {maxWait: 20s}}`;
  const gate = await startTidegate(`upstreams: {api: ${api}}`);
  const agent = keepAlive();
  const waiting = Array.from({ length: 20 }, () => send(gate.url, '/', { agent }));
  await eventually(
    async () => (await gate.metric('tidegate_queue_depth{upstream="api"}')) + old.hits.length,
    (arrived) => arrived === 20,
  );
  expect((await gate.rewrite(`upstreams: {fresh: {url: "${other.url}"}}`)).kind).toBe('applied');
  expect((await send(gate.url, '/')).body.toString()).toBe('other');
  const answers = await Promise.all(waiting);
  expect(new Set(answers.map(({ status, body }) => `${status} ${body.toString()}`))).toEqual(new Set(['200 old']));
  expect(old.hits).toHaveLength(20);
  await eventually(old.openConnections, (count) => count === 0);
  await eventually(
    () => gate.view().limits.map(({ upstream }) => upstream),
    (names) => !names.includes('api'),
  );
  expect(gate.view().limits.map(({ upstream }) => upstream)).toEqual(['fresh']);
});

test('completes a streaming response after its upstream and route are removed', async () => {
  let finish = (): void => undefined;
  const old = await listen((_request, response) => {
    response.write('begun ');
    finish = () => response.end('ended');
  });
  const other = await startNamed('other');
  const gate = await startTidegate(`upstreams: {api: {url: "${old.url}"}}`);
  const streaming = send(gate.url, '/');
  await eventually(
    () => gate.metric('tidegate_upstream_attempts_total{upstream="api",attempt="1",code="200"}'),
    (count) => count === 1,
  );
  await gate.rewrite(`upstreams: {fresh: {url: "${other.url}"}}`);
  await pause(500); // long enough to look unused
  finish();
  expect((await streaming).body.toString()).toBe('begun ended');
});

test('keeps connections to unchanged destinations, and replaces the others', async () => {
  const [one, two] = [await startNamed('one'), await startNamed('two')];
  const agent = keepAlive();
  const gate = await startTidegate(`upstreams: {api: {url: "${one.url}"}}`);
  await send(gate.url, '/', { agent });
  await gate.rewrite(`upstreams: {api: {url: "${one.url}", timeout: 7s, retry: {attempts: 2}}}`);
  await send(gate.url, '/', { agent });
  expect(one.connections()).toBe(1);
  await gate.rewrite(`upstreams: {api: {url: "${two.url}", timeout: 7s, retry: {attempts: 2}}}`);
  expect((await send(gate.url, '/', { agent })).body.toString()).toBe('two');
  await eventually(one.openConnections, (count) => count === 0);
});

test('keeps the configuration of a request’s arrival, for its waiting retry too', async () => {
  const old = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? 503 : 200).end('old'));
  const other = await startNamed('other');
  const backOff = 'retry: {backOff: {strategy: fixed, baseInterval: 600ms}}';
  const gate = await startTidegate(`upstreams: {api: {url: "${old.url}", ${backOff}}}`);
  const asleep = send(gate.url, '/');
  await eventually(
    () => gate.metric('tidegate_retries_total{upstream="api",reason="status_5xx"}'),
    (count) => count === 1,
  );
  await gate.rewrite(`upstreams: {api: {url: "${other.url}", retry: {attempts: 1}}}`);
  const answer = await asleep;
  expect([answer.status, answer.body.toString()]).toEqual([200, 'old']);
  expect(old.hits).toHaveLength(2);
});

test('keeps a learned rate, applies a lower maxRate at once, and reopens the limit without it', async () => {
  const upstream = await startNamed('one');
  const yaml = (limit: string) =>
    `upstreams: {api: {url: "${upstream.url}", rateLimit: {${limit}}, queue: {maxWait: 10s}}}`;
  const gate = await startTidegate(yaml(''));
  expect(rateOf(gate)).toBe(Number.POSITIVE_INFINITY);
  await gate.rewrite(yaml('maxRate: 40/s'));
  expect(rateOf(gate)).toBe(40);
  const since = performance.now();
  await Promise.all(Array.from({ length: 21 }, () => send(gate.url, '/')));
  expect(performance.now() - since).toBeGreaterThan(450); // 20 intervals of 25 ms
  await gate.rewrite(yaml('maxRate: 10/s'));
  expect(rateOf(gate)).toBe(10);
  await gate.rewrite(yaml(''));
  expect(rateOf(gate)).toBe(Number.POSITIVE_INFINITY);
  await gate.rewrite(yaml('initialRate: 5/s'));
  expect(rateOf(gate)).toBeCloseTo(5);
});

test('keeps a detected limit through changes of everything else', async () => {
  let accepts = true;
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(accepts ? 200 : 429).end());
  const yaml = (more: string) => `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}${more}}}`;
  const gate = await startTidegate(yaml(''));
  await Promise.all(Array.from({ length: 30 }, () => send(gate.url, '/')));
  accepts = false;
  await send(gate.url, '/');
  const learned = rateOf(gate);
  expect(learned).toBeLessThan(1000);
  const state = gate.view().limits[0]?.state;
  expect(state).not.toBe('open');
  await gate.rewrite(yaml(', timeout: 3s, queue: {maxDepth: 7}, connections: 3'));
  expect(gate.view().limits[0]?.state).toBe(state);
  expect(rateOf(gate)).toBeLessThan(2 * learned);
});

test('serves the queue by the old limit after a change of scope, and new requests by the new one', async () => {
  const upstream = await startNamed('one');
  const yaml = (scope: string) =>
    `upstreams: {api: {url: "${upstream.url}", rateLimit: {scope: ${scope}, maxRate: 10/s}, timeout: 30s, queue: {maxWait: 20s}}}`;
  const gate = await startTidegate(yaml('upstream'));
  for (const [from, to] of [
    ['upstream', 'client'],
    ['client', 'upstream'],
  ] as const) {
    // In the two seconds in which they are served, a busy machine sends enough of them to fill the queue.
    const waiting = Array.from({ length: 20 }, () => send(gate.url, '/'));
    await eventually(
      () => gate.metric('tidegate_queue_depth{upstream="api"}'),
      (depth) => depth >= 6,
    );
    await gate.rewrite(yaml(to));
    expect((await send(gate.url, '/')).status).toBe(200);
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
    await eventually(
      () => new Set(gate.view().limits.map(({ scope }) => scope)),
      (scopes) => scopes.has(to) && !scopes.has(from),
    );
  }
});

test('restores an upstream that is removed and re-added before it has drained', async () => {
  const upstream = await startNamed('one', 800);
  const other = await startNamed('other');
  const api = `api: {url: "${upstream.url}"}`;
  const gate = await startTidegate(`upstreams: {${api}}`);
  const slow = send(gate.url, '/');
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 1,
  );
  await gate.rewrite(`upstreams: {fresh: {url: "${other.url}"}}`);
  await gate.rewrite(`upstreams: {${api}, fresh: {url: "${other.url}"}}\nroutes: [{upstream: api}]`);
  expect((await send(gate.url, '/')).body.toString()).toBe('one');
  expect((await slow).status).toBe(200);
  await pause(400);
  expect((await send(gate.url, '/')).body.toString()).toBe('one');
});

test('switches from observe to enforce and back while requests wait', async () => {
  const upstream = await startNamed('one');
  const yaml = (mode: string) =>
    `mode: ${mode}\nupstreams: {api: {url: "${upstream.url}", timeout: 30s, rateLimit: {initialRate: 10/s, maxRate: 10/s}, queue: {maxWait: 20s}}}`;
  const gate = await startTidegate(yaml('observe'));
  const all = (count: number) => Promise.all(Array.from({ length: count }, () => send(gate.url, '/')));
  await all(10);
  const observed = await eventually(gate.requests, ({ length }) => length === 10);
  expect(observed.map(({ queuedMs }) => queuedMs)).toEqual(Array(10).fill(0));
  expect(observed.map(({ wouldHave }) => wouldHave)).toContain('queued');
  await gate.rewrite(yaml('enforce'));
  expect(await gate.metric('tidegate_mode{mode="enforce"}')).toBe(1);
  const since = performance.now();
  const paced = all(8);
  await pause(100);
  await gate.rewrite(yaml('observe'));
  expect((await send(gate.url, '/')).status).toBe(200);
  for (const { status } of await paced) expect(status).toBe(200);
  expect(performance.now() - since).toBeGreaterThan(600);
});

test('applies a longer queue, a smaller budget and other connections to the next requests', async () => {
  const upstream = await listen(() => undefined);
  const yaml = (more: string) =>
    `upstreams: {api: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 60s, ${more}}}`;
  const gate = await startTidegate(yaml('connections: 1, queue: {maxWait: 30s, maxDepth: 1}'));
  const hanging = [send(gate.url, '/'), send(gate.url, '/')].map((each) => each.catch(() => undefined));
  await eventually(
    () => gate.metric('tidegate_queue_depth{upstream="api"}'),
    (depth) => depth === 1,
  );
  expect((await send(gate.url, '/')).json()).toMatchObject({ reason: 'queue_full' });
  // Room for all: queued requests are sent at once.
  await gate.rewrite(yaml('connections: 9, queue: {maxWait: 30s, maxDepth: 1}'));
  await eventually(
    () => gate.metric('tidegate_queue_depth{upstream="api"}'),
    (depth) => depth === 0,
  );
  await gate.close();
  await Promise.all(hanging);
});

test('keeps client connections through any change', async () => {
  const upstreams = [await startNamed('0'), await startNamed('1')];
  const gate = await startTidegate(`upstreams: {api: {url: "${upstreams[0]?.url}"}}`);
  const client = await openRaw(gate.url);
  for (let n = 1; n <= 10; n += 1) {
    await gate.rewrite(`upstreams: {api: {url: "${upstreams[n % 2]?.url}", timeout: ${n}s}}`);
    client.write(`GET /${n} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const { length } = await eventually(
      () => client.received(),
      (text) => text.split('HTTP/1.1 200').length === n + 1 && text.endsWith(String(n % 2)),
    );
    expect(length).toBeGreaterThan(0);
  }
});

test('uses a renewed upstream certificate file even if no setting has changed', async () => {
  const [own, others] = [makeCertificates(), makeCertificates()];
  onTestFinished(() => own.remove());
  onTestFinished(() => others.remove());
  own.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  const server = createServer({ cert: own.read('server.crt'), key: own.read('server.key') }, (request, response) => {
    request.resume();
    response.end('verified');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const file = own.path('trusted.crt');
  copyFileSync(others.path('ca.crt'), file);
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const yaml = `upstreams: {api: {url: "${url}", tls: {ca: ${file}}, retry: {attempts: 1}}}`;
  const gate = await startTidegate(yaml);
  expect((await send(gate.url, '/')).status).toBe(502);
  expect(await gate.rewrite(yaml)).toEqual({ kind: 'unchanged' });
  copyFileSync(own.path('ca.crt'), file);
  expect(await gate.rewrite(yaml)).toEqual({ kind: 'applied', changed: ['upstreams.api.tls'] });
  expect((await send(gate.url, '/')).body.toString()).toBe('verified');
});
