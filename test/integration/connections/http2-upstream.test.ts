import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import { constants, createSecureServer } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import type { Frame } from '../../support/clients/http2-client.ts';
import {
  FLAG,
  FRAME,
  frame,
  literals,
  OK,
  encodeUint32s,
  openHttp2,
  sendHttp2,
} from '../../support/clients/http2-client.ts';
import { answerOk, startFrames, startHttp2 } from '../../support/upstreams/http2-upstream.ts';
import { pause } from '../../support/pause.ts';
import { startRelay } from '../../support/relay/relay.ts';
import { refusingUrl } from '../../support/upstreams/http-upstream.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { begin, send, sendAndLeave } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

function start(url: string, more = ''): Promise<Tidegate> {
  return startTidegate(
    `upstreams: {api: {url: "${url}", http2: true, tls: {ca: ${certificates.path('ca.crt')}}${more}}}`,
  );
}

test('forwards requests and responses with head, body and trailers over one shared connection', async () => {
  const echo = (stream: ServerHttp2Stream): void => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      stream.respond(
        { ':status': 201, 'content-type': 'text/plain', 'set-cookie': ['a=1', 'b=2'], 'x-latin': 'caf\xe9' },
        { waitForTrailers: true },
      );
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '42' }));
      stream.end(Buffer.concat(chunks));
    });
  };
  const upstream = await startHttp2(identity, echo);
  const gate = await start(upstream.url);
  const post = () =>
    send(gate.url, '/v1/charges?a=%2F&b', {
      method: 'POST',
      headers: [
        'HTTP2-Settings',
        'AAMAAABk',
        'X-Twice',
        'a',
        'x-twice',
        'b',
        'If-Match',
        'a',
        'if-match',
        'b',
        'Cookie',
        'c=1',
        'X-Latin',
        'caf\xe9',
      ],
      body: Buffer.from('body'),
    });
  const answer = await post();
  expect(answer).toMatchObject({ status: 201, trailers: ['x-sum', '42'] });
  expect(answer.body.toString()).toBe('body');
  expect(answer.headers.filter((_, i) => answer.headers[i - 1] === 'set-cookie')).toEqual(['a=1', 'b=2']);
  expect(answer.header('x-latin')).toBe('caf\xe9');
  expect(answer.headers.filter((name) => name.startsWith(':'))).toEqual([]);
  expect(upstream.heads[0]).toMatchObject({
    ':method': 'POST',
    ':path': '/v1/charges?a=%2F&b',
    ':authority': new URL(upstream.url).host,
    'x-twice': 'a, b',
    // A client that repeats a field must not end the shared connection, as undici would.
    cookie: 'c=1',
    'x-latin': 'caf\xe9',
    'content-length': '4',
  });
  const [raw = []] = upstream.rawHeads;
  expect(raw.filter((_, i) => raw[i - 1] === 'if-match')).toEqual(['a', 'b']); // separate lines, as received
  expect(upstream.heads[0]?.via).toMatch(/^1\.1 tidegate-/);
  expect(upstream.heads[0]).not.toHaveProperty('host');
  await Promise.all(Array.from({ length: 20 }, post));
  expect(upstream.sessions()).toBe(1);
  expect(gate.requests().map(({ status }) => status)).toEqual(Array.from({ length: 21 }, () => 201));
});

test('forwards announced trailers of a response with a length to a client over HTTP/2', async () => {
  const upstream = await startHttp2(identity, (stream, _n, head) => {
    const trailer = head[':path'] === '/announced' ? { trailer: 'x-sum' } : {};
    stream.respond({ ':status': 200, 'content-length': 4, ...trailer }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '42' }));
    stream.end('body');
  });
  const { path, read } = certificates;
  const gate = await startTidegate(
    `listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams: {api: {url: "${upstream.url}", http2: true, tls: {ca: ${path('ca.crt')}}}}`,
  );
  const session = await openHttp2(gate.url, read('ca.crt'));
  const answer = await sendHttp2(session, '/announced');
  expect(answer.headers).toMatchObject({ trailer: 'x-sum', 'content-length': '4' });
  expect([answer.status, answer.body.toString(), answer.trailers['x-sum']]).toEqual([200, 'body', '42']);
  // Without the announcement, the end is in the same frame as the last byte: see http2-stream-response.ts.
  expect((await sendHttp2(session, '/')).trailers).toEqual({});
});

