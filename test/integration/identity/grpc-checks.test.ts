/** Envoy asks over gRPC, on the port of the proxy, whether a request may pass. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { credentials, status } from '@grpc/grpc-js';
import { Agent, request } from 'undici';
import { atEnd } from '../../support/at-end.ts';
import { makeCertificates } from '../../support/certificates.ts';
import {
  CHECK,
  describeAsEnvoy,
  encodeCheck,
  openEnvoyClient,
  type EnvoyClient,
  type Message,
} from '../../support/clients/envoy-client.ts';
import { makeKeyFile } from '../../support/clients/api-keys.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const NOBODY = 'http://127.0.0.1:9';
const TOKEN = 'correct-horse-battery';
const TRUSTED = 'clients: {trustedProxies: [127.0.0.0/8], key: ["header:x-api-key", ip]}\n';
const ONE = ', rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 0}';

/** The second request waits for 10 s. */
const SLOW = ', rateLimit: {initialRate: 0.1/s, maxRate: 0.1/s}, queue: {maxWait: 500s}, timeout: 600s';

function start(upstream = '', more = TRUSTED, check = ''): Promise<Tidegate> {
  return startTidegate(
    `upstreams: {api: {url: "${NOBODY}"${upstream}}}\n${more}check: {grpc: true, token: ${TOKEN}${check}}\n`,
  );
}

function clientOf({ url }: { readonly url: string }): EnvoyClient {
  return openEnvoyClient(new URL(url).host);
}

function headersOf(options: unknown): Record<string, string> {
  const list = options as { header: { key: string; value: string } }[] | undefined;
  return Object.fromEntries((list ?? []).map(({ header }) => [header.key, header.value]));
}

test('allows a request and returns its permit as a header for the upstream', async () => {
  const gate = await start();
  const answer = await clientOf(gate).check(describeAsEnvoy({ headers: { 'x-api-key': 'a' } }));
  expect(answer['status']).toEqual({ code: 0 });
  const allowed = answer['okResponse'] as Message;
  const added = headersOf(allowed['headers']);
  expect(Object.keys(added)).toEqual(['tidegate-permit']);
  expect(added['tidegate-permit']).toMatch(/^[\w-]+$/);
  expect(Object.keys(headersOf(allowed['responseHeadersToAdd']))).toEqual(['tidegate-request-id']);
  await eventually(gate.requests, (lines) => lines.length === 1);
  expect(gate.requests()[0]).toMatchObject({ method: 'GET', path: '/v1/charges', status: 200, outcome: 'checked' });
  expect(await gate.metric('tidegate_requests_total{route="/",method="GET",code="200",outcome="checked"}')).toBe(1);
});

test('denies a request over its limit with 429, Retry-After, RateLimit and a problem document', async () => {
  const gate = await start(ONE);
  const envoy = clientOf(gate);
  await envoy.check(describeAsEnvoy());
  const answer = await envoy.check(describeAsEnvoy());
  expect(answer['status']).toEqual({ code: status.RESOURCE_EXHAUSTED });
  const denied = answer['deniedResponse'] as Message;
  expect(denied['status']).toEqual({ code: 'TooManyRequests' });
  const headers = headersOf(denied['headers']);
  const after = headers['retry-after'];
  expect(Number(after)).toBeGreaterThanOrEqual(1);
  expect(headers).toMatchObject({ ratelimit: `"tidegate";r=0;t=${after}`, 'content-type': 'application/problem+json' });
  expect(headers['content-length']).toBeUndefined();
  expect(JSON.parse(String(denied['body']))).toMatchObject({
    status: 429,
    reason: 'over_share',
    retryAfter: Number(after),
  });
});

test('learns from the reported outcome of a request that it has allowed over gRPC', async () => {
  const gate = await start();
  const envoy = clientOf(gate);
  for (let i = 0; i < 4; i += 1) {
    const { okResponse } = await envoy.check(describeAsEnvoy());
    const permit = headersOf((okResponse as Message)['headers'])['tidegate-permit'];
    const report = await send(gate.url, '/report', {
      method: 'POST',
      headers: ['Authorization', `Bearer ${TOKEN}`, 'Content-Type', 'application/json'],
      body: JSON.stringify({ permit, status: 429 }),
    });
    expect(report.status).toBe(204);
  }
  await eventually(gate.view, ({ limits }) => limits[0] !== undefined && limits[0].state !== 'open');
});

