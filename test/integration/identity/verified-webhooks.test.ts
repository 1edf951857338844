/** Routes with `verify`: what is unsigned, wrongly signed or too long to be verified never reaches the upstream. */
import { createHmac } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import Stripe from 'stripe';
import { describe, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { atEnd } from '../../support/at-end.ts';
import { openHttp2, sendHttp2 } from '../../support/clients/http2-client.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { send, type Received, type Sent } from '../../support/clients/send.ts';
import { startApplication } from '../../support/proxy/fastify-application.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { startRecordingUpstream, type AnswerRequest } from '../../support/upstreams/recording-upstream.ts';

const SECRET = 'whsec_of_the_test';
const BODY = '{"id": "evt_1", "type": "charge.succeeded"}';
const PATH = '/webhooks/stripe';
const VERIFY = `{scheme: stripe, secrets: [${SECRET}]}`;
const { webhooks } = new Stripe('sk_test_1');

const now = (): number => Math.floor(Date.now() / 1000);

function signed(payload: string, secret = SECRET, timestamp = now()): string[] {
  return ['Stripe-Signature', webhooks.generateTestHeaderString({ payload, secret, timestamp })];
}

function signedBytes(bytes: Buffer): string[] {
  const at = now();
  const digest = createHmac('sha256', SECRET).update(`${at}.`).update(bytes).digest('hex');
  return ['Stripe-Signature', `t=${at},v1=${digest}`];
}

interface Setup {
  readonly verify?: string;
  /** Further settings of the route, and of the upstream. */
  readonly route?: string;
  readonly upstream?: string;
  readonly more?: string;
  readonly answer?: AnswerRequest;
}

async function start({ verify = VERIFY, route = '', upstream = '', more = '', answer }: Setup = {}) {
  const shop = await startRecordingUpstream(answer);
  const yaml = (rules: string): string => `${more}
upstreams: {shop: {url: "${shop.url}"${upstream}}}
routes: [{path: ${PATH}, upstream: shop, verify: ${rules}${route}}, {path: /, upstream: shop}]`;
  const gate = await startTidegate(yaml(verify));
  const post = (sent: Sent = {}, path = PATH): Promise<Received> =>
    send(gate.url, path, { method: 'POST', body: BODY, ...sent });
  return { gate, shop, post, rewrite: (rules: string) => gate.rewrite(yaml(rules)) };
}

function results(gate: Tidegate, result: string): Promise<number> {
  return gate.metric(`tidegate_signatures_total{route="${PATH}",result="${result}"}`);
}

describe('a signed request', () => {
  test('is forwarded byte by byte, with its signature', async () => {
    const { gate, shop, post } = await start();
    const headers = signed(BODY);
    for (const chunked of [false, true]) {
      expect((await post({ headers, chunked })).status).toBe(200);
      expect(shop.received.at(-1)?.body.toString()).toBe(BODY);
      expect(shop.received.at(-1)?.headers['stripe-signature']).toBe(headers[1]);
    }
    expect(await results(gate, 'valid')).toBe(2);
    expect(await results(gate, 'mismatch')).toBe(0);
  });

  test('is verified over HTTP/2', async () => {
    const certificates = makeCertificates();
    atEnd(() => certificates.remove());
    certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
    const { path, read } = certificates;
    const listen = `listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}`;
    const { gate, shop } = await start({ more: listen });
    const session = await openHttp2(gate.url, read('ca.crt'));
    const post = (header: string) => sendHttp2(session, PATH, { ':method': 'POST', 'stripe-signature': header }, BODY);
    expect((await post(signed(BODY)[1] ?? '')).status).toBe(200);
    const refused = await post(signed(`${BODY} `)[1] ?? '');
    expect([refused.status, refused.json()['reason']]).toEqual([401, 'bad_signature']);
    expect(refused.headers['www-authenticate']).toBe('Webhook-Signature header="Stripe-Signature"');
    expect(shop.received.map(({ body }) => body.toString())).toEqual([BODY]);
  });

  test('is verified over the bytes as sent, compressed or not text at all', async () => {
    const { shop, post } = await start();
    for (const body of [gzipSync(BODY), Buffer.from([0xff, 0x00, 0xfe])]) {
      const headers = [...signedBytes(body), 'Content-Encoding', 'gzip'];
      expect((await post({ headers, body })).status).toBe(200);
      expect(shop.received.at(-1)?.body.equals(body)).toBe(true);
    }
    const headers = [...signed(BODY), 'Content-Encoding', 'gzip'];
    expect((await post({ headers, body: gzipSync(BODY) })).status).toBe(401);
  });

  test('is verified over the empty body if it has none', async () => {
    const { gate, shop } = await start();
    for (const method of ['GET', 'POST', 'DELETE']) {
      expect((await send(gate.url, PATH, { method, headers: signed('') })).status).toBe(200);
      expect((await send(gate.url, PATH, { method, headers: signed(BODY) })).status).toBe(401);
      expect((await send(gate.url, PATH, { method })).status).toBe(401);
    }
    expect(shop.received).toHaveLength(3);
  });

  test('is sent again with its body', async () => {
    const retry = 'retry: {unkeyedWrites: always, backOff: {strategy: fixed, baseInterval: 1ms}}';
    const { shop, post } = await start({
      upstream: `, ${retry}`,
      answer: (_, response, nth) => response.writeHead(nth === 1 ? 503 : 200).end(),
    });
    expect((await post({ headers: signed(BODY) })).status).toBe(200);
    expect(shop.received.map(({ body }) => body.toString())).toEqual([BODY, BODY]);
  });

  test('is accepted by any secret, and by a new one after a reload', async () => {
    const { post, rewrite } = await start({ verify: `{scheme: stripe, secrets: [older, ${SECRET}]}` });
    const byOlder = signed(BODY, 'older');
    expect((await post({ headers: byOlder })).status).toBe(200);
    expect((await post({ headers: signed(BODY) })).status).toBe(200);
    await rewrite(VERIFY);
    expect((await post({ headers: byOlder })).status).toBe(401);
    expect((await post({ headers: signed(BODY) })).status).toBe(200);
  });
});

describe('a request without a valid signature', () => {
  test.each<[string, readonly string[], string]>([
    ['missing', [], 'The request has no signature, or lacks a header that belongs to it.'],
    ['malformed', ['Stripe-Signature', 't=1e3,v1=00'], 'The signature, or a header that belongs to it, is not'],
    ['mismatch', signed(BODY, 'another secret'), 'The signature does not match.'],
    ['too_old', signed(BODY, SECRET, now() - 3600), 'The signature is too old.'],
    ['too_new', signed(BODY, SECRET, now() + 3600), 'The time of the signature is in the future.'],
  ])('gets a 401 if its signature is %s', async (result, headers, detail) => {
    const { gate, shop, post } = await start();
    const refused = await post({ headers });
    expect([refused.status, refused.header('content-type')]).toEqual([401, 'application/problem+json']);
    expect(refused.header('www-authenticate')).toBe('Webhook-Signature header="Stripe-Signature"');
    expect(refused.header('proxy-status')).toBe('tidegate; error=http_request_denied; details="bad_signature"');
    expect(refused.json()).toMatchObject({ title: 'Bad signature', status: 401, reason: 'bad_signature' });
    expect(refused.json()['detail']).toContain(detail);
    expect(shop.received).toEqual([]);
    expect(await results(gate, result)).toBe(1);
    const [line] = await eventually(
      () => gate.requests(),
      ({ length }) => length === 1,
    );
    expect(line).toMatchObject({
      status: 401,
      outcome: 'refused',
      reason: 'bad_signature',
      cause: result,
      attempts: 0,
    });
    const explained = await fetch(`${gate.adminUrl}/explain/${String(line?.['id'])}`);
    expect(await explained.json()).toMatchObject({
      verdict: expect.stringMatching(/^refused with 401 \(bad_signature\): The /) as string,
    });
  });

  test('takes no token of any limit, and leaves nothing in memory', async () => {
    const { gate, post } = await start();
    for (let i = 0; i < 5; i += 1) await post({ headers: signed('other') });
    expect(await gate.metric('tidegate_ratelimit_decisions_total{upstream="shop",decision="passed"}')).toBe(0);
    expect(await gate.metric('tidegate_requests_in_flight{route="/webhooks/stripe"}')).toBe(0);
    expect(await gate.metric('tidegate_replay_buffer_bytes')).toBe(0);
  });

  test('is refused in observe mode too', async () => {
    const { shop, post } = await start({ more: 'mode: observe' });
    expect((await post({ headers: signed('other') })).status).toBe(401);
    expect((await post({ headers: signed(BODY) })).status).toBe(200);
    expect(shop.received).toHaveLength(1);
  });

  test('is refused before its upload if its headers show it', async () => {
    const { gate } = await start();
    const client = await openRaw(gate.url);
    client.write(`POST ${PATH} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 60000\r\n\r\n`);
    const answer = await client.ended();
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).not.toContain('100 Continue');
  });

  test('is refused after its upload if only the body shows it', async () => {
    const { gate, shop } = await start();
    const client = await openRaw(gate.url);
    const [, value] = signed(BODY);
    const length = Buffer.byteLength(BODY);
    client.write(
      `POST ${PATH} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nStripe-Signature: ${value}\r\nContent-Length: ${length}\r\n\r\n`,
    );
    await client.until('100 Continue\r\n\r\n');
    client.write(BODY.replace('1', '2'));
    await client.until('HTTP/1.1 401 ');
    expect(await gate.metric('tidegate_ratelimit_decisions_total{upstream="shop",decision="passed"}')).toBe(0);
    expect(shop.received).toEqual([]);
  });

  test('does not use the idempotency key of another request', async () => {
    const waiting: (() => void)[] = [];
    const { shop, post } = await start({
      upstream: ', idempotency: {concurrent: refuse}',
      answer: (_, response) => waiting.push(() => response.end('{}')),
    });
    const key = ['Idempotency-Key', 'event-1'];
    const first = post({ headers: [...signed(BODY), ...key] });
    await eventually(
      () => waiting,
      ({ length }) => length === 1,
    );
    expect((await post({ headers: [...signed('other'), ...key] })).status).toBe(401);
    expect((await post({ headers: [...signed(BODY), ...key] })).status).toBe(409);
    waiting[0]?.();
    expect((await first).status).toBe(200);
    expect(shop.received).toHaveLength(1);
  });

  test('learns nothing of a write whose outcome is unknown', async () => {
    const { post } = await start({
      upstream: ', timeout: 300ms, perTryTimeout: 300ms, idempotency: {ttl: 24h}',
      answer: () => undefined,
    });
    const key = ['Idempotency-Key', 'event-1'];
    const unknown = await post({ headers: [...signed(BODY), ...key] });
    expect([unknown.status, unknown.header('tidegate-outcome')]).toEqual([504, 'unknown']);
    const refused = await post({ headers: [...signed('other'), ...key] });
    expect([refused.status, refused.header('tidegate-outcome')]).toEqual([401, undefined]);
  });
});

