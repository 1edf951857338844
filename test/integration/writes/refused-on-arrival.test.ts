/** Requests that are refused before their exchange: which of them may repeat a write with an unknown outcome. */
import type { ClientHttp2Session } from 'node:http2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { openHttp2, sendHttp2 } from '../../support/clients/http2-client.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import { startApplication } from '../../support/proxy/fastify-application.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { type HttpUpstream, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const JSON_TYPE = ['Content-Type', 'application/json'];
const withKey = (key: string): string => JSON.stringify({ idempotency_key: key, amount: 1 });

type Outcome = readonly [status: number, outcome: string | undefined];
const UNKNOWN: Outcome = [504, 'unknown'];

/** Resets the first connection, so that the first write stays open, and creates after that. */
const startUpstream = (): Promise<HttpUpstream> =>
  startHttpUpstream((n, response) => (n === 1 ? response.destroy() : response.writeHead(201).end()));

const upstreamWith = (url: string, more = ''): string =>
  `upstreams: {api: {url: "${url}", retry: {attempts: 1}, idempotency: {ttl: 24h, jsonField: idempotency_key}${more}}}\n`;

describe('while the write with one key in its JSON body is open, a refusal of another request whose body has arrived', () => {
  const certificates = makeCertificates();
  beforeAll(() => certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1'));
  afterAll(() => certificates.remove());

  test.each([
    ['a path with // at its start', { ':path': '//x' }, 400],
    ['a path with a dot segment', { ':path': '/a/../x' }, 400],
    ['an unknown expectation', { ':path': '/x', expect: 'foo' }, 417],
    ['two accounts', { ':path': '/x', 'stripe-account': ['a', 'b'] }, 400],
  ] as const)('is plain over HTTP/2: %s', async (_, headers, status) => {
    const upstream = await startUpstream();
    const tls = `{cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}`;
    const listen = `listen: {address: 127.0.0.1:0, tls: ${tls}, http2: true}\n`;
    const gate = await startTidegate(listen + upstreamWith(upstream.url));
    const session = await openHttp2(gate.url, certificates.read('ca.crt'));
    const post = (body: string, more: object = {}): Promise<Outcome> => postHttp2(session, body, more);
    expect(await post(withKey('open'))).toEqual(UNKNOWN);
    expect(await post(withKey('other'), headers)).toEqual([status, undefined]);
    expect(await post('{"amount":1}', headers)).toEqual([status, undefined]);
    expect(await post('', headers)).toEqual([status, undefined]);
    expect(await post(withKey('open'), { expect: 'foo' })).toEqual(UNKNOWN);
    expect(upstream.hits).toHaveLength(1);
  });

  test('is plain over HTTP/1.1, with an empty body in chunks too', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(upstreamWith(upstream.url));
    const post = (body: string, target = '/x'): Promise<Outcome> => postHttp1(gate.url, target, body);
    expect(await post(withKey('open'))).toEqual(UNKNOWN);
    expect(await post(withKey('other'), '//x')).toEqual([400, undefined]);
    const client = await openRaw(gate.url);
    client.write('POST //x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n');
    client.write('Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n');
    const refusal = await client.ended();
    expect(refusal).toMatch(/^HTTP\/1\.1 400 /);
    expect(refusal).not.toMatch(/tidegate-outcome/i);
  });

  test('is plain in an application that mounts the proxy', async () => {
    const upstream = await startUpstream();
    const { url } = await startApplication({
      config: {
        upstreams: {
          api: {
            url: upstream.url,
            retry: { attempts: 1 },
            idempotency: { ttl: '24h', jsonField: 'idempotency_key' },
          },
        },
      },
    });
    const post = (body: string, target = '/pay/x', more: readonly string[] = []): Promise<Outcome> =>
      postHttp1(url, target, body, more);
    const twoAccounts = ['Stripe-Account', 'a', 'Stripe-Account', 'b'];
    expect(await post(withKey('open'))).toEqual(UNKNOWN);
    expect(await post(withKey('other'), '/pay//x')).toEqual([400, undefined]);
    expect(await post(withKey('other'), '/pay/x', twoAccounts)).toEqual([400, undefined]);
    expect(await post('{"amount":1}', '/pay/x', twoAccounts)).toEqual([400, undefined]);
    expect(upstream.hits).toHaveLength(1);
  });

  test('is for a stalled body that is too long to have a key: its own outcome is unknown', async () => {
    const upstream = await startUpstream();
    const gate = await startTidegate(`limits: {bodyIdle: 1s}\n${upstreamWith(upstream.url)}`);
    expect(await postHttp1(gate.url, '/x', withKey('open'))).toEqual(UNKNOWN);
    const client = await openRaw(gate.url);
    client.write('POST /x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n');
    client.write(`Transfer-Encoding: chunked\r\n\r\n20000\r\n${' '.repeat(0x20000)}\r\n`);
    const refusal = await client.ended(20_000);
    expect(refusal).toMatch(/^HTTP\/1\.1 504 /);
    expect(refusal).toMatch(/tidegate-outcome: unknown/i);
    expect(refusal).toContain('A part of this request was sent');
    expect(refusal).not.toMatch(/earlier request/);
  });
});

