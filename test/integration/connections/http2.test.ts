import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http2';
import { connect as connectHttp2, constants } from 'node:http2';
import { request as requestHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createServer as createTcp } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Http2StreamResponse } from '../../../src/http/server/http2-stream-response.ts';
import { Http2ServerSessions } from '../../../src/http/server/http2-server-sessions.ts';
import { makeCertificates } from '../../support/certificates.ts';
import {
  readHttp2Answer,
  sendHttp2,
  FLAG,
  FRAME,
  frame,
  literals,
  openFrames,
  openHttp2,
  encodeUint32s,
} from '../../support/clients/http2-client.ts';
import { listen, refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { startRawUpstream } from '../../support/clients/raw-socket.ts';
import { headerOf } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const certificates = makeCertificates();
let ca: string;

beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost');
  ca = certificates.read('ca.crt');
});
afterAll(() => certificates.remove());

/** More than all buffers on the way hold. */
const MANY_BYTES = 16 * 1024 * 1024;
const inFlight = 'tidegate_requests_in_flight{route="/"}';

/** @param upstream further settings of the upstream */
function start(url: string, upstream = '', more = ''): Promise<Tidegate> {
  const { path } = certificates;
  return startTidegate(`listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams: {api: {url: "${url}"${upstream}}}
${more}`);
}

describe('a body whose bytes have all arrived, without the end of its stream', () => {
  /** Sends `bytes` of a body with a Content-Length of 100 000, and never ends it. */
  async function upload(gate: Tidegate, bytes: number): Promise<IncomingHttpHeaders> {
    const session = connectHttp2(gate.url, { ca });
    session.on('error', () => undefined);
    onTestFinished(() => session.destroy());
    const stream = session.request({ ':method': 'POST', ':path': '/', 'content-length': 100_000 });
    stream.on('error', () => undefined);
    stream.write(Buffer.alloc(bytes));
    const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    return head;
  }

  test('gets the response of the upstream, which has the whole request', async () => {
    const upstream = await startHttpUpstream((_n, response) => {
      setTimeout(() => response.writeHead(201).end(), 600);
    });
    const gate = await start(upstream.url, '', 'limits: {bodyIdle: 200ms}');
    expect((await upload(gate, 100_000))[':status']).toBe(201);
    expect(upstream.hits).toHaveLength(1);
  });

  test('is unknown without a response', async () => {
    const upstream = await startHttpUpstream(() => undefined);
    const gate = await start(upstream.url, ', timeout: 1s', 'limits: {bodyIdle: 200ms}');
    expect(await upload(gate, 100_000)).toMatchObject({ ':status': 504, 'tidegate-outcome': 'unknown' });
    expect(upstream.hits).toHaveLength(1);
  });

  test('is unknown if the last byte is missing and does not come', async () => {
    const upstream = await startHttpUpstream((_n, response) => response.end());
    const gate = await start(upstream.url, '', 'limits: {bodyIdle: 200ms}');
    expect(await upload(gate, 99_999)).toMatchObject({ ':status': 504, 'tidegate-outcome': 'unknown' });
    expect(upstream.hits).toEqual([]);
  });
});