describe('a body that cannot be verified', () => {
  const LONG = 'x'.repeat(70_000);

  test('is refused with 413 if it is longer than replayLimit, with or without a length', async () => {
    const { shop, post } = await start();
    for (const chunked of [false, true]) {
      const refused = await post({ headers: signed(LONG), body: LONG, chunked });
      expect([refused.status, refused.json()['reason']]).toEqual([413, 'body_too_large']);
    }
    expect(shop.received).toEqual([]);
  });

  test('is verified with a larger replayLimit', async () => {
    const { shop, post } = await start({ route: ', retry: {replayLimit: 1MiB}' });
    expect((await post({ headers: signed(LONG), body: LONG })).status).toBe(200);
    expect((await post({ headers: signed(`${LONG}x`), body: LONG, chunked: true })).status).toBe(401);
    expect(shop.received).toHaveLength(1);
  });

  test('is refused with 503 without memory for it', async () => {
    const { shop, post } = await start({ more: 'limits: {replayMemory: 1KiB}' });
    const body = 'x'.repeat(2000);
    const refused = await post({ headers: signed(body), body });
    expect([refused.status, refused.json()['reason']]).toEqual([503, 'replay_memory']);
    expect(refused.header('retry-after')).toMatch(/^[1-4]$/);
    expect(shop.received).toEqual([]);
  });

  test('is refused with 408 if it stops', async () => {
    const { gate, shop } = await start({ more: 'limits: {bodyIdle: 100ms}' });
    const client = await openRaw(gate.url);
    const [, value] = signed(BODY);
    client.write(`POST ${PATH} HTTP/1.1\r\nHost: x\r\nStripe-Signature: ${value}\r\nContent-Length: 100\r\n\r\n{`);
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 408 /);
    expect(shop.received).toEqual([]);
    expect(await results(gate, 'valid')).toBe(0);
  });
});

