/** Uploads to a mounted proxy that end before they are complete: the upstream has a part of them and may have acted on it. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import Fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { tidegate } from '../../../src/library/index.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { openHalf, openRaw, sendRaw } from '../../support/clients/raw-socket.ts';
import { startApplication, type ApplicationOptions } from '../../support/proxy/fastify-application.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { listen, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const LONG = 'x'.repeat(0x20000); // longer than `replayLimit`
/** Milliseconds. Only what hangs takes as long. */
const WITHIN = 30_000;
const BAD_CHUNK = 'zz\r\nabc\r\n';

/** Acts on the head of each request, and responds to none. */
async function startSilentUpstream() {
  const acted: string[] = [];
  const { url } = await listen((request) => {
    acted.push(`${request.method} ${request.url}`);
    request.on('error', () => undefined).resume();
  });
  return { url, acted };
}

async function start(options: ApplicationOptions = {}) {
  const { url, acted } = await startSilentUpstream();
  const application = await startApplication({ config: { upstreams: { api: { url } } } }, options);
  return { ...application, acted };
}

function chunked(path: string, headers: readonly string[] = [], body = `20000\r\n${LONG}\r\n`): string {
  return [`POST ${path} HTTP/1.1`, 'Host: x', ...headers, 'Transfer-Encoding: chunked', '', body].join('\r\n');
}