test('forwards requests and responses with head, body and trailers, as over HTTP/1.1', async () => {
  const upstream = await startHttpUpstream((_n, response, { body }) => {
    response.writeHead(201, 'Made to order', [
      ...['Content-Type', 'text/plain', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Latin', 'caf\xe9'],
      ...['Connection', 'x-hop', 'X-Hop', 'gone', 'Keep-Alive', 'timeout=9', 'Trailer', 'X-Sum'],
    ]);
    response.write(body);
    response.addTrailers({ 'X-Sum': '42' });
    response.end();
  });
  const gate = await start(upstream.url);
  expect(gate.url).toMatch(/^https:/);
  const session = await openHttp2(gate.url, ca);
  expect(session.alpnProtocol).toBe('h2');
  const answer = await sendHttp2(
    session,
    '/v1/charges?a=%2F&b',
    { ':method': 'POST', cookie: ['one=1', 'two=2'], 'x-a': 'caf\xe9', 'idempotency-key': 'k', te: 'trailers' },
    'body',
  );
  expect(answer).toMatchObject({ status: 201, trailers: { 'x-sum': '42' } });
  expect(answer.body.toString()).toBe('body');
  expect(answer.headers).toMatchObject({
    'content-type': 'text/plain',
    'set-cookie': ['a=1', 'b=2'],
    'x-latin': 'caf\xe9',
    'tidegate-attempts': '1',
  });
  expect(answer.headers.via).toMatch(/^1\.1 tidegate-/);
  for (const name of ['connection', 'x-hop', 'keep-alive', 'transfer-encoding']) {
    expect(answer.headers).not.toHaveProperty(name);
  }
  const [hit] = upstream.hits;
  expect(hit).toMatchObject({ method: 'POST', target: '/v1/charges?a=%2F&b' });
  const received = (name: string): string | undefined => headerOf(hit?.headers ?? [], name);
  const { host } = new URL(gate.url);
  expect(received('host')).toBe(new URL(upstream.url).host);
  expect(received('cookie')).toBe('one=1; two=2');
  expect(received('x-a')).toBe('caf\xe9');
  expect(received('x-forwarded-host')).toBe(host);
  expect(received('x-forwarded-proto')).toBe('https');
  expect(received('x-forwarded-for')).toBe('127.0.0.1');
  expect(received('via')).toMatch(/^2\.0 tidegate-/);
  expect(received('te')).toBeUndefined(); // which would need `Connection: TE` over HTTP/1.1
  expect(hit?.headers.filter((name) => name.startsWith(':'))).toEqual([]);
});

test('serves HTTP/1.1 on the same port to a client that does not offer HTTP/2', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url);
  const { hostname, port } = new URL(gate.url);
  const request = requestHttps({ host: hostname, port, ca }).end();
  request.on('error', () => undefined); // reported below, where the response is awaited
  const [response] = (await once(request, 'response')) as [{ httpVersion: string; statusCode: number; resume(): void }];
  expect(response).toMatchObject({ httpVersion: '1.1', statusCode: 200 });
  response.resume();
});

test('sends no body for HEAD and bodiless statuses, and keeps their Content-Length', async () => {
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    response.writeHead(Number(target.slice(1)), target === '/304' ? {} : { 'Content-Length': '7' }).end();
  });
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  const head = await sendHttp2(session, '/200', { ':method': 'HEAD' });
  expect(head).toMatchObject({ status: 200, headers: { 'content-length': '7' } });
  expect(head.body).toHaveLength(0);
  expect(await sendHttp2(session, '/304')).toMatchObject({ status: 304, headers: {} });
  const refused = await sendHttp2(session, '/a/../200', { ':method': 'HEAD' });
  expect(refused.status).toBe(400);
  expect(refused.body).toHaveLength(0);
});

test('sends its own errors as problem+json with Retry-After, and keeps the connection for other streams', async () => {
  const upstream = await startHttpUpstream((_n, response) =>
    response.writeHead(429, { 'Retry-After': '30' }).end('slow down'),
  );
  const gate = await start(upstream.url, ', retry: {attempts: 1}');
  const session = await openHttp2(gate.url, ca);
  expect((await sendHttp2(session, '/')).status).toBe(429);
  const [one, two] = await Promise.all([sendHttp2(session, '/'), sendHttp2(session, '/')]);
  for (const refused of [one, two]) {
    expect(refused).toMatchObject({
      status: 429,
      headers: {
        'content-type': 'application/problem+json',
        'proxy-status': 'tidegate; error=http_request_denied; details="held"',
      },
    });
    expect(refused?.headers['retry-after']).toMatch(/^\d+$/);
    expect(refused?.json()).toMatchObject({ status: 429, reason: 'held' });
    expect(refused?.headers).not.toHaveProperty('connection');
  }
  expect(session.closed).toBe(false);
  expect(upstream.hits).toHaveLength(1);
});