test('uses the address that Envoy has determined, and its header map, for the identity of the client', async () => {
  const gate = await start();
  const envoy = clientOf(gate);
  const client = async (described: Message): Promise<unknown> => {
    const before = gate.requests().length;
    await envoy.check(described);
    await eventually(gate.requests, (lines) => lines.length > before);
    return gate.requests().at(-1)?.['client'];
  };
  const one = await client(describeAsEnvoy({ address: '203.0.113.7' }));
  expect(await client(describeAsEnvoy({ address: '203.0.113.8' }))).not.toBe(one);
  // The client's own entry in X-Forwarded-For does not count.
  expect(await client(describeAsEnvoy({ headers: { 'x-forwarded-for': '198.51.100.1, 203.0.113.7' } }))).toBe(one);
  const keyed = await client(describeAsEnvoy({ headers: { 'x-api-key': 'k' } }));
  const raw = {
    attributes: {
      source: {},
      request: {
        http: {
          method: 'GET',
          path: '/',
          host: 'a',
          headerMap: { headers: [{ key: 'x-api-key', rawValue: Buffer.from('k') }] },
        },
      },
    },
  };
  expect(await client(raw)).toBe(keyed);
});

test('replaces the header of the principal that a client sends by the one that Envoy has verified', async () => {
  const gate = await start('', 'clients: {trustedProxies: [127.0.0.0/8], key: ["header:tidegate-principal", ip]}\n');
  const envoy = clientOf(gate);
  await envoy.check(describeAsEnvoy({ principal: 'spiffe://example.com/a' }));
  await envoy.check(describeAsEnvoy({ principal: 'spiffe://example.com/a', headers: { 'tidegate-principal': 'b' } }));
  await envoy.check(describeAsEnvoy({ headers: { 'tidegate-principal': 'spiffe://example.com/a' } }));
  await eventually(gate.requests, (lines) => lines.length === 3);
  const [first, second, third] = gate.requests().map(({ client }) => client);
  expect(second).toBe(first);
  expect(third).not.toBe(first);
});

test('finds the route by its name or its upstream in the context extensions', async () => {
  const gate = await startTidegate(
    `upstreams: {a: {url: "${NOBODY}"}, b: {url: "${NOBODY}"}}\nroutes: [{path: /a, upstream: a}, {path: /b, upstream: b}]\n${TRUSTED}check: {grpc: true}\n`,
  );
  const envoy = clientOf(gate);
  for (const contextExtensions of [{ 'tidegate-route': '/b' }, { 'tidegate-upstream': 'a' }]) {
    await envoy.check(describeAsEnvoy({ contextExtensions }));
  }
  await eventually(gate.requests, (lines) => lines.length === 2);
  expect(gate.requests().map(({ upstream }) => upstream)).toEqual(['b', 'a']);
  const unknown = await envoy.check(describeAsEnvoy({ contextExtensions: { 'tidegate-route': '/c' } }));
  expect((unknown['deniedResponse'] as Message)['status']).toEqual({ code: 'BadRequest' });
  const unrouted = (await envoy.check(describeAsEnvoy({ path: '/c' })))['okResponse'] as Message;
  expect(headersOf(unrouted['headers'])).toEqual({ 'tidegate-permit': 'unrouted' });
});

test.each([
  ['an ambiguous path', { path: '/A' }, 400],
  ['a dot segment', { path: '/v1/../admin' }, 400],
])('denies a request with %s, so that it does not pass as a failed check', async (_, described, code) => {
  const gate = await startTidegate(
    `upstreams: {api: {url: "${NOBODY}"}}\nroutes: [{path: /a, upstream: api}, {path: /, upstream: api}]\n${TRUSTED}check: {grpc: true}\n`,
  );
  const denied = (await clientOf(gate).check(describeAsEnvoy(described)))['deniedResponse'] as Message;
  expect(JSON.parse(String(denied['body']))).toMatchObject({ status: code });
});

test('denies checks of a sender that is not a trusted proxy with 403', async () => {
  const gate = await start('', 'clients: {trustedProxies: [192.0.2.1]}\n');
  const answer = await clientOf(gate).check(describeAsEnvoy());
  expect(answer['status']).toEqual({ code: status.PERMISSION_DENIED });
  const denied = answer['deniedResponse'] as Message;
  expect(denied['status']).toEqual({ code: 'Forbidden' });
  expect(JSON.parse(String(denied['body']))).toMatchObject({ reason: 'not_trusted' });
});

