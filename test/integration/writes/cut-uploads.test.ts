/** Streamed writes that end before their upload: the upstream has a part of them and may have acted on it. */
import { once } from 'node:events';
import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openHttp2 } from '../../support/clients/http2-client.ts';
import { openRaw, startRawUpstream, type RawClient } from '../../support/clients/raw-socket.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { eventually, startTidegate, type Tidegate } from '../../support/proxy/tidegate.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';

const LONG = 'x'.repeat(0x20000); // longer than `replayLimit`
const CHUNK = `20000\r\n${LONG}\r\n`;

/** Acts on the head of each request, and responds to none. */
async function startEager() {
  const acted: string[] = [];
  const { url } = await listen((request) => {
    acted.push(`${request.method} ${request.url}`);
    request.on('error', () => undefined).resume();
  });
  return { url, acted: () => acted };
}

async function begin(gate: Tidegate, head: string, body = CHUNK): Promise<RawClient> {
  const client = await openRaw(gate.url);
  client.write(`${head} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
  return client;
}

const cut = [
  ['a bad chunk size', 'zz\r\nabc\r\n', 'malformed'],
  ['a bad trailer', '0\r\nBad Trailer\r\n\r\n', 'malformed'],
  ['long chunk extensions', `5;${'e'.repeat(20_000)}\r\nabcde\r\n`, 'extensions_too_large'],
  ['a stall', '', 'body_idle'],
] as const;

describe('a streamed write without a key that ends before its upload has an unknown outcome', () => {
  const certificates = makeCertificates();
  beforeAll(() => certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1'));
  afterAll(() => certificates.remove());

  for (const method of ['POST', 'PUT']) {
    test.each(cut)(`${method}, by %s`, async (_, bytes, reason) => {
      const upstream = await startEager();
      const gate = await startTidegate(`limits: {bodyIdle: 1s}\nupstreams: {api: {url: "${upstream.url}"}}`);
      const client = await begin(gate, `${method} /pay`);
      await eventually(upstream.acted, ({ length }) => length === 1);
      client.write(bytes);
      const response = await client.ended(20_000);
      expect(response).toMatch(/^HTTP\/1\.1 504 /);
      expect(response).toMatch(/^tidegate-outcome: unknown\r$/im);
      expect(response).toMatch(/^tidegate-attempts: 1\r$/im);
      expect(response).toContain(`"reason":"${reason}"`);
      expect(response).toContain('A part of this request was sent to the upstream');
      expect(response).not.toMatch(/earlier request/);
      expect(gate.requests()).toMatchObject([{ level: 'warn', outcome: 'unknown', status: 504, reason }]);
      expect(upstream.acted()).toEqual([`${method} /pay`]);
    });
  }

  const openOverHttp2 = async (url: string): Promise<{ gate: Tidegate; session: ClientHttp2Session }> => {
    const tls = `{cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}`;
    const head = `limits: {bodyIdle: 1s}\nlisten: {address: 127.0.0.1:0, tls: ${tls}, http2: true}\n`;
    const gate = await startTidegate(`${head}upstreams: {api: {url: "${url}"}}`);
    return { gate, session: await openHttp2(gate.url, certificates.read('ca.crt')) };
  };

  test('POST over HTTP/2, by a stall', async () => {
    const upstream = await startEager();
    const { session } = await openOverHttp2(upstream.url);
    const stream = session.request({ ':path': '/pay', ':method': 'POST' });
    stream.on('error', () => undefined).write(LONG);
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders & { ':status': number }];
    expect(headers).toMatchObject({ ':status': 504, 'tidegate-outcome': 'unknown', 'tidegate-attempts': '1' });
    expect(upstream.acted()).toEqual(['POST /pay']);
  });

  test('POST over HTTP/2, by a client that resets it', async () => {
    const upstream = await startEager();
    const { gate, session } = await openOverHttp2(upstream.url);
    const stream = session.request({ ':path': '/pay', ':method': 'POST' });
    stream.on('error', () => undefined).write(LONG);
    await eventually(upstream.acted, ({ length }) => length === 1);
    stream.destroy();
    await eventually(gate.requests, ({ length }) => length === 1);
    expect(gate.requests()).toMatchObject([{ level: 'warn', outcome: 'client_gone', unknown: true }]);
  });

  test('POST, by a client that disconnects', async () => {
    const upstream = await startEager();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await begin(gate, 'POST /pay');
    await eventually(upstream.acted, ({ length }) => length === 1);
    client.socket.destroy();
    await eventually(gate.requests, ({ length }) => length === 1);
    expect(gate.requests()).toMatchObject([{ level: 'warn', outcome: 'client_gone', unknown: true }]);
  });
});

describe('an upload that ends early gets a plain refusal', () => {
  test('if its method is safe', async () => {
    const upstream = await startEager();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}`);
    const client = await begin(gate, 'GET /search');
    await eventually(upstream.acted, ({ length }) => length === 1);
    client.write('zz\r\n');
    const response = await client.ended(20_000);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(response).not.toMatch(/tidegate-outcome/i);
  });

  test('if the configuration declares its path safe', async () => {
    const upstream = await startEager();
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1, safePaths: [/search]}}}`,
    );
    const client = await begin(gate, 'POST /search');
    await eventually(upstream.acted, ({ length }) => length === 1);
    client.write('zz\r\n');
    const response = await client.ended(20_000);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(response).not.toMatch(/tidegate-outcome/i);
  });

  test('if its body is short enough to be kept: nothing was sent', async () => {
    const upstream = await startEager();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await begin(gate, 'POST /pay', '2\r\nok\r\nzz\r\n');
    const response = await client.ended(20_000);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(response).not.toMatch(/tidegate-outcome/i);
    expect(upstream.acted()).toEqual([]);
  });

  test('if its attempt has no connection yet: nothing was sent', async () => {
    const upstream = await startRawUpstream(() => undefined); // completes no handshake
    const gate = await startTidegate(
      `upstreams: {api: {url: "${upstream.url.replace('http:', 'https:')}", tls: {insecure: true}}}`,
    );
    const client = await begin(gate, 'POST /pay');
    await eventually(
      () => upstream.connections.length,
      (count) => count === 1,
    );
    client.socket.destroy();
    await eventually(gate.requests, ({ length }) => length === 1);
    expect(gate.requests()).toMatchObject([{ level: 'info', outcome: 'client_gone', attempts: 1 }]);
    expect(gate.requests()[0]).not.toHaveProperty('unknown');
  });
});