test('retries failures and honors hints, as over HTTP/1.1', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? 503 : 200).end(`${n}`));
  const gate = await start(upstream.url, ', retry: {backOff: {strategy: fixed, baseInterval: 10ms}}');
  const session = await openHttp2(gate.url, ca);
  const answer = await sendHttp2(session, '/', { ':method': 'PUT' }, 'the same bytes');
  expect(answer).toMatchObject({ status: 200, headers: { 'tidegate-attempts': '2' } });
  expect(upstream.hits.map(({ body }) => body.toString())).toEqual(['the same bytes', 'the same bytes']);
  expect(gate.requests()).toMatchObject([{ status: 200, outcome: 'recovered', attempts: 2 }]);
});

test('sends 100 Continue once the request is admitted', async () => {
  const upstream = await startHttpUpstream((_n, response, { body }) => response.end(body));
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  const stream = session.request({ ':method': 'POST', ':path': '/', expect: '100-continue' }, { endStream: false });
  const answer = readHttp2Answer(stream);
  await once(stream, 'continue');
  expect(upstream.hits).toHaveLength(0);
  stream.end('asked for');
  expect((await answer).body.toString()).toBe('asked for');
  for (const unknown of ['a miracle', '100-continue, a miracle']) {
    expect(await sendHttp2(session, '/', { expect: unknown })).toMatchObject({ status: 417 });
  }
  for (const empty of ['', ', ,']) {
    expect(await sendHttp2(session, '/', { expect: empty })).toMatchObject({ status: 200 });
  }
});

test('forwards OPTIONS *, and answers Max-Forwards: 0 itself', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  expect(await sendHttp2(session, '*', { ':method': 'OPTIONS', 'max-forwards': '1' })).toMatchObject({ status: 200 });
  expect(upstream.hits[0]).toMatchObject({ method: 'OPTIONS', target: '*' });
  expect(headerOf(upstream.hits[0]?.headers ?? [], 'max-forwards')).toBe('0');
  const options = await sendHttp2(session, '/x', { ':method': 'OPTIONS', 'max-forwards': '0' });
  expect(options).toMatchObject({ status: 200, headers: { 'content-length': '0' } });
  const trace = await sendHttp2(session, '/x', { ':method': 'TRACE', 'max-forwards': '0', cookie: 'a=1' });
  expect(trace).toMatchObject({ status: 200, headers: { 'content-type': 'message/http' } });
  expect(trace.body.toString()).toMatch(/^TRACE \/x HTTP\/2\.0\r\nhost: 127\.0\.0\.1:\d+\r\nmax-forwards: 0\r\n\r\n$/);
  expect(upstream.hits).toHaveLength(1);
});

test('forwards interim responses', async () => {
  const upstream = await startHttpUpstream((_n, response) => {
    response.writeEarlyHints({ link: '</style.css>; rel=preload' });
    response.writeContinue(); // unrequested
    response.end('final');
  });
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  const stream = session.request({ ':path': '/' });
  const interim: IncomingHttpHeaders[] = [];
  stream.on('headers', (headers: IncomingHttpHeaders) => interim.push(headers));
  const { status, body } = await readHttp2Answer(stream);
  expect({ status, body: body.toString() }).toEqual({ status: 200, body: 'final' });
  expect(interim).toHaveLength(1);
  expect(interim).toMatchObject([{ ':status': 103, link: '</style.css>; rel=preload' }]);
});