test('forwards response fields with white space around the value without that space', async () => {
  const upstream = await startFrames(identity, (socket, stream) => {
    const head = literals({
      'x-end': '1 ',
      'x-tabs': '\t2\t',
      location: ' /y',
      'retry-after': '5 ',
      'x-control': 'a\x01b',
    });
    socket.write(frame(FRAME.headers, FLAG.endHeaders, stream, Buffer.concat([OK, head])));
    socket.write(frame(FRAME.data, 0, stream, Buffer.from('body')));
    socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, literals({ 'x-sum': ' 42 ' })));
  });
  const gate = await start(upstream.url);
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const received = await client.until(/\r\n0\r\n.*\r\n\r\n$/s);
  expect(received.split('\r\n')).toEqual(
    expect.arrayContaining(['x-end: 1', 'x-tabs: 2', 'location: /y', 'retry-after: 5', 'x-sum: 42']),
  );
  expect(received).not.toContain('x-control'); // nghttp2 drops it
});

test('forwards TE: trailers, as gRPC needs, and writes the protocol version of each side into Via', async () => {
  const upstream = await startHttp2(identity, (stream) => {
    stream.respond({ ':status': 200, via: '1.1 theirs' });
    stream.end('ok');
  });
  const gate = await start(upstream.url);
  for (const te of ['trailers', 'gzip;q=0.5, , Trailers', 'trailers;q=0.5']) {
    const answer = await send(gate.url, '/', { headers: ['TE', te, 'Connection', 'TE'] });
    expect(answer.header('via')).toMatch(/^1\.1 theirs, 2\.0 tidegate-[0-9a-f]+$/);
    expect(upstream.heads.at(-1)?.te).toBe('trailers');
    expect(upstream.heads.at(-1)?.via).toMatch(/^1\.1 tidegate-/);
  }
  await send(gate.url, '/', { headers: ['TE', 'gzip, x-trailers'] });
  expect(upstream.heads.at(-1)).not.toHaveProperty('te');
});

test('forwards OPTIONS *', async () => {
  const upstream = await startHttp2(identity, (stream) => stream.respond({ ':status': 204 }, { endStream: true }));
  const gate = await start(upstream.url);
  expect((await send(gate.url, '*', { method: 'OPTIONS' })).status).toBe(204);
  expect(upstream.heads[0]).toMatchObject({ ':method': 'OPTIONS', ':path': '*' });
});