test.each([
  ['without a key, by a bad chunk', [], BAD_CHUNK, 'malformed'],
  ['with a key, by a bad chunk', ['Idempotency-Key: one'], BAD_CHUNK, 'malformed'],
  ['by a bad trailer', [], '0\r\nBad Trailer\r\n\r\n', 'malformed'],
  ['by long chunk extensions', [], `5;${'e'.repeat(20_000)}\r\nabcde\r\n`, 'extensions_too_large'],
] as const)('a streamed write %s has an unknown outcome', async (_, headers, bytes, reason) => {
  const { url, acted, log } = await start();
  const client = await openRaw(url);
  client.write(chunked('/pay/charges', headers));
  await eventually(
    () => acted,
    ({ length }) => length === 1,
  );
  client.write(bytes);
  const response = await client.ended(WITHIN);
  expect(response).toMatch(/^HTTP\/1\.1 504 /);
  expect(response).toMatch(/^tidegate-outcome: unknown\r$/im);
  expect(response).toMatch(/^connection: close\r$/im);
  expect(response).toContain(`"reason":"${reason}"`);
  expect(response.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  const requests = await eventually(
    () => log().filter(({ reason: why }) => why === reason),
    ({ length }) => length === 1,
  );
  expect(requests).toMatchObject([{ outcome: 'unknown', status: 504 }]);
});

test('a streamed write that exceeds the requestTimeout of the application has an unknown outcome', async () => {
  const server = { requestTimeout: 3000, http: { headersTimeout: 3000, connectionsCheckingInterval: 100 } };
  const { url, acted } = await start({ server });
  const client = await openRaw(url);
  client.write(chunked('/pay/charges'));
  const response = await client.ended(WITHIN);
  expect(response).toMatch(/^HTTP\/1\.1 504 /);
  expect(response).toMatch(/^tidegate-outcome: unknown\r$/im);
  expect(response).toContain('"reason":"body_slow"');
  expect(acted).toEqual(['POST /charges']);
});

test('a streamed write whose client half-closes its connection gets a close and no response', async () => {
  const { url, acted, log } = await start();
  const { socket, received } = await openHalf(url);
  socket.write(chunked('/pay/charges'));
  await eventually(
    () => acted,
    ({ length }) => length === 1,
  );
  socket.end();
  const requests = await eventually(
    () => log().filter(({ outcome }) => outcome !== undefined),
    ({ length }) => length === 1,
  );
  expect(requests).toMatchObject([{ outcome: 'client_gone', unknown: true }]);
  expect(received()).toBe('');
});

test('a response that has begun when the upload breaks off is broken off, and nothing else is written into it', async () => {
  const upstream = await listen((request, response) => {
    request.on('error', () => undefined).resume();
    response.writeHead(201, { 'content-length': '100' }).write('begun');
  });
  const { url } = await startApplication({ config: { upstreams: { api: { url: upstream.url } } } });
  const client = await openRaw(url);
  client.write(chunked('/pay/charges'));
  await client.until('begun', WITHIN);
  client.write(BAD_CHUNK);
  expect(await client.ended(WITHIN)).toMatch(/^HTTP\/1\.1 201 [^]*\r\n\r\nbegun$/);
});

test('the clientErrorHandler of the application responds to its own requests, and to none that the upstream has', async () => {
  const handled: string[] = [];
  const { url, acted } = await start({
    server: {
      clientErrorHandler: (error, socket) => {
        handled.push(error.code);
        if (socket.writable) socket.end('HTTP/1.1 400 Own\r\n\r\n');
      },
    },
    extend: (app) => void app.post('/own', () => 'own'),
  });
  const upload = await openRaw(url);
  upload.write(chunked('/pay/charges'));
  await eventually(
    () => acted,
    ({ length }) => length === 1,
  );
  upload.write(BAD_CHUNK);
  expect(await upload.ended(WITHIN)).toMatch(/^HTTP\/1\.1 504 /);
  const own = await openRaw(url);
  own.write(chunked('/own', ['Content-Type: text/plain'], BAD_CHUNK));
  expect(await own.ended(WITHIN)).toBe('HTTP/1.1 400 Own\r\n\r\n');
  expect(handled).toEqual(['HPE_INVALID_CHUNK_SIZE', 'HPE_INVALID_CHUNK_SIZE']);
});

test('a request that is unreadable after a whole upload on its connection is left to the application', async () => {
  const upstream = await startHttpUpstream((_nth, response) => response.end('done'));
  const { url } = await startApplication({ config: { upstreams: { api: { url: upstream.url } } } });
  const client = await openRaw(url);
  client.write(chunked('/pay/charges'));
  client.write('0\r\n\r\n');
  await client.until('done', WITHIN);
  client.write('no request\r\n\r\n');
  expect(await client.ended(WITHIN)).toMatch(/HTTP\/1\.1 400 Bad Request\r\n[^]*"Client Error"/);
});

test('a streamed write over TLS that breaks off has an unknown outcome', async () => {
  const certificates = makeCertificates();
  onTestFinished(certificates.remove);
  const upstream = await startSilentUpstream();
  const app = Fastify({ https: certificates.issueServer() });
  onTestFinished(() => app.close());
  await app.register(tidegate, { config: { upstreams: { api: { url: upstream.url } } }, prefix: '/pay' });
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }));
  const socket = connect({ host: '127.0.0.1', port: Number(port), ca: certificates.read('ca.crt') });
  onTestFinished(() => void socket.destroy());
  let received = '';
  socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1'))).on('error', () => undefined);
  socket.write(chunked('/pay/charges'));
  await eventually(
    () => upstream.acted,
    ({ length }) => length === 1,
  );
  const closed = once(socket, 'close');
  socket.write(BAD_CHUNK);
  await closed;
  expect(received).toMatch(/^HTTP\/1\.1 504 [^]*\r\ntidegate-outcome: unknown\r\n/i);
});

test('a further server of the application, which has no clientErrorHandler, responds as Node does', async () => {
  const { app, acted } = await start();
  const server = createServer((request, response) => app.routing(request, response)).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const responses = async (): Promise<string[]> => {
    const all: string[] = [];
    for (const bytes of ['no request\r\n\r\n', `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`]) {
      all.push(await sendRaw(url, bytes, WITHIN));
    }
    return all;
  };
  const nodes = await responses();
  expect(nodes.map((each) => each.slice(0, 12))).toEqual(['HTTP/1.1 400', 'HTTP/1.1 431']);
  const upload = await openRaw(url);
  upload.write(chunked('/pay/charges'));
  await eventually(
    () => acted,
    ({ length }) => length === 1,
  );
  upload.write(BAD_CHUNK);
  expect(await upload.ended(WITHIN)).toMatch(/^HTTP\/1\.1 504 /);
  expect(await responses()).toEqual(nodes);
});