test.each([
  ['bytes that are no message', Buffer.from('ffffffff', 'hex'), status.INTERNAL],
  ['a message without a request', Buffer.alloc(0), status.INVALID_ARGUMENT],
  ['a message beyond the bound', Buffer.alloc(200 * 1024), status.RESOURCE_EXHAUSTED],
  [
    'an invalid wait',
    encodeCheck(describeAsEnvoy({ contextExtensions: { 'tidegate-wait': 'x' } })),
    status.INVALID_ARGUMENT,
  ],
])('returns an error for %s, and keeps the connection', async (_, bytes, code) => {
  const gate = await start();
  const envoy = clientOf(gate);
  await expect(envoy.sendBytes(CHECK, bytes)).rejects.toMatchObject({ code });
  expect((await envoy.check(describeAsEnvoy()))['okResponse']).toBeDefined();
});

test('returns UNIMPLEMENTED for another method', async () => {
  const gate = await start();
  const unknown = clientOf(gate).sendBytes('/envoy.service.auth.v3.Authorization/Other', Buffer.alloc(0));
  await expect(unknown).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
});

test('takes no token for a check whose deadline passes while it waits in the queue', async () => {
  const gate = await start(SLOW);
  const envoy = clientOf(gate);
  await envoy.check(describeAsEnvoy());
  const late = envoy.sendBytes(CHECK, encodeCheck(describeAsEnvoy()), 300);
  await expect(late).rejects.toMatchObject({ code: status.DEADLINE_EXCEEDED });
  await eventually(gate.view, ({ limits }) => limits[0]?.queued === 0);
});