test('bounds the memory for interim responses to a client that does not read', async () => {
  const hints = `HTTP/1.1 103 Early Hints\r\nLink: ${'x'.repeat(30_000)}\r\n\r\n`;
  const upstream = await startRawUpstream((socket) => {
    socket.write(`${hints.repeat(34)}HTTP/1.1 204 No Content\r\n\r\n`);
  });
  const gate = await start(upstream.url, '', 'mode: observe');
  const { socket, frames } = await openFrames(gate.url, ca);
  const get = literals({ ':method': 'GET', ':scheme': 'https', ':path': '/', ':authority': '127.0.0.1' });
  const streams = 60;
  socket.pause();
  const heads = Array.from({ length: streams }, (_, i) =>
    frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * i + 1, get),
  );
  socket.write(Buffer.concat(heads));
  await eventually(
    () => upstream.connections.filter((each) => each.received() !== '' && each.socket.writableLength === 0),
    ({ length }) => length === streams,
  );
  await pause(200);
  socket.resume();
  const ends = (): number =>
    frames.filter(({ flags, type }) => type === FRAME.headers && (flags & FLAG.endStream) !== 0).length;
  await eventually(ends, (count) => count === streams);
  // Kernel buffers and connection buffers: far less than 32 responses for each.
  const bytes = frames.reduce((sum, { payload }) => sum + payload.length, 0);
  expect(bytes).toBeLessThan(20_000_000);
});

test('removes framing fields from interim and bodiless responses', async () => {
  const upstream = await startRawUpstream((socket, head) => {
    const status = head.startsWith('GET /205 ') ? '205 Reset Content' : '200 OK';
    socket.write(
      `HTTP/1.1 103 Early Hints\r\nContent-Length: 10\r\nTrailer: x\r\n\r\nHTTP/1.1 ${status}\r\nContent-Length: 2 \r\n\r\nok`,
    );
  });
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  expect((await sendHttp2(session, '/')).body.toString()).toBe('ok');
  const reset = await sendHttp2(session, '/205');
  expect({ status: reset.status, body: reset.body.toString() }).toEqual({ status: 205, body: '' });
  expect(session.closed).toBe(false);
});

test('rejects whitespace around a value as malformed instead of dropping the field', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url);
  for (const value of [' a', 'a ', '\ta', 'a\t', ' ']) {
    const { socket, frames } = await openFrames(gate.url, ca);
    const head = { ':method': 'POST', ':scheme': 'https', ':path': '/', ':authority': '127.0.0.1' };
    const fields = literals({ ...head, 'idempotency-key': value });
    socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, fields));
    await eventually(
      () => frames,
      (seen) => seen.some(({ type, payload }) => type === FRAME.reset && payload.equals(encodeUint32s(1))),
    );
  }
  expect(upstream.hits).toHaveLength(0);
});

test('resets a response whose body breaks off, so that it never looks complete', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n');
    setTimeout(() => socket.destroy(), 50);
  });
  const gate = await start(upstream.url, ', retry: {attempts: 1}');
  const session = await openHttp2(gate.url, ca);
  const stream = session.request({ ':path': '/' });
  let ended = false;
  let text = '';
  stream.on('end', () => (ended = true));
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const [error] = (await once(stream, 'error')) as [Error];
  expect(error.message).toContain('INTERNAL_ERROR');
  expect({ ended, text }).toEqual({ ended: false, text: 'part' });
  expect(session.closed).toBe(false);
  await eventually(
    () => gate.requests(),
    (lines) => lines.some(({ cut }) => cut === true),
  );
});

test('cancels the attempt of a client that resets its stream, and keeps other streams', async () => {
  let broken = 0;
  const upstream = await listen((request, response) => {
    request.socket.on('close', () => (broken += 1));
    if (request.url === '/stays') setTimeout(() => response.end('stayed'), 200);
  });
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  const leaves = session.request({ ':path': '/leaves' });
  leaves.on('error', () => undefined);
  const stays = sendHttp2(session, '/stays');
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 2,
  );
  leaves.close(8);
  await eventually(
    () => broken,
    (count) => count === 1,
  );
  expect((await stays).body.toString()).toBe('stayed');
  await eventually(
    () => gate.requests(),
    (lines) => lines.some(({ path, outcome }) => path === '/leaves' && outcome === 'client_gone'),
  );
});