test('uses HTTP/1.1 with an upstream that does not offer HTTP/2, or where HTTP/2 is not configured', async () => {
  const versions: string[] = [];
  const server = createHttps({ ...identity, ALPNProtocols: ['http/1.1'] }, (request, response) => {
    versions.push(request.httpVersion);
    expect(request.headers).not.toHaveProperty('te'); // which would need `Connection: TE` in HTTP/1.1
    response.end('fine');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const gate = await start(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  for (let i = 0; i < 2; i += 1) {
    const answer = await send(gate.url, '/', { headers: ['TE', 'trailers', 'X-Te', 'te'] });
    expect(answer.body.toString()).toBe('fine');
    expect(answer.header('via')).toMatch(/^1\.1 tidegate-/);
  }
  expect(versions).toEqual(['1.1', '1.1']);

  const both = createSecureServer({ ...identity, allowHTTP1: true }, (request, response) => {
    response.end(request.httpVersion);
  });
  both.listen(0, '127.0.0.1');
  await once(both, 'listening');
  onTestFinished(() => {
    both.close();
  });
  const url = `https://127.0.0.1:${(both.address() as AddressInfo).port}`;
  const ca = certificates.path('ca.crt');
  const asked = await start(url);
  const unasked = await startTidegate(`upstreams: {api: {url: "${url}", tls: {ca: ${ca}}}}`);
  expect((await send(asked.url, '/')).body.toString()).toBe('2.0');
  expect((await send(unasked.url, '/')).body.toString()).toBe('1.1');
});

test('shares the first connection among simultaneous requests, and opens the next when it is full', async () => {
  const waiting: ServerHttp2Stream[] = [];
  const upstream = await startHttp2(identity, (stream) => waiting.push(stream));
  const gate = await start(upstream.url, ', connections: 10');
  const answers = Array.from({ length: 150 }, () => send(gate.url, '/'));
  await eventually(
    () => waiting,
    ({ length }) => length === 150,
  );
  expect(upstream.sessions()).toBe(2);
  for (const stream of waiting) stream.respond({ ':status': 204 }, { endStream: true });
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([204]));
});

test('opens one connection per simultaneous request where the upstream offers HTTP/1.1 only', async () => {
  const waiting: ServerResponse[] = [];
  let connections = 0;
  const server = createHttps({ ...identity, ALPNProtocols: ['http/1.1'] }, (_request, response) => {
    waiting.push(response);
  });
  server.on('secureConnection', () => (connections += 1));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const gate = await start(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, ', connections: 5');
  const answers = Array.from({ length: 8 }, () => send(gate.url, '/'));
  await eventually(
    () => waiting,
    ({ length }) => length === 5,
  );
  for (const response of waiting.splice(0)) response.end();
  await eventually(
    () => waiting,
    ({ length }) => length === 3,
  );
  for (const response of waiting) response.end();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses).toEqual(Array.from({ length: 8 }, () => 200));
  expect(connections).toBe(5);
});

test('forwards interim responses, except an unrequested 100', async () => {
  const upstream = await startHttp2(identity, (stream) => {
    stream.additionalHeaders({ ':status': 100 });
    stream.additionalHeaders({ ':status': 103, link: '</style.css>; rel=preload' });
    stream.respond({ ':status': 204 }, { endStream: true });
  });
  const gate = await start(upstream.url);
  const client = await openRaw(gate.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const received = await client.ended();
  expect(received).toMatch(/^HTTP\/1\.1 103 Early Hints\r\nlink: <\/style\.css>; rel=preload\r\n\r\nHTTP\/1\.1 204 /);
});

test('resets the stream of a client that disconnects, and keeps the connection for the others', async () => {
  let closed = 0;
  const upstream = await startHttp2(identity, (stream, _nth, head) => {
    if (head[':path'] === '/stays') setTimeout(() => stream.respond({ ':status': 204 }, { endStream: true }), 200);
    else stream.on('close', () => (closed += 1));
  });
  const gate = await start(upstream.url);
  expect((await send(gate.url, '/stays')).status).toBe(204);
  const stays = send(gate.url, '/stays');
  await sendAndLeave(gate.url, '/leaves', {}, () => upstream.heads.some((head) => head[':path'] === '/leaves'));
  await eventually(
    () => closed,
    (count) => count === 1,
  );
  expect((await stays).status).toBe(204);
  expect(upstream.sessions()).toBe(1);
});

test.each([
  ['with a length', { 'Content-Length': '200000' }],
  ['in chunks', { 'Transfer-Encoding': 'chunked' }],
])('resets an upload %s whose client disconnects, so that it never looks complete', async (_, framing) => {
  const upstream = await startFrames(identity, () => undefined);
  const gate = await start(upstream.url);
  for (const bytes of [100, 60_000, 100_000]) {
    const before = upstream.frames.length;
    const heads = upstream.heads();
    const leaving = begin(gate.url, '/', { method: 'POST', headers: Object.entries(framing).flat() });
    leaving.write('x'.repeat(70_000 + bytes)); // more than is kept for a retry
    await eventually(upstream.heads, (count) => count > heads);
    await pause(100);
    leaving.destroy();
    const reset = await eventually(
      () => upstream.frames.slice(before).find(({ type }) => type === FRAME.reset),
      (seen) => seen !== undefined,
    );
    expect(reset?.payload.equals(encodeUint32s(0))).toBe(false);
    const data = upstream.frames.slice(before).filter(({ type }) => type === FRAME.data);
    expect(data.filter(({ flags }) => (flags & FLAG.endStream) !== 0)).toEqual([]);
  }
});

test('truncates a response whose body the upstream resets', async () => {
  const upstream = await startHttp2(identity, (stream) => {
    stream.respond({ ':status': 200 });
    stream.write('part');
    setTimeout(() => stream.destroy(new Error('broken')), 50);
  });
  const gate = await start(upstream.url, ', retry: {attempts: 1}');
  await expect(send(gate.url, '/')).rejects.toThrow(/aborted|hang up/);
  await eventually(
    () => gate.requests(),
    ([line]) => line?.['cut'] === true,
  );
});

test('completes a response of which only the end of the stream is missing', async () => {
  const BREAK = [
    (stream: ServerHttp2Stream) => stream.close(8),
    (stream: ServerHttp2Stream) => stream.session?.destroy(),
  ];
  for (const breakOff of BREAK) {
    const { url } = await startHttp2(identity, (stream) => {
      stream.respond({ ':status': 200, 'content-length': '70000' });
      stream.write('x'.repeat(70_000), () => setTimeout(() => breakOff(stream), 50));
    });
    const gate = await start(url);
    const { status, body } = await send(gate.url, '/', { method: 'POST' });
    expect([status, body.length]).toEqual([200, 70_000]);
    const lines = await eventually(gate.requests, ({ length }) => length === 1);
    expect(lines[0]).toMatchObject({ status: 200, outcome: 'forwarded', bytesOut: 70_000 });
    expect(lines[0]).not.toHaveProperty('cut');
  }
});

test('detects a dead connection and abandons it, but keeps a quiet one', async () => {
  const upstream = await startHttp2(identity, (stream, _nth, head) => {
    if (head[':path'] !== '/stream') return stream.respond({ ':status': 204 }, { endStream: true });
    stream.respond({ ':status': 200, 'content-type': 'text/event-stream' });
    stream.write('first');
  });
  const relay = await startRelay(upstream.url);
  onTestFinished(() => relay.close());
  const beside = await start(upstream.url);
  const gate = await start(relay.url.replace('http:', 'https:'), ', retry: {attempts: 1}');
  const [quiet, dead] = await Promise.all([openRaw(beside.url), openRaw(gate.url)]);
  for (const client of [quiet, dead]) {
    client.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n');
    await client.until('first');
  }
  for (const link of relay.links) for (const way of ['up', 'down'] as const) link.pause(way);
  await dead.ended(10_000);
  // Another connection is opened, for a write that could not be repeated too.
  expect((await send(gate.url, '/', { method: 'POST', body: 'pay' })).status).toBe(204);
  expect(relay.taken).toBe(2);
  expect(quiet.socket.readyState).toBe('open');
  expect(gate.requests()).toMatchObject([{ status: 200, cut: true }, { status: 204 }]);
});

test('detects a dead connection as fast after it has carried other requests', async () => {
  const upstream = await startHttp2(identity, (stream, _nth, head) => {
    if (head[':path'] === '/stream') {
      stream.respond({ ':status': 200, 'content-type': 'text/event-stream' });
      return void stream.write('first');
    }
    stream.resume();
    stream.once('end', () => stream.respond({ ':status': 204 }, { endStream: true }));
  });
  const relay = await startRelay(upstream.url);
  onTestFinished(() => relay.close());
  // Bodies that are kept share the connection with the response that goes on.
  const gate = await start(relay.url.replace('http:', 'https:'), ', retry: {attempts: 1, replayLimit: 2MiB}');
  const client = await openRaw(gate.url);
  client.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n');
  await client.until('first');
  for (let i = 0; i < 4; i += 1) {
    expect((await send(gate.url, '/', { method: 'PUT', body: Buffer.alloc(1_000_000) })).status).toBe(204);
  }
  expect(relay.taken).toBe(1);
  for (const link of relay.links) for (const way of ['up', 'down'] as const) link.pause(way);
  await client.ended(10_000);
});

/** A relay before an upstream that reads ahead a bounded number of upload bytes, over a line that can be degraded. */
async function startTakingUploads(allowed: number, settings: string) {
  const receive = (stream: ServerHttp2Stream): void => {
    stream.session?.setLocalWindowSize(allowed);
    stream.resume();
    stream.once('end', () => stream.respond({ ':status': 204 }, { endStream: true }));
  };
  const upstream = await startHttp2(identity, receive, { settings: { initialWindowSize: allowed } });
  const relay = await startRelay(upstream.url);
  onTestFinished(() => relay.close());
  const gate = await start(relay.url.replace('http:', 'https:'), `, retry: {attempts: 1}, ${settings}`);
  return { gate, relay };
}

test('detects a dead connection before the next request, even when none is waiting for it', async () => {
  // So that the connection's window is full before the stream's.
  const { gate, relay } = await startTakingUploads(2 ** 30, 'perTryTimeout: 1s');
  const upload100kB = () => send(gate.url, '/', { method: 'PUT', body: Buffer.alloc(100_000) });
  expect((await upload100kB()).status).toBe(204);
  relay.links[0]?.pause('up');
  const upload = begin(gate.url, '/', { method: 'PUT', headers: ['Transfer-Encoding', 'chunked'] });
  const fill = (): void => {
    while (upload.write(Buffer.alloc(1024 * 1024)));
  };
  upload.on('drain', fill);
  fill();
  await eventually(gate.requests, (lines) => lines.length === 2);
  await pause(3400);
  expect((await upload100kB()).status).toBe(204);
  expect(relay.taken).toBe(2);
  expect(gate.requests()).toMatchObject([{ status: 204 }, { status: 504 }, { status: 204 }]);
});

test('answers requests that wait for a connection that cannot be made, and leaves nothing behind', async () => {
  const gate = await start((await refusingUrl()).replace('http:', 'https:'), ', retry: {attempts: 1}');
  const answers = await Promise.all(Array.from({ length: 10 }, () => send(gate.url, '/')));
  expect(answers.map(({ status }) => status).filter((status) => status !== 502 && status !== 503)).toEqual([]);
});

test('reads a body no faster than its client does', async () => {
  const size = 16 * 1024 * 1024;
  let written = 0;
  const upstream = await startHttp2(identity, (stream) => {
    stream.respond({ ':status': 200 });
    const chunk = Buffer.alloc(64 * 1024);
    const write = (): void => {
      while (written < size) {
        written += chunk.length;
        if (!stream.write(chunk)) return void stream.once('drain', write);
      }
      stream.end();
    };
    write();
  });
  const gate = await start(upstream.url);
  const response = await fetch(gate.url);
  await eventually(
    () => written,
    (bytes) => bytes > 0,
  );
  let before = -1;
  while (before !== written) {
    before = written;
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
  }
  expect(written).toBeLessThan(size);
  let read = 0;
  for await (const part of response.body ?? []) read += (part as Uint8Array).length;
  expect(read).toBe(size);
});

test('treats REFUSED_STREAM as not sent: retries an unkeyed write, and counts the retry', async () => {
  const upstream = await startFrames(identity, (socket, stream, _connection) => {
    if (stream === 1) socket.write(frame(FRAME.reset, 0, stream, encodeUint32s(7)));
    else answerOk(socket, stream);
  });
  const gate = await start(upstream.url, ', retry: {backOff: {strategy: fixed, baseInterval: 10ms}}');
  const answer = await send(gate.url, '/', { method: 'POST', body: 'pay' });
  expect(answer.status).toBe(200);
  expect(answer.header('tidegate-attempts')).toBe('2');
  expect(upstream.heads()).toBe(2);
  expect(await gate.metric('tidegate_retries_total{upstream="api",reason="connect"}')).toBe(1);
});

test.each([
  ['this request', (stream: number) => stream],
  ['any request', () => 0x7f_ff_ff_ff],
])('treats a write as sent if GOAWAY with REFUSED_STREAM names %s as read', async (_, lastOf) => {
  const upstream = await startFrames(identity, (socket, stream) => {
    socket.end(frame(FRAME.goAway, 0, 0, encodeUint32s(lastOf(stream), 7)));
  });
  const gate = await start(upstream.url, ', retry: {backOff: {strategy: fixed, baseInterval: 10ms}}');
  const answer = await send(gate.url, '/', { method: 'POST', body: 'pay' });
  expect([answer.status, answer.header('tidegate-outcome')]).toEqual([504, 'unknown']);
  expect(upstream.heads()).toBe(1);
});

test('sends no more attempts than configured to an upstream that keeps refusing streams', async () => {
  const upstream = await startFrames(identity, (socket, stream) => {
    socket.write(frame(FRAME.reset, 0, stream, encodeUint32s(7)));
  });
  const gate = await start(upstream.url, ', retry: {attempts: 2, backOff: {strategy: fixed, baseInterval: 10ms}}');
  const answer = await send(gate.url, '/', { method: 'POST', body: 'pay' });
  expect(answer.status).toBe(502);
  expect(answer.json()).toMatchObject({
    reason: 'connect',
    detail: 'The upstream refused the request without processing it. The request can be retried.',
  });
  expect(answer.header('tidegate-outcome')).toBeUndefined();
  expect(answer.header('tidegate-attempts')).toBe('2');
  expect(upstream.heads()).toBe(2);
  expect(gate.requests()).toMatchObject([{ cause: 'REFUSED_STREAM' }]);
});

test('does not resend a body of which a part was discarded, even if the upstream read nothing of it', async () => {
  const goAway = frame(FRAME.goAway, 0, 0, encodeUint32s(0, 0));
  for (const refusal of [(stream: number) => frame(FRAME.reset, 0, stream, encodeUint32s(7)), () => goAway]) {
    const upstream = await startFrames(identity, (socket, stream) => {
      socket.write(refusal(stream));
    });
    const gate = await start(upstream.url, ', retry: {backOff: {strategy: fixed, baseInterval: 10ms}}');
    const answer = await send(gate.url, '/', { method: 'POST', body: 'x'.repeat(100_000), chunked: true });
    expect([answer.status, answer.json()['reason'], answer.header('tidegate-outcome')]).toEqual([
      502,
      'connect',
      undefined,
    ]);
    expect(answer.header('tidegate-attempts')).toBe('1');
    expect(upstream.heads()).toBe(1);
  }
});

test('answers 502 if the upstream refuses the stream of a write in the middle of its upload', async () => {
  const upstream = await startHttp2(identity, (stream) => {
    stream.once('data', () => stream.close(constants.NGHTTP2_REFUSED_STREAM));
  });
  const gate = await start(upstream.url);
  const answer = await send(gate.url, '/', { method: 'POST', body: 'x'.repeat(200_000) });
  expect([answer.status, answer.json()['reason'], answer.header('tidegate-outcome')]).toEqual([
    502,
    'connect',
    undefined,
  ]);
  expect(upstream.heads).toHaveLength(1);
});

test('forwards a complete response that arrives before the end of an upload', async () => {
  const upstream = await startFrames(identity, (socket, stream) => {
    socket.write(
      Buffer.concat([
        frame(FRAME.headers, FLAG.endHeaders, stream, OK),
        frame(FRAME.data, FLAG.endStream, stream, Buffer.from('enough')),
        frame(FRAME.reset, 0, stream, encodeUint32s(0)),
      ]),
    );
  });
  const gate = await start(upstream.url);
  const answer = await send(gate.url, '/', { method: 'POST', body: 'x'.repeat(100_000), chunked: true });
  expect({ status: answer.status, body: answer.body.toString() }).toEqual({ status: 200, body: 'enough' });
});

test.each([0, 8])(
  'truncates a response that is reset with code %i before its end, so that it never looks complete',
  async (code) => {
    const upstream = await startFrames(identity, (socket, stream) => {
      socket.write(
        Buffer.concat([
          frame(FRAME.headers, FLAG.endHeaders, stream, OK),
          frame(FRAME.data, 0, stream, Buffer.from('half')),
          frame(FRAME.reset, 0, stream, encodeUint32s(code)),
        ]),
      );
    });
    const gate = await start(upstream.url);
    await expect(send(gate.url, '/')).rejects.toThrow(/aborted|hang up/);
    await eventually(
      () => gate.requests(),
      ([line]) => line?.['cut'] === true,
    );
  },
);

test('counts a request as received once an interim response arrived, whatever its reset code', async () => {
  const upstream = await startFrames(identity, (socket, stream) => {
    const early = frame(FRAME.headers, FLAG.endHeaders, stream, literals({ ':status': '103' }));
    socket.write(Buffer.concat([early, frame(FRAME.reset, 0, stream, encodeUint32s(7))]));
  });
  const gate = await start(upstream.url, ', retry: {backOff: {strategy: fixed, baseInterval: 10ms}}');
  const answer = await send(gate.url, '/', { method: 'POST', body: 'pay' });
  expect(answer.status).toBe(504);
  expect(answer.header('tidegate-outcome')).toBe('unknown');
  expect(upstream.heads()).toBe(1);
});

test('forwards a complete body of a response sent before the end of the upload, and drops the upload', async () => {
  const uploads = 30;
  const upstream = await startFrames(identity, (socket, stream) => {
    const head = frame(FRAME.headers, FLAG.endHeaders, stream, OK);
    socket.write(Buffer.concat([head, frame(FRAME.data, FLAG.endStream, stream, Buffer.from('enough'))]));
  });
  const gate = await start(upstream.url);
  for (let i = 0; i < uploads; i += 1) {
    const answer = await send(gate.url, '/', { method: 'POST', body: 'x'.repeat(200_000), chunked: true });
    expect({ status: answer.status, body: answer.body.toString() }).toEqual({ status: 200, body: 'enough' });
  }
  const ends = ({ type, flags }: Frame): boolean =>
    type === FRAME.reset || (type === FRAME.data && (flags & FLAG.endStream) !== 0);
  await eventually(
    () => upstream.frames.filter(ends).length,
    (count) => count === uploads,
  );
});

test('sends no more on a connection than its peer’s flow control allows', async () => {
  let open = 0;
  let most = 0;
  const hold = (stream: ServerHttp2Stream): void => {
    open += 1;
    most = Math.max(most, open);
    setTimeout(() => {
      open -= 1;
      stream.respond({ ':status': 204 }, { endStream: true });
    }, 100);
  };
  const upstream = await startHttp2(identity, hold, { settings: { maxConcurrentStreams: 2 } });
  const gate = await start(upstream.url, ', connections: 3, perTryTimeout: 3s');
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(gate.url, '/', { method: 'POST' })));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 204));
  expect(upstream.sessions()).toBe(3);
  expect(most).toBe(6);
});