describe('a way around the verified path', () => {
  test.each([
    '/webhooks/%73tripe',
    '/webhooks//stripe',
    '/webhooks%2fstripe/a',
    '/Webhooks/Stripe',
    '/webhooks;a=b/stripe;c',
    '/webhooks/%53TRIPE?a=b',
  ])('is refused: %s', async (path) => {
    const { shop, post } = await start();
    const refused = await post({}, path);
    expect([refused.status, refused.json()['reason']]).toEqual([400, 'bad_request']);
    expect(shop.received).toEqual([]);
  });

  test('is refused if another route rewrites to it', async () => {
    const shop = await startRecordingUpstream();
    const gate = await startTidegate(`upstreams: {shop: {url: "${shop.url}"}}
routes: [{path: ${PATH}, upstream: shop, verify: ${VERIFY}}, {path: /api, upstream: shop, rewritePrefix: /}]`);
    expect((await send(gate.url, `/api${PATH}`, { method: 'POST', body: BODY })).status).toBe(400);
    expect((await send(gate.url, '/api/webhooks/stripes', { method: 'POST', body: BODY })).status).toBe(200);
  });

  test('does not concern other paths, methods that the route leaves out, and more special routes', async () => {
    const shop = await startRecordingUpstream();
    const gate = await startTidegate(`upstreams: {shop: {url: "${shop.url}"}}
routes:
  - {path: ${PATH}, upstream: shop, methods: [POST], verify: ${VERIFY}}
  - {path: ${PATH}/Public, upstream: shop}
  - {path: /, upstream: shop}`);
    for (const [method, path] of [
      ['POST', '/webhooks/other'],
      ['POST', '/webhooks/stripe2'],
      ['GET', '/webhooks/%73tripe'],
      ['GET', PATH],
      ['POST', `${PATH}/Public`],
    ] as const) {
      expect((await send(gate.url, path, { method })).status).toBe(200);
    }
    expect((await send(gate.url, `${PATH}/public`, { method: 'POST' })).status).toBe(401);
  });
});