// Codes of RFC 9113 §7: NO_ERROR resembles a regular end most.
test.each([0, 8])('never forwards an upload that is reset with code %i as complete', async (code) => {
  let bytes = 0;
  let outcome = '';
  const upstream = await listen((request, response) => {
    request.on('data', (chunk: Buffer) => (bytes += chunk.length));
    request.on('end', () => (outcome = 'whole'));
    request.on('error', () => (outcome = 'broken'));
    response.on('error', () => undefined);
  });
  const gate = await start(upstream.url, ', retry: {replayLimit: 1KiB}');
  const post = (path: string) =>
    literals({ ':method': 'POST', ':scheme': 'https', ':path': path, ':authority': '127.0.0.1' });
  const { socket } = await openFrames(gate.url, ca);
  // One that is short enough to be kept, and one that is streamed.
  socket.write(frame(FRAME.headers, FLAG.endHeaders, 1, post('/short')));
  socket.write(frame(FRAME.data, 0, 1, Buffer.alloc(100)));
  socket.write(frame(FRAME.headers, FLAG.endHeaders, 3, post('/long')));
  socket.write(frame(FRAME.data, 0, 3, Buffer.alloc(4000)));
  await eventually(
    () => bytes,
    (count) => count === 4000,
  );
  socket.write(Buffer.concat([1, 3].map((stream) => frame(FRAME.reset, 0, stream, encodeUint32s(code)))));
  await eventually(
    () => outcome,
    (seen) => seen !== '',
  );
  expect({ outcome, bytes }).toEqual({ outcome: 'broken', bytes: 4000 });
  const lines = await eventually(
    () => gate.requests(),
    ({ length }) => length === 2,
  );
  expect(lines).toEqual([
    expect.objectContaining({ path: '/short', outcome: 'client_gone', attempts: 0 }),
    expect.objectContaining({ path: '/long', outcome: 'client_gone', attempts: 1 }),
  ]);
});

test('sends a response that precedes the end of an upload at once, and ends the upload without an error', async () => {
  const upstream = await listen((_request, response) => {
    response.writeHead(413).end('too much');
  });
  const gate = await start(upstream.url, ', retry: {attempts: 1, replayLimit: 1KiB}');
  const session = await openHttp2(gate.url, ca);
  const stream = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
  const answer = readHttp2Answer(stream);
  stream.write(Buffer.alloc(8000));
  const { status, body } = await answer;
  expect({ status, body: body.toString(), code: stream.rstCode }).toEqual({ status: 413, body: 'too much', code: 0 });
  expect(session.closed).toBe(false);
});

test('discards an upload with its rejection, even if a part of it has arrived unread', async () => {
  const gate = await start(await refusingUrl(), ', retry: {attempts: 1, replayLimit: 1KiB}');
  const session = await openHttp2(gate.url, ca);
  const stream = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false });
  const answer = readHttp2Answer(stream);
  stream.write(Buffer.alloc(200_000));
  expect(await answer).toMatchObject({ status: 502 });
  expect(stream.rstCode).toBe(0);
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 0,
  );
  expect(session.closed).toBe(false);
});

test('reads a body no faster than its client does, and does not stall other streams', async () => {
  let written = 0;
  const chunk = Buffer.alloc(64 * 1024);
  const upstream = await listen((request, response) => {
    if (request.url !== '/big') return void response.end('small');
    const write = (): void => {
      while (written < MANY_BYTES) {
        written += chunk.length;
        if (!response.write(chunk)) return void response.once('drain', write);
      }
      response.end();
    };
    write();
  });
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  const big = session.request({ ':path': '/big' });
  let read = 0;
  await once(big, 'response');
  await pause(200);
  expect(written).toBeLessThan(MANY_BYTES / 2);
  expect((await sendHttp2(session, '/small')).body.toString()).toBe('small');
  big.on('data', (data: Buffer) => (read += data.length));
  await once(big, 'end');
  expect(read).toBe(MANY_BYTES);
});