test.each([true, false])(
  'does not take an upload over a slow line for a dead connection (on a connection in use: %j)',
  async (inUse) => {
    const { gate, relay } = await startTakingUploads(2 ** 24, 'timeout: 60s, perTryTimeout: 60s');
    if (inUse) expect((await send(gate.url, '/', { method: 'PUT', body: Buffer.alloc(100_000) })).status).toBe(204);
    relay.injectFaults({ up: { trickle: { bytes: 4000, every: 40 } } });
    expect((await send(gate.url, '/', { method: 'PUT', body: Buffer.alloc(800_000) })).status).toBe(204);
    expect(relay.taken).toBe(1);
  },
);

test('resends requests that a GOAWAY left unprocessed on the next connection, whatever their method', async () => {
  const upstream = await startFrames(identity, (socket, stream, connection) => {
    if (connection === 1) socket.write(frame(FRAME.goAway, 0, 0, encodeUint32s(0, 0)));
    else answerOk(socket, stream);
  });
  const gate = await start(upstream.url, ', retry: {attempts: 1}');
  const answer = await send(gate.url, '/', { method: 'POST', body: 'pay' });
  expect(answer.status).toBe(200);
  expect(upstream.heads()).toBe(2);
});

test('reports nothing sent when every connection ends with GOAWAY before processing', async () => {
  const upstream = await startFrames(identity, (socket) => {
    socket.write(frame(FRAME.goAway, 0, 0, encodeUint32s(0, 0)));
  });
  const gate = await start(upstream.url, ', retry: {attempts: 1}');
  for (const body of ['pay', 'x'.repeat(100_000)]) {
    const answer = await send(gate.url, '/', { method: 'POST', body });
    expect(answer.status).toBe(502);
    expect(answer.header('tidegate-outcome')).toBeUndefined();
  }
  expect(gate.requests()).toMatchObject([
    { outcome: 'upstream_error', cause: 'GOAWAY' },
    { outcome: 'upstream_error', cause: 'GOAWAY' },
  ]);
});

