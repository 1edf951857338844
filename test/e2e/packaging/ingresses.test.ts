/** Real ingresses that check requests with Tidegate, configured by the files in docs/ingress.md. */
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { type IngressAddresses, readShippedConfig, startCaddy, startNginx } from '../../support/programs/ingresses.ts';
import type { RecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const TOKEN = 'correct-horse-battery';
/** Readiness probes of the ingress use another path, which has no route. */
const V1 = 'routes: [{path: /v1, upstream: app, check: only}]\n';
const ONE = 'rateLimit: {initialRate: 0.1/s, maxRate: 0.1/s, minRate: 0.1/s}, queue: {maxWait: 0}';

function startHelper(settings = ONE, more = '', routes = V1): Promise<Tidegate> {
  return startTidegate(`
upstreams: {app: {url: "http://127.0.0.1:9", ${settings}}}
${routes}clients: {trustedProxies: [127.0.0.1], key: ["header:x-api-key", ip]}
check: {token: ${TOKEN}}
${more}`);
}

const app = (): Promise<RecordingUpstream> =>
  startRecordingUpstream(({ target, headers }, response) => {
    if (target === '/v1/forbidden') response.writeHead(403, ['Content-Type', 'text/plain']).end('the app says no');
    else if (target === '/v1/broken') response.writeHead(500).end('the app is broken');
    else response.end(`served ${String(headers['tidegate-permit'] ?? '-')}`);
  });

const INGRESSES = [
  ['nginx', startNginx],
  [
    'nginx with X-Accel-Redirect',
    (behind: IngressAddresses, conf = readShippedConfig('nginx-accel.conf')) => startNginx(behind, conf),
  ],
  ['Caddy', startCaddy],
] as const;

describe.each(INGRESSES)('%s', (name, startIngress) => {
  test('answers a request over the limit with 429 and Retry-After, without sending it to the app', async () => {
    const [gate, origin] = await Promise.all([startHelper(), app()]);
    const url = await startIngress({ tidegate: gate.url, app: origin.url });
    const before = origin.received.length;
    const first = await send(url, '/v1/charges?a=b', { method: 'POST', body: '{"amount":1}' });
    expect([first.status, first.body.toString()]).toEqual([200, expect.stringMatching(/^served [\w-]{20,}$/)]);
    expect(origin.received.at(-1)).toMatchObject({ method: 'POST', target: '/v1/charges?a=b' });
    expect(origin.received.at(-1)?.body.toString()).toBe('{"amount":1}');

    const second = await send(url, '/v1/charges?a=b', { method: 'POST', body: '{"amount":1}' });
    expect(second.status).toBe(429);
    const after = Number(second.header('retry-after'));
    expect(after).toBeGreaterThanOrEqual(1);
    expect(second.header('content-type')).toBe('application/problem+json');
    expect(second.json()).toMatchObject({ title: 'Too many requests', status: 429, retryAfter: after });
    expect(second.header('ratelimit')).toBe(`"tidegate";r=0;t=${after}`);
    expect(origin.received.length - before).toBe(1);

    const asked = gate.requests().filter(({ path }) => path === '/v1/charges');
    expect(asked.map(({ method, outcome }) => `${String(method)} ${String(outcome)}`)).toEqual([
      'POST checked',
      'POST refused',
    ]);
    // The explanation of the refusal is found by the request id in the response.
    expect(gate.explanations?.find(second.header('tidegate-request-id') ?? '')?.outcome).toBe('refused');
  });

  test('forwards a 403 and a 500 of the app unchanged', async () => {
    const [gate, origin] = await Promise.all([startHelper('timeout: 10s'), app()]);
    const url = await startIngress({ tidegate: gate.url, app: origin.url });
    const forbidden = await send(url, '/v1/forbidden');
    expect([forbidden.status, forbidden.body.toString()]).toEqual([403, 'the app says no']);
    expect(forbidden.header('retry-after')).toBeUndefined();
    const broken = await send(url, '/v1/broken');
    expect([broken.status, broken.body.toString()]).toEqual([500, 'the app is broken']);
  });

  test('forwards requests that match no route', async () => {
    const [gate, origin] = await Promise.all([startHelper(), app()]);
    const url = await startIngress({ tidegate: gate.url, app: origin.url });
    for (let i = 0; i < 3; i += 1) {
      const passed = await send(url, '/assets/logo.svg', { headers: ['Tidegate-Permit', 'a lie'] });
      expect([passed.status, passed.body.toString()]).toEqual([200, 'served unrouted']);
    }
  });

  test('identifies clients by their own address and key, not by forwarding headers they sent', async () => {
    const [gate, origin] = await Promise.all([startHelper(), app()]);
    const url = await startIngress({ tidegate: gate.url, app: origin.url });
    const lies = [
      'X-Forwarded-Uri',
      '/assets',
      'X-Original-Uri',
      '/assets',
      'X-Original-Url',
      '/assets',
      'X-Forwarded-For',
      '192.0.2.7',
    ];
    expect((await send(url, '/v1', { headers: lies })).status).toBe(200);
    expect((await send(url, '/v1', { headers: ['Tidegate-Dialect', 'envoy', ...lies] })).status).not.toBe(200);
    await send(url, '/v1', { headers: ['X-Api-Key', 'a'] });
    const clients = new Set(
      gate
        .requests()
        .filter(({ path }) => path === '/v1')
        .map(({ client }) => client),
    );
    expect(clients.size).toBe(2); // one by its address, one by its key
  });

  test('applies the route of a host regardless of headers and targets that name another host', async () => {
    const routes = 'routes: [{path: /v1, host: pay.example, upstream: app, check: only}]\n';
    const [gate, origin] = await Promise.all([startHelper(ONE, '', routes), app()]);
    const url = await startIngress({ tidegate: gate.url, app: origin.url });
    const host = ['Host', 'pay.example'];
    expect((await send(url, '/v1', { headers: host })).status).toBe(200);
    const elsewhere = ['http://nowhere.example/', '/elsewhere', 'nowhere.example'];
    for (const name of ['X-Original-Host', 'X-Original-Url', 'X-Original-Uri', 'X-Forwarded-Host', 'X-Forwarded-Uri']) {
      for (const value of elsewhere) {
        const { status } = await send(url, '/v1', { headers: [...host, name, value] });
        expect(status, `${name}: ${value}`).toBe(429);
      }
    }
    // The host in an absolute request target takes precedence over Host (RFC 9112 §3.2.2).
    const absolute = await send(url, 'http://pay.example/v1', { headers: ['Host', 'nowhere.example'] });
    expect(absolute.status).not.toBe(200);
    expect(origin.received.filter(({ target }) => target.startsWith('/v1'))).toHaveLength(1);
  });

  test('holds the client of a permit when the app reports a 429 for it', async () => {
    const gate = await startHelper('timeout: 10s');
    const origin = await startRecordingUpstream(({ headers }, response) => {
      const permit = headers['tidegate-permit'];
      const body = JSON.stringify({ permit, status: 429, retryAfter: 20 });
      void send(gate.url, '/report', { method: 'POST', headers: ['Authorization', `Bearer ${TOKEN}`], body }).then(
        ({ status }) => response.end(String(status)),
      );
    });
    const url = await startIngress({ tidegate: gate.url, app: origin.url });
    const first = await send(url, '/v1', { headers: ['X-Api-Key', 'a'] });
    expect(first.body.toString()).toBe('204');
    const held = await send(url, '/v1', { headers: ['X-Api-Key', 'a'] });
    expect([held.status, held.header('retry-after')]).toEqual([429, '20']);
  });

  test('gets 403 for every request when it is not a trusted proxy', async () => {
    const origin = await app();
    const gate = await startTidegate(`
upstreams: {app: {url: "http://127.0.0.1:9"}}
clients: {trustedProxies: [192.0.2.1]}
check: {}
`);
    const url = await startIngress({ tidegate: gate.url, app: origin.url });
    expect((await send(url, '/v1')).status).toBe(403);
    expect(origin.received).toHaveLength(0);
  });

  test('does not pass a client’s query parameters as options of the check', async () => {
    const [gate, origin] = await Promise.all([startHelper(), app()]);
    const conf = name === 'Caddy' ? readShippedConfig('Caddyfile').replace('?dialect=http', '') : undefined;
    const url = await startIngress({ tidegate: gate.url, app: origin.url }, conf);
    expect((await send(url, '/v1?a=b')).status).toBe(200);
    const free = ['X-Forwarded-Uri', '/assets?dialect=nginx', 'X-Original-Uri', '/assets'];
    for (const query of ['a=b', 'dialect=envoy', 'dialect=nginx', 'dialect=http', 'wait=9s']) {
      const answer = await send(url, `/v1?${query}`, { headers: free });
      expect([400, 403, 429], query).toContain(answer.status);
    }
    expect(origin.received.filter(({ target }) => target.startsWith('/v1'))).toHaveLength(1);
  });

  test('rejects requests with headers too large or too many for the check', async () => {
    const [gate, origin] = await Promise.all([startHelper(), app()]);
    const url = await startIngress({ tidegate: gate.url, app: origin.url });
    const large = await send(url, '/v1', {
      headers: Array.from({ length: 6 }, (_, i) => [`X-Large-${i}`, 'x'.repeat(4000)]).flat(),
    });
    const many = await send(url, '/v1', { headers: Array.from({ length: 400 }, (_, i) => [`X-${i}`, '']).flat() });
    for (const { status } of [large, many]) expect(status).toBeGreaterThanOrEqual(400);
    expect(origin.received.filter(({ target }) => target.startsWith('/v1'))).toEqual([]);
  });

  if (name !== 'Caddy') {
    test('forwards requests when Tidegate is down', async () => {
      const [gate, origin] = await Promise.all([startHelper(), app()]);
      const url = await startIngress({ tidegate: gate.url, app: origin.url });
      await gate.close();
      const answer = await send(url, '/v1', { method: 'POST', body: 'whole' });
      expect([answer.status, answer.body.toString()]).toEqual([200, 'served -']);
      expect(origin.received.at(-1)?.body.toString()).toBe('whole');
    });
  }
});

test('docs/ingress.md shows the shipped configuration files', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/ingress.md'), 'utf8');
  for (const file of [
    'nginx.conf',
    'nginx-accel.conf',
    'Caddyfile',
    'traefik.yaml',
    'envoy.yaml',
    'envoy-grpc.yaml',
    'envoy-cluster.yaml',
    'envoy-ratelimit.yaml',
    'tidegate.yaml',
  ]) {
    expect(text, file).toContain(readShippedConfig(file).trim());
  }
});

test('the shipped configuration of Tidegate is valid and has no warnings', () => {
  const env = { TIDEGATE_REPORT_TOKEN: TOKEN };
  const loaded = loadConfig(readShippedConfig('tidegate.yaml'), 'tidegate.yaml', { env, readFile: () => '' });
  expect(loaded.kind).toBe('ok');
  if (loaded.kind === 'ok') expect(loaded.warnings).toEqual([]);
});