test('rejects what HTTP/1.1 rejects', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  const statusOf = async (path: string, headers = {}): Promise<number> =>
    (await sendHttp2(session, path, headers)).status;
  expect(await statusOf('/a/../b')).toBe(400);
  expect(await statusOf('//evil')).toBe(400);
  const { host } = new URL(gate.url);
  expect(await statusOf('/', { ':authority': host, host: 'another.example' })).toBe(400);
  expect(await statusOf('/', { ':authority': host, host })).toBe(200);
  expect(await statusOf('/', { ':method': 'FLY' })).toBe(501);
  const connect = session.request({ ':method': 'CONNECT', ':authority': 'evil.example:443' });
  expect((await readHttp2Answer(connect)).status).toBe(405);
  const { socket, frames } = await openFrames(gate.url, ca);
  const get = { ':method': 'GET', ':scheme': 'https', ':path': '/' };
  socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, literals(get)));
  // Rejected without an upstream: a malformed request (RFC 9113 §8.3.1).
  await eventually(
    () => frames,
    (seen) => seen.some(({ type, payload }) => type === FRAME.reset && payload.equals(encodeUint32s(1))),
  );
  expect(upstream.hits).toHaveLength(1);
});

test('rejects a target with a non-ASCII character, as over HTTP/1.1', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  for (const target of ['/caf\xe9', '/caf\xc3\xa9', '/x?caf\xe9']) {
    const { status, json } = await sendHttp2(session, target);
    expect([target, status, json()['reason']]).toEqual([target, 400, 'bad_request']);
  }
  expect(upstream.hits).toEqual([]);
});

test('treats an authority with the default port of its scheme as one without a port', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  const statusOf = async (scheme: string, authority: string, host: string): Promise<number> =>
    (await sendHttp2(session, '/', { ':scheme': scheme, ':authority': authority, host })).status;
  expect(await statusOf('https', 'h.test', 'H.test:443')).toBe(200);
  expect(await statusOf('https', 'h.test:443', 'h.test')).toBe(200);
  expect(await statusOf('https', '[::1]', '[::1]:443')).toBe(200);
  expect(await statusOf('http', 'h.test', 'h.test:80')).toBe(200);
  expect(await statusOf('https', 'h.test', 'h.test:80')).toBe(400);
  expect(await statusOf('http', 'h.test:443', 'h.test')).toBe(400);
  expect(await statusOf('https', 'h.test:443', 'h.test:8443')).toBe(400);
});

test('allows at most a hundred concurrent streams per connection', async () => {
  const upstream = await listen(() => undefined);
  const gate = await start(upstream.url, ', connections: 200');
  const session = await openHttp2(gate.url, ca);
  await eventually(
    () => session.remoteSettings.maxConcurrentStreams,
    (streams) => streams === 100,
  );
  const { socket, frames } = await openFrames(gate.url, ca);
  const get = literals({ ':method': 'GET', ':scheme': 'https', ':path': '/', ':authority': '127.0.0.1' });
  const heads = Array.from({ length: 101 }, (_, i) =>
    frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * i + 1, get),
  );
  socket.write(Buffer.concat(heads));
  const refused = await eventually(
    () => frames.filter(({ type }) => type === FRAME.reset),
    ({ length }) => length > 0,
  );
  expect(refused).toMatchObject([{ stream: 201, payload: encodeUint32s(7) }]);
  expect(await gate.metric(inFlight)).toBe(100);
});

test('ends the connection of a client that exceeds the limit on streams which it has acknowledged', async () => {
  const upstream = await listen(() => undefined);
  const gate = await start(upstream.url, ', connections: 200');
  const { socket, frames } = await openFrames(gate.url, ca);
  await eventually(
    () => frames,
    (seen) => seen.some(({ type }) => type === FRAME.settings),
  );
  const get = literals({ ':method': 'GET', ':scheme': 'https', ':path': '/', ':authority': '127.0.0.1' });
  const heads = Array.from({ length: 101 }, (_, i) =>
    frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * i + 1, get),
  );
  socket.write(Buffer.concat([frame(FRAME.settings, FLAG.ack, 0), ...heads]));
  const goAway = await eventually(
    () => frames.find(({ type }) => type === FRAME.goAway),
    (seen) => seen !== undefined,
  );
  expect(goAway?.payload.readUInt32BE(4)).toBe(constants.NGHTTP2_PROTOCOL_ERROR);
});

