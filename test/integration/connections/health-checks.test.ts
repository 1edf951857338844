/** Active health checks of endpoints, over sockets. */
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, Server as HttpServer } from 'node:http';
import { createServer } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { createServer as createTlsServer } from 'node:https';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../../support/at-end.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

type Server = HttpServer | HttpsServer;

/** An endpoint whose checks are answered apart from other requests. */
async function startEndpoint(open: (listener: RequestListener) => Server, at: { path?: string } = {}) {
  const checks: IncomingMessage[] = [];
  let requests = 0;
  let check: RequestListener = (_, response) => void response.end('healthy');
  const server = open((request, response) => {
    if (request.url === '/healthz?deep=1') {
      checks.push(request);
      return check(request, response);
    }
    requests += 1;
    response.end('served');
  });
  if (at.path === undefined) server.listen(0, '127.0.0.1');
  else server.listen(at.path);
  await once(server, 'listening');
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const address = server.address() as AddressInfo | string;
  return {
    port: typeof address === 'string' ? 0 : address.port,
    host: typeof address === 'string' ? '' : `127.0.0.1:${address.port}`,
    checks,
    requests: () => requests,
    answerChecks: (how: RequestListener) => {
      check = how;
    },
  };
}

const plain = (listener: RequestListener): Server => createServer(listener);
const status =
  (code: number): RequestListener =>
  (_, response) =>
    void response.writeHead(code).end();

/** @param check settings beside the path, and a short interval */
async function startPair(check = '', more = '') {
  const first = await startEndpoint(plain);
  const second = await startEndpoint(plain);
  const gate = await startTidegate(`
upstreams:
  api:
    urls: ["http://${first.host}", "http://${second.host}"]
    healthCheck: {path: "/healthz?deep=1", interval: 10ms, unhealthy: 2, healthy: 2${check}}
    ${more}
`);
  const isHealthy = (host: string): Promise<number> =>
    gate.metric(`tidegate_endpoint_healthy{upstream="api",endpoint="${host}"}`);
  const becomes = (host: string, value: number) =>
    eventually(
      () => isHealthy(host),
      (is) => is === value,
    );
  return { gate, first, second, becomes };
}

describe('an endpoint whose health checks fail', () => {
  test('gets no requests, and gets some again once they succeed', async () => {
    const { gate, first, second, becomes } = await startPair();
    first.answerChecks(status(503));
    await becomes(first.host, 0);
    for (let i = 0; i < 6; i += 1) expect((await send(gate.url, '/')).status).toBe(200);
    expect([first.requests(), second.requests()]).toEqual([0, 6]);
    expect(gate.log().find(({ msg }) => msg === 'endpoint ejected')).toMatchObject({
      level: 'warn',
      endpoint: first.host,
      cause: 'checks',
      code: '503',
    });
    first.answerChecks(status(204));
    await becomes(first.host, 1);
    for (let i = 0; i < 6; i += 1) await send(gate.url, '/');
    expect(first.requests()).toBe(3);
    expect(gate.log().find(({ msg }) => msg === 'endpoint re-admitted')).toMatchObject({ cause: 'checks' });
  });

  test.each<[string, string, RequestListener]>([
    ['respond with another status than configured', ', status: [200, 3xx]', status(204)],
    ['do not respond in time', ', timeout: 50ms', () => undefined],
    ['break the connection', '', (request) => request.socket.destroy()],
  ])('is found if they %s', async (_, check, answer) => {
    const { first, becomes } = await startPair(check);
    first.answerChecks(answer);
    expect(await becomes(first.host, 0)).toBe(0);
  });

  test('gets requests nevertheless while all endpoints are unhealthy', async () => {
    const { gate, first, second, becomes } = await startPair();
    for (const each of [first, second]) each.answerChecks(status(500));
    for (const each of [first, second]) await becomes(each.host, 0);
    for (let i = 0; i < 4; i += 1) expect((await send(gate.url, '/')).status).toBe(200);
    expect([first.requests(), second.requests()]).toEqual([2, 2]);
  });
});