test('serves HTTP/1.1 on the same port, whatever the pieces in which it arrives', async () => {
  const upstream = await startHttpUpstream((_, response) => void response.end('from the upstream'));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}\n${TRUSTED}check: {grpc: true}\n`);
  await clientOf(gate).check(describeAsEnvoy());
  expect((await send(gate.url, '/')).body.toString()).toBe('from the upstream');
  const socket = connect(Number(new URL(gate.url).port), '127.0.0.1');
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  for (const piece of [
    'P',
    'O',
    'ST / HTTP/1.1\r\nHost: a\r\n',
    'Content-Length: 4\r\n\r\nab',
    'cdGET /',
    ' HTTP/1.1\r\nHost: a\r\n\r\n',
  ]) {
    socket.write(piece);
    await sleep(10);
  }
  await eventually(
    () => received,
    (text) => text.split('from the upstream').length === 3,
  );
  socket.destroy();
});

test('closes a connection whose first bytes do not arrive in time', async () => {
  const gate = await startTidegate(
    `upstreams: {api: {url: "${NOBODY}"}}\nlimits: {headers: 1s, overload: {eventLoopDelay: 1h}}\n${TRUSTED}check: {grpc: true}\n`,
  );
  const socket = connect(Number(new URL(gate.url).port), '127.0.0.1');
  socket.write('PRI * HTTP/2.0\r\n');
  await new Promise((resolve) => socket.once('close', resolve));
  expect(socket.bytesRead).toBe(0);
});

test('does not serve gRPC unless it is configured', async () => {
  const gate = await startTidegate(`upstreams: {api: {url: "${NOBODY}"}}\n${TRUSTED}check: {}\n`);
  await expect(clientOf(gate).check(describeAsEnvoy())).rejects.toMatchObject({ code: status.UNAVAILABLE });
});

test('answers the waiting checks at a shutdown, and closes their connections', async () => {
  const gate = await start(SLOW, `${TRUSTED}drain: {delay: 0, timeout: 30s}\n`);
  const envoy = clientOf(gate);
  await envoy.check(describeAsEnvoy());
  const waiting = envoy.check(describeAsEnvoy());
  await eventually(gate.view, ({ limits }) => limits[0]?.queued === 1);
  const drained = gate.drain();
  expect((await waiting)['okResponse']).toBeDefined();
  await drained;
  await expect(envoy.check(describeAsEnvoy())).rejects.toMatchObject({ code: status.UNAVAILABLE });
});

test('answers over TLS to a client that offers nothing but HTTP/2, and serves HTTP/1.1 beside it', async () => {
  const certificates = makeCertificates();
  atEnd(certificates.remove);
  certificates.issueServer();
  const tls = `{cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}`;
  const upstream = await startHttpUpstream((_, response) => void response.end('from the upstream'));
  const gate = await startTidegate(
    `listen: {address: 127.0.0.1:0, tls: ${tls}}\nupstreams: {api: {url: "${upstream.url}"}}\n${TRUSTED}check: {grpc: true}\n`,
  );
  const ca = readFileSync(certificates.path('ca.crt'));
  const envoy = openEnvoyClient(new URL(gate.url).host, { tls: credentials.createSsl(ca) });
  expect((await envoy.check(describeAsEnvoy()))['okResponse']).toBeDefined();
  const agent = new Agent({ connect: { ca }, allowH2: true });
  const { body } = await request(gate.url, { dispatcher: agent });
  expect(await body.text()).toBe('from the upstream');
  await agent.close();
});

test('answers on a Unix socket', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-grpc-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'gate.sock');
  await startTidegate(
    `listen: "unix:${path}"\nupstreams: {api: {url: "${NOBODY}"}}\nclients: {trustedProxies: [unix]}\ncheck: {grpc: true}\n`,
  );
  expect((await openEnvoyClient(`unix:${path}`).check(describeAsEnvoy()))['okResponse']).toBeDefined();
});

test('counts its connections within limits.connections', async () => {
  const gate = await start();
  const before = await gate.metric('tidegate_bound_used_ratio{bound="connections"}');
  await clientOf(gate).check(describeAsEnvoy());
  expect(await gate.metric('tidegate_bound_used_ratio{bound="connections"}')).toBeGreaterThan(before);
});

test('refuses a call as RESOURCE_EXHAUSTED if all requests that may be in flight are', async () => {
  const gate = await startTidegate(
    `upstreams: {api: {url: "${NOBODY}"${SLOW}}}\nlimits: {requests: 1, overload: {eventLoopDelay: 1h}}\n${TRUSTED}check: {grpc: true}\n`,
  );
  const envoy = clientOf(gate);
  await envoy.check(describeAsEnvoy());
  const waiting = envoy.startBytes(CHECK, encodeCheck(describeAsEnvoy()));
  await eventually(gate.view, ({ limits }) => limits[0]?.queued === 1);
  await expect(envoy.check(describeAsEnvoy())).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  waiting.cancel();
});

test('denies a request without a valid credential with 401, and identifies the client by a valid one', async () => {
  const file = makeKeyFile('shop');
  const auth = `auth: {apiKeys: {file: ${file.path}}}, trustedProxies: [127.0.0.1]`;
  const gate = await startTidegate(
    `upstreams: {api: {url: "${NOBODY}"}}\nroutes: [{upstream: api}]\nclients: {${auth}}\ncheck: {grpc: true}\n`,
  );
  const envoy = clientOf(gate);
  const refused = await envoy.check(describeAsEnvoy());
  expect(refused['status']).toEqual({ code: status.UNAUTHENTICATED });
  const denied = refused['deniedResponse'] as Message;
  expect(denied['status']).toEqual({ code: 'Unauthorized' });
  expect(headersOf(denied['headers'])['www-authenticate']).toContain('ApiKey');
  const headers = { 'tidegate-key': file.keys[0] ?? '' };
  expect((await envoy.check(describeAsEnvoy({ headers })))['okResponse']).toBeDefined();
  await eventually(gate.requests, (lines) => lines.some(({ clientName }) => clientName === 'shop'));
});

test('closes a connection with malformed frames, and keeps the others', async () => {
  const gate = await start();
  const envoy = clientOf(gate);
  await envoy.check(describeAsEnvoy());
  const socket = connect(Number(new URL(gate.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.resume();
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(Buffer.alloc(64, 0xff));
  await new Promise((resolve) => socket.once('close', resolve));
  expect((await envoy.check(describeAsEnvoy()))['okResponse']).toBeDefined();
});

test('denies with 503 and Retry-After while the upstream is blocked', async () => {
  const gate = await start();
  const envoy = clientOf(gate);
  await envoy.check(describeAsEnvoy());
  const failures = Array.from({ length: 12 }, () => ({ upstream: 'api', status: 503 }));
  await send(gate.url, '/report', {
    method: 'POST',
    headers: ['Authorization', `Bearer ${TOKEN}`, 'Content-Type', 'application/json'],
    body: JSON.stringify(failures),
  });
  await eventually(gate.view, ({ limits }) => limits[0]?.state === 'blocked');
  const request = describeAsEnvoy({ contextExtensions: { 'tidegate-wait': '0' } });
  const answer = await eventually(
    () => envoy.check(request),
    (each) => each['deniedResponse'] !== undefined,
  );
  const denied = answer['deniedResponse'] as Message;
  expect(answer['status']).toEqual({ code: status.UNAVAILABLE });
  expect(denied['status']).toEqual({ code: 'ServiceUnavailable' });
  expect(Number(headersOf(denied['headers'])['retry-after'])).toBeGreaterThanOrEqual(1);
});