test('reads nothing of a request that it resets because the client reset others in the same turn', async () => {
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    if (target !== '/waits') response.end('paid');
  });
  const gate = await start(upstream.url, ', connections: 200');
  const session = await openHttp2(gate.url, ca);
  await eventually(
    () => session.remoteSettings.maxConcurrentStreams,
    (streams) => streams === 100,
  );
  const open = Array.from({ length: 100 }, () => session.request({ ':path': '/waits' }));
  for (const stream of open) stream.on('error', () => undefined);
  await eventually(
    () => upstream.hits.length,
    (count) => count === 100,
  );
  for (const stream of open.slice(0, 10)) stream.close(constants.NGHTTP2_CANCEL);
  const pay = (i: number) => sendHttp2(session, `/pay-${i}`, { ':method': 'POST' }, 'amount=1');
  const results = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => pay(i)));
  const refused = results.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []));
  expect(refused.length).toBeGreaterThan(0);
  for (const reason of refused) expect(reason).toContain('ENHANCE_YOUR_CALM');
  expect(upstream.hits).toHaveLength(110 - refused.length);

  for (const stream of open.slice(10, 20)) stream.close(constants.NGHTTP2_CANCEL);
  await new Promise<void>((resolve) => void session.ping(() => resolve()));
  const others = await Promise.all(Array.from({ length: 10 }, (_, i) => pay(i)));
  expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
});

test('closes the connection of a client that opens and resets streams rapidly, and no other', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url);
  const { socket, frames } = await openFrames(gate.url, ca);
  const get = literals({ ':method': 'GET', ':scheme': 'https', ':path': '/', ':authority': '127.0.0.1' });
  const pairs = Array.from({ length: 1200 }, (_, i) => [
    frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * i + 1, get),
    frame(FRAME.reset, 0, 2 * i + 1, encodeUint32s(8)),
  ]);
  socket.write(Buffer.concat(pairs.flat()));
  await eventually(
    () => frames,
    (seen) => seen.some(({ type }) => type === FRAME.goAway) || socket.closed,
  );
  await eventually(
    () => socket.closed,
    (closed) => closed,
  );
  const session = await openHttp2(gate.url, ca);
  expect((await sendHttp2(session, '/')).body.toString()).toBe('fine');
});

test.each(['GET', 'PUT'])('keeps a connection usable after many aborted responses to %s', async (method) => {
  const most = 200;
  let asked = 0;
  // Responses that begin before their upload ends, if there is one.
  const upstream = await listen((_request, response) => {
    asked += 1;
    response.end(asked > most ? 'fine' : Buffer.alloc(900_000));
  });
  const gate = await start(upstream.url);
  const session = await openHttp2(gate.url, ca);
  const stays = session.request({ ':path': '/' });
  await once(stays, 'response');
  for (let i = 1; i < most; i += 1) {
    const stream = session.request({ ':method': method, ':path': '/' }, { endStream: method === 'GET' });
    if (method === 'PUT') stream.write(Buffer.alloc(100_000)); // more than is buffered before it is forwarded
    await once(stream, 'response');
    const closed = once(stream, 'close');
    stream.close(constants.NGHTTP2_CANCEL);
    await closed;
  }
  expect((await sendHttp2(session, '/')).body.toString()).toBe('fine');
  let length = 0;
  stays.on('data', (chunk: Buffer) => (length += chunk.length));
  await once(stays, 'end');
  expect(length).toBe(900_000);
  expect(session.closed).toBe(false);
});