describe('health checks', () => {
  test('neither use nor change the limit of the upstream, nor count as attempts', async () => {
    const { gate, first } = await startPair('', 'rateLimit: {initialRate: 1/h, maxRate: 1/h, minRate: 1/h}');
    first.answerChecks((_, response) => void response.writeHead(429, { 'Retry-After': '60' }).end());
    const results = (result: string) =>
      gate.metric(`tidegate_endpoint_checks_total{upstream="api",endpoint="${first.host}",result="${result}"}`);
    await eventually(
      () => first.checks.length,
      (count) => count > 5,
    );
    expect([await results('passed'), await results('failed')]).toEqual([0, 0]); // a 429 says nothing about health
    expect((await send(gate.url, '/')).status).toBe(200);
    expect(await gate.metric('tidegate_upstream_throttled_total{upstream="api",reason="unspecified"}')).toBe(0);
    first.answerChecks(status(200));
    await eventually(
      () => results('passed'),
      (count) => count > 0,
    );
  });

  test('are GET requests without credentials, to the host of the endpoint', async () => {
    const { first } = await startPair();
    await eventually(
      () => first.checks.length,
      (count) => count > 0,
    );
    expect(first.checks[0]).toMatchObject({
      method: 'GET',
      headers: { host: first.host, 'user-agent': 'tidegate-health-check' },
    });
    expect(Object.keys(first.checks[0]?.headers ?? {})).toEqual(['host', 'connection', 'user-agent']);
  });

  test('end with a reload that removes them, and the endpoint gets requests', async () => {
    const { gate, first, second, becomes } = await startPair();
    first.answerChecks(status(503));
    await becomes(first.host, 0);
    const result = await gate.rewrite(`upstreams: {api: {urls: ["http://${first.host}", "http://${second.host}"]}}`);
    expect(result.kind).toBe('applied');
    await becomes(first.host, 1);
    const before = first.checks.length;
    for (let i = 0; i < 4; i += 1) await send(gate.url, '/');
    expect(first.requests()).toBe(2);
    expect(first.checks.length).toBeLessThanOrEqual(before + 1); // one may have been under way
  });

  test('use the TLS settings and the Unix socket of the endpoint', async () => {
    const { path, ...certificates } = makeCertificates();
    atEnd(() => Promise.resolve(certificates.remove()));
    certificates.issue('server', '-addext', 'subjectAltName=DNS:pay.example');
    const pem = { key: readFileSync(path('server.key')), cert: readFileSync(path('server.crt')) };
    const secure = await startEndpoint((listener) => createTlsServer(pem, listener));
    const socket = join(path('.'), 's.sock');
    const local = await startEndpoint(plain, { path: socket });
    const check = 'healthCheck: {path: "/healthz?deep=1", interval: 10ms}';
    const gate = await startTidegate(`
upstreams:
  trusted: {url: "https://${secure.host}", tls: {ca: "${path('ca.crt')}", serverName: pay.example}, ${check}}
  untrusted: {url: "https://${secure.host}", tls: {serverName: pay.example}, ${check}}
  local: {url: "unix:${socket}", ${check}}
routes: [{path: /, upstream: trusted}, {path: /untrusted, upstream: untrusted}, {path: /local, upstream: local}]
`);
    const results = (upstream: string, endpoint: string, result: string) =>
      gate.metric(`tidegate_endpoint_checks_total{upstream="${upstream}",endpoint="${endpoint}",result="${result}"}`);
    await eventually(
      () => results('trusted', secure.host, 'passed'),
      (count) => count > 1,
    );
    await eventually(
      () => results('untrusted', secure.host, 'failed'),
      (count) => count > 1,
    );
    await eventually(
      () => results('local', `unix:${socket}`, 'passed'),
      (count) => count > 1,
    );
    expect(await results('trusted', secure.host, 'failed')).toBe(0);
    expect(local.checks[0]?.headers.host).toBe('localhost');
  });
});