test('a CORS preflight needs no signature, unless it has a body', async () => {
  const { gate, shop } = await start();
  const headers = ['Origin', 'https://a.example', 'Access-Control-Request-Method', 'POST'];
  expect((await send(gate.url, PATH, { method: 'OPTIONS', headers })).status).toBe(200);
  expect((await send(gate.url, PATH, { method: 'OPTIONS', headers, body: BODY })).status).toBe(401);
  expect((await send(gate.url, PATH, { method: 'OPTIONS' })).status).toBe(401);
  expect(shop.received).toHaveLength(1);
});

test('a mounted proxy verifies too', async () => {
  const shop = await startRecordingUpstream();
  const verify = { scheme: 'stripe' as const, secrets: [SECRET] };
  const { url, metric } = await startApplication(
    { config: { upstreams: { shop: { url: shop.url } }, routes: [{ path: '/hooks', upstream: 'shop', verify }] } },
    { prefix: '/pay' },
  );
  const post = (headers: readonly string[]): Promise<Received> =>
    send(url, '/pay/hooks', { method: 'POST', headers: [...headers, 'Content-Type', 'application/json'], body: BODY });
  expect((await post(signed(BODY))).status).toBe(200);
  expect((await post(signed('other'))).status).toBe(401);
  expect((await post([])).status).toBe(401);
  expect(shop.received.map(({ body }) => body.toString())).toEqual([BODY]);
  expect(await metric('tidegate_signatures_total{route="/hooks",result="mismatch"}')).toBe(1);
});