test('reports an unknown outcome for what a connection had processed before it broke', async () => {
  const upstream = await startFrames(identity, (socket, stream) => {
    socket.write(frame(FRAME.goAway, 0, 0, encodeUint32s(stream, 0)));
    setTimeout(() => socket.destroy(), 50);
  });
  const gate = await start(upstream.url);
  const answer = await send(gate.url, '/', { method: 'POST', body: 'pay' });
  expect(answer.status).toBe(504);
  expect(answer.header('tidegate-outcome')).toBe('unknown');
  expect(upstream.heads()).toBe(1);
});

test('requests a WebSocket over HTTP/1.1', async () => {
  const server = createSecureServer({ ...identity, allowHTTP1: true });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    onTestFinished(() => {
      socket.destroy();
    });
    expect(request.headers).not.toHaveProperty('te');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  const gate = await start(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const client = await openRaw(gate.url);
  client.write(
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTE: trailers\r\nSec-WebSocket-Key: x\r\n\r\n',
  );
  expect(await client.until('hello')).toMatch(/^HTTP\/1\.1 101 /);
});

test('keeps a connection usable after many aborted uploads', async () => {
  const upstream = await startHttp2(
    identity,
    (stream, _nth, head) => {
      if (head[':method'] === 'GET') stream.respond({ ':status': 204 }, { endStream: true });
    },
    { settings: { initialWindowSize: 1000 } }, // the rest of each upload waits for it
  );
  const gate = await start(upstream.url, ', retry: {replayLimit: 1MiB}');
  for (let i = 1; i <= 20; i += 1) {
    const leaving = new AbortController();
    const answer = send(gate.url, '/', { method: 'POST', body: Buffer.alloc(1_000_000), signal: leaving.signal });
    const gone = answer.then(
      () => 'answered',
      () => 'gone',
    );
    await eventually(
      () => upstream.heads.length,
      (heads) => heads === i,
    );
    leaving.abort();
    expect(await gone).toBe('gone');
  }
  expect((await send(gate.url, '/')).status).toBe(204);
  expect(upstream.sessions()).toBe(1);
});