describe('while a write with a key in its header is open, a request that names two accounts', () => {
  const start = async (account: string): Promise<(key: string, ...headers: readonly string[]) => Promise<Outcome>> => {
    const upstream = await startUpstream();
    const idempotency = `{ttl: 24h${account}}`;
    const { url } = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}, idempotency: ${idempotency}}}`,
    );
    return (key, ...headers) => postHttp1(url, '/x', 'amount=1', ['Idempotency-Key', key, ...headers]);
  };

  test('is rejected plainly if its key is another', async () => {
    const post = await start('');
    expect(await post('open')).toEqual(UNKNOWN);
    expect(await post('fresh', 'Stripe-Account', 'a', 'Stripe-Account', 'b')).toEqual([400, undefined]);
  });

  test('is rejected plainly if the key is open for a third account', async () => {
    const post = await start('');
    expect(await post('open', 'Stripe-Account', 'c')).toEqual(UNKNOWN);
    expect(await post('open', 'Stripe-Account', 'a', 'Stripe-Account', 'b')).toEqual([400, undefined]);
  });

  test.each(['a', 'b', 'a, b'])('has an unknown outcome if the key is open for the account %j', async (account) => {
    const post = await start('');
    expect(await post('open', 'Stripe-Account', account)).toEqual(UNKNOWN);
    expect(await post('open', 'Stripe-Account', 'a', 'Stripe-Account', 'b')).toEqual(UNKNOWN);
  });

  test('has an unknown outcome if the key is open for one account of each of two headers', async () => {
    const post = await start(', account: [header:X-Shop, header:X-Till]');
    expect(await post('open', 'X-Shop', 's2', 'X-Till', 't1')).toEqual(UNKNOWN);
    const [shops, tills] = [
      ['X-Shop', 's1', 'X-Shop', 's2'],
      ['X-Till', 't1', 'X-Till', 't2'],
    ];
    expect(await post('open', ...shops, ...tills)).toEqual(UNKNOWN);
    expect(await post('other', ...shops, ...tills)).toEqual([400, undefined]);
  });

  test('has an unknown outcome if the key is open for the claim of one of its tokens', async () => {
    const bearer = (account: string): string[] => {
      const claims = Buffer.from(JSON.stringify({ account })).toString('base64url');
      return ['X-Token', `e30.${claims}.signature`];
    };
    const post = await start(', account: jwt:X-Token:account');
    expect(await post('open', ...bearer('b'))).toEqual(UNKNOWN);
    expect(await post('open', ...bearer('a'), ...bearer('b'))).toEqual(UNKNOWN);
    expect(await post('open', ...bearer('a'), ...bearer('c'))).toEqual([400, undefined]);
  });
});

describe('while a write is open, a repeat whose head cannot be read gets a plain refusal', () => {
  test.each([
    ['40 KB of headers', `X-Long: ${'y'.repeat(40_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['a control character', 'X-A: \u0001\r\n\r\n', 400, 'malformed'],
    ['two lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n\r\nx', 400, 'malformed'],
    ['a length and chunks', 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx', 400, 'malformed'],
    ['headers that stall', 'X-A: ', 408, 'headers_timeout'],
  ] as const)('%s', async (_, rest, status, reason) => {
    const upstream = await startUpstream();
    const gate = await startTidegate(
      `limits: {headers: 1s}\nupstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`,
    );
    expect(await postHttp1(gate.url, '/x', 'x', ['Idempotency-Key', 'open'])).toEqual(UNKNOWN);
    const client = await openRaw(gate.url);
    client.write(`POST /x HTTP/1.1\r\nHost: x\r\nIdempotency-Key: open\r\n${rest}`);
    const refusal = await client.ended(20_000);
    expect(refusal.startsWith(`HTTP/1.1 ${status} `)).toBe(true);
    expect(refusal).toContain(`"reason":"${reason}"`);
    expect(refusal).not.toMatch(/tidegate-outcome/i);
    expect(upstream.hits).toHaveLength(1);
  });
});

async function postHttp2(session: ClientHttp2Session, body: string, more: object): Promise<Outcome> {
  const head = { ':path': '/x', ':method': 'POST', 'content-type': 'application/json', ...more };
  const { status, headers } = await sendHttp2(session, head[':path'], head, body);
  return [status, headers['tidegate-outcome']?.toString()];
}

async function postHttp1(url: string, target: string, body: string, more: readonly string[] = []): Promise<Outcome> {
  const answer = await send(url, target, { method: 'POST', headers: [...JSON_TYPE, ...more], body });
  return [answer.status, answer.header('tidegate-outcome')];
}