test('announces a drain on every connection with GOAWAY, and completes what is in flight', async () => {
  const upstream = await startHttpUpstream((_n, response) => {
    setTimeout(() => response.end('finished'), 300);
  });
  const gate = await start(upstream.url, '', 'drain: {delay: 0, timeout: 5s}');
  const idle = await openHttp2(gate.url, ca);
  const busy = await openHttp2(gate.url, ca);
  let lastStream = 0;
  busy.on('goaway', (_code: number, last: number) => {
    lastStream = last;
  });
  const inHand = sendHttp2(busy, '/');
  await eventually(
    () => upstream.hits,
    ({ length }) => length === 1,
  );
  const drained = gate.drain();
  await eventually(
    () => idle.closed,
    (closed) => closed,
  );
  const answer = await inHand;
  expect(answer.body.toString()).toBe('finished');
  expect(lastStream).toBe(1);
  await drained;
  expect(busy.closed).toBe(true);
});

test('reports it to the client when a request exceeds the drain timeout', async () => {
  const upstream = await listen(() => undefined);
  const gate = await start(upstream.url, '', 'drain: {delay: 0, timeout: 200ms}');
  const session = await openHttp2(gate.url, ca);
  const hanging = sendHttp2(session, '/', { ':method': 'POST' }, 'pay');
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 1,
  );
  await gate.drain();
  expect((await hanging).headers).toMatchObject({ ':status': 504, 'tidegate-outcome': 'unknown' });
});

test('closes an idle connection even if it is pinged, but not one with a waiting request', async () => {
  const waiting: Http2StreamResponse[] = [];
  const sessions = new Http2ServerSessions({ idle: 200, maxHeaderSize: 1024 }, (_request, response) =>
    waiting.push(response),
  );
  const server = createTcp((socket) => sessions.accept(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [quiet, busy] = [connectHttp2(url), connectHttp2(url)];
  onTestFinished(() => {
    for (const session of [quiet, busy]) session.destroy();
    server.close();
  });
  const answer = sendHttp2(busy, '/');
  const pings = setInterval(() => quiet.closed || quiet.ping(() => undefined), 20);
  await once(quiet, 'close');
  clearInterval(pings);
  await pause(300);
  expect(busy.closed).toBe(false);
  waiting[0]?.writeHead(204, '', []);
  expect((await answer).status).toBe(204);
  await once(busy, 'close');
});

test('delays a drain only briefly for a client that does not close its connection', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end('fine'));
  const gate = await start(upstream.url, '', 'drain: {delay: 0, timeout: 20s}');
  const { socket, frames } = await openFrames(gate.url, ca);
  socket.allowHalfOpen = true;
  const get = literals({ ':method': 'GET', ':scheme': 'https', ':path': '/', ':authority': '127.0.0.1' });
  socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, get));
  await eventually(
    () => frames,
    (seen) => seen.some(({ type, flags }) => type === FRAME.data && (flags & FLAG.endStream) !== 0),
  );
  const since = performance.now();
  await gate.drain();
  expect(performance.now() - since).toBeLessThan(10_000);
  expect(frames.some(({ type }) => type === FRAME.goAway)).toBe(true);
});

test('adds Retry-After to an upstream rejection without one, and exposes it to pages through CORS', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(429).end());
  const app = 'https://app.example.com';
  const gate = await start(
    upstream.url,
    ', retry: {attempts: 1}',
    `routes: [{upstream: api, cors: {origins: ["${app}"]}}]`,
  );
  const session = await openHttp2(gate.url, ca);
  const preflight = await sendHttp2(session, '/', {
    ':method': 'OPTIONS',
    origin: app,
    'access-control-request-method': 'PUT',
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers).toMatchObject({
    'access-control-allow-origin': app,
    'access-control-allow-methods': 'PUT',
  });
  expect(upstream.hits).toHaveLength(0);
  const { status, headers } = await sendHttp2(session, '/', { origin: app });
  expect(status).toBe(429);
  expect(headers).toMatchObject({ 'retry-after': '1', ratelimit: '"tidegate";r=0;t=1' });
  expect(headers).toMatchObject({ 'access-control-allow-origin': app, vary: 'Origin' });
});
