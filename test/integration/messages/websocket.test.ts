import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import type { RawClient } from '../../support/clients/raw-socket.ts';
import { openRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startWebSocketUpstream } from '../../support/upstreams/websocket-upstream.ts';

const inFlight = 'tidegate_requests_in_flight{route="/"}';
const open = 'tidegate_upgraded_connections{route="/"}';
const bytes = (direction: string) => `tidegate_upgraded_bytes_total{route="/",direction="${direction}"}`;

/** @param more further settings of the upstream */
function start(url: string, more = '', top = ''): Promise<Tidegate> {
  return startTidegate(`${top}\nupstreams: {api: {url: "${url}"${more}}}`);
}

const UPGRADE =
  `GET /chat?room=1 HTTP/1.1\r\nHost: chat.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`.replace(/([^\r])\n/g, '$1\r\n');

/** Sends an upgrade request, and gives access to the socket. */
async function openUpgrade(gate: Tidegate): Promise<RawClient> {
  const client = await openRaw(gate.url);
  client.write(UPGRADE);
  return client;
}

/** A WebSocket of Node itself. Closed when the test ends. */
function openWebSocket(gate: Tidegate, protocols: string[] = []): WebSocket {
  const socket = new WebSocket(`${gate.url.replace('http', 'ws')}/chat?room=1`, protocols);
  socket.binaryType = 'arraybuffer';
  onTestFinished(() => socket.close());
  return socket;
}

/** Resolves with the next event of this type. */
async function next(
  socket: WebSocket,
  kind: 'open' | 'message' | 'error' | 'close',
): Promise<{ data?: unknown; code?: number; wasClean?: boolean }> {
  const [event] = (await once(socket, kind)) as [Event & { data?: unknown; code?: number; wasClean?: boolean }];
  return event;
}

test('forwards a WebSocket: its handshake, messages of any size, and its end', async () => {
  const upstream = await startWebSocketUpstream();
  const gate = await start(upstream.url);
  const socket = openWebSocket(gate, ['chat', 'other']);
  await next(socket, 'open');
  expect(socket.protocol).toBe('chat');
  for (const size of [5, 60_000, 3_000_000]) {
    const sent = randomBytes(size);
    socket.send(sent);
    const { data } = await next(socket, 'message');
    expect(hash(Buffer.from(data as ArrayBuffer))).toBe(hash(sent));
  }
  expect(await gate.metric(open)).toBe(1);
  expect(await gate.metric(inFlight)).toBe(1);
  const [request] = upstream.asked;
  expect(request).toMatchObject({ method: 'GET', url: '/chat?room=1' });
  expect(request?.headers).toMatchObject({
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-protocol': 'chat, other',
    'x-forwarded-for': '127.0.0.1',
  });
  expect(request?.headers.via).toMatch(/^1\.1 tidegate-/);
  socket.close(1000, 'done');
  const closed = await next(socket, 'close');
  expect({ code: closed.code, wasClean: closed.wasClean }).toEqual({ code: 1000, wasClean: true });
  const [line] = await eventually(
    () => gate.requests(),
    ({ length }) => length === 1,
  );
  expect(line).toMatchObject({ status: 101, outcome: 'forwarded', attempts: 1, path: '/chat' });
  expect(line?.['bytesToUpstream']).toBeGreaterThan(3_060_000);
  expect(line?.['bytesToClient']).toBeGreaterThan(3_060_000);
  expect(line).not.toHaveProperty('cut');
  expect(await gate.metric(open)).toBe(0);
  expect(await gate.metric(inFlight)).toBe(0);
  expect(await gate.metric(bytes('to_upstream'))).toBe(line?.['bytesToUpstream']);
  expect(await gate.metric(bytes('to_client'))).toBe(line?.['bytesToClient']);
  expect(await gate.metric('tidegate_requests_total{route="/",method="GET",code="101",outcome="forwarded"}')).toBe(1);
});

function hash(data: Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

test('forwards the upstream’s 101 with its headers and Tidegate’s, without hop-by-hop ones', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 101 Whatever\r\nConnection: Upgrade, X-Hop\r\nUpgrade: websocket\r\n');
    socket.write('X-Hop: gone\r\nSec-WebSocket-Accept: x\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nfirst words');
  });
  const gate = await start(upstream.url);
  const client = await openUpgrade(gate);
  const received = await client.until('first words');
  expect(received).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n/);
  for (const line of ['Sec-WebSocket-Accept: x', 'Set-Cookie: a=1', 'Set-Cookie: b=2', 'Tidegate-Attempts: 1']) {
    expect(received).toContain(`\r\n${line}\r\n`);
  }
  expect(received).not.toContain('X-Hop');
  expect(received.match(/^connection:/gim)).toHaveLength(1);
  expect(upstream.connections[0]?.received()).toMatch(/\r\nconnection: upgrade\r\nupgrade: websocket\r\n/i);
});

test.each(['foo', 'websocket, foo', 'websocket\r\nUpgrade: foo', ''])(
  'takes a 101 that changes to another protocol for a malformed response: %j',
  async (protocol) => {
    const upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 101 Whatever\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\nfirst words`);
    });
    const gate = await start(upstream.url, ', retry: {attempts: 1}');
    const client = await openUpgrade(gate);
    const received = await client.ended();
    expect(received).toMatch(/^HTTP\/1\.1 502 /);
    expect(received).toContain('error=http_protocol_error; details="malformed_answer"');
    await eventually(
      () => upstream.connections[0]?.socket.destroyed,
      (isDestroyed) => isDestroyed === true,
    );
    await eventually(
      () => gate.requests(),
      ([line]) => line?.['status'] === 502 && line['reason'] === 'malformed_answer',
    );
    expect(await gate.metric(open)).toBe(0);
    expect(await gate.metric(inFlight)).toBe(0);
  },
);

test('rejects an upgrade with a Retry-After, and closes its connection', async () => {
  const upstream = await startWebSocketUpstream((_request, socket) => {
    socket.end('HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\nContent-Length: 4\r\n\r\nslow');
    return true;
  });
  const gate = await start(upstream.url, ', retry: {attempts: 1}');
  const first = await (await openUpgrade(gate)).ended();
  expect(first).toMatch(/^HTTP\/1\.1 429 /);
  expect(first).toMatch(/slow$/);
  const refused = await (await openUpgrade(gate)).ended();
  expect(refused).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\n/);
  expect(refused).toMatch(/\r\nRetry-After: \d+\r\n/);
  expect(refused).toContain('\r\nContent-Type: application/problem+json\r\n');
  expect(refused).toContain('\r\nConnection: close\r\n');
  const body = JSON.parse(refused.slice(refused.indexOf('\r\n\r\n') + 4)) as object;
  expect(body).toMatchObject({ status: 429, reason: 'held' });
  expect(upstream.asked).toHaveLength(1);
  expect(gate.requests()).toMatchObject([{ status: 429 }, { status: 429, outcome: 'refused', reason: 'held' }]);
  const socket = openWebSocket(gate);
  await next(socket, 'error');
  expect(socket.readyState).toBe(WebSocket.CLOSED);
});

test('queues an upgrade like any request', async () => {
  const upstream = await startWebSocketUpstream();
  const gate = await start(upstream.url, ', rateLimit: {initialRate: 4/s, maxRate: 4/s}, queue: {maxWait: 5s}');
  const sockets = Array.from({ length: 3 }, () => openWebSocket(gate));
  await Promise.all(sockets.map((socket) => next(socket, 'open')));
  const queued = await gate.metric('tidegate_ratelimit_decisions_total{upstream="api",decision="queued"}');
  expect(queued).toBeGreaterThanOrEqual(1);
});

test('forwards a response other than 101 as it is', async () => {
  const upstream = await startWebSocketUpstream((_request, socket) => {
    socket.write('HTTP/1.1 426 Upgrade Required\r\nX-Why: version\r\nTransfer-Encoding: chunked\r\n\r\n');
    socket.write('4\r\nwrong\r\n'.replace('4', '5'));
    setTimeout(() => socket.end('8\r\n version\r\n0\r\n\r\n'), 50);
    return true;
  });
  const gate = await start(upstream.url);
  const answer = await (await openUpgrade(gate)).ended();
  expect(answer).toMatch(/^HTTP\/1\.1 426 Upgrade Required\r\n/);
  expect(answer).toContain('\r\nX-Why: version\r\n');
  expect(answer).toContain('wrong');
  expect(answer).toContain(' version');
  expect(gate.requests()).toMatchObject([{ status: 426, outcome: 'forwarded' }]);
});

test('reads a large response other than 101 no faster than its client', async () => {
  const size = 8 * 1024 * 1024;
  const upstream = await startWebSocketUpstream((_request, socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
    socket.end(Buffer.alloc(size, 'x'));
    return true;
  });
  const gate = await start(upstream.url);
  const client = await openRaw(gate.url);
  client.socket.pause();
  client.write(UPGRADE);
  await pause(200);
  client.socket.resume();
  const answer = await client.ended(10_000);
  expect(answer.length - answer.indexOf('\r\n\r\n') - 4).toBe(size);
});

test('retries what fails before the upgrade, and nothing after it', async () => {
  const upstream = await startWebSocketUpstream((_request, socket, nth) => {
    if (nth > 1) return false;
    socket.end('HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n');
    return true;
  });
  const gate = await start(upstream.url, ', retry: {backOff: {strategy: fixed, baseInterval: 10ms}}');
  const socket = openWebSocket(gate);
  await next(socket, 'open');
  expect(upstream.asked).toHaveLength(2);
  upstream.sockets[0]?.resetAndDestroy();
  const { wasClean } = await next(socket, 'close');
  expect(wasClean).toBe(false);
  await pause(50);
  expect(upstream.asked).toHaveLength(2);
  await eventually(
    () => gate.requests(),
    ([line]) => line?.['status'] === 101 && line['attempts'] === 2,
  );
});

test('lets a half-closed side keep receiving, in both directions', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const gate = await start(upstream.url);
  const client = await openUpgrade(gate);
  await client.until('\r\n\r\n');
  const connection = upstream.connections[0]?.socket;
  if (connection === undefined) throw new Error('no connection');
  connection.allowHalfOpen = true;
  const ended = once(connection, 'end');
  client.socket.end('last words');
  await ended;
  expect(upstream.connections[0]?.received()).toMatch(/last words$/);
  await pause(50);
  connection.end('answer to them');
  expect(await client.ended()).toMatch(/answer to them$/);

  const other = await openUpgrade(gate);
  other.socket.allowHalfOpen = true;
  await other.until('\r\n\r\n');
  const second = upstream.connections[1];
  if (second === undefined) throw new Error('no connection');
  second.socket.allowHalfOpen = true;
  const otherEnded = once(other.socket, 'end');
  second.socket.end('my last words');
  await otherEnded;
  expect(other.received()).toMatch(/my last words$/);
  other.write('received');
  await eventually(
    () => second.received(),
    (text) => text.endsWith('received'),
  );
  other.socket.end();
  await eventually(
    () => gate.requests(),
    ({ length }) => length === 2,
  );
});

test('closes both sides when a half-closed side breaks off', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const gate = await start(upstream.url);
  const client = await openUpgrade(gate);
  await client.until('\r\n\r\n');
  const connection = upstream.connections[0]?.socket;
  if (connection === undefined) throw new Error('no connection');
  connection.allowHalfOpen = true;
  const ended = once(connection, 'end');
  client.socket.end('last words');
  await ended;
  client.socket.resetAndDestroy();
  const talk = setInterval(() => !connection.destroyed && connection.write('is anybody there?'), 20);
  onTestFinished(() => clearInterval(talk));
  await eventually(
    () => connection.destroyed,
    (destroyed) => destroyed,
  );
  const lines = await eventually(gate.requests, ({ length }) => length === 1);
  expect(lines).toMatchObject([{ status: 101 }]);
});

test('closes both sides once a side that is left alone sends nothing', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const gate = await start(upstream.url, ', streamIdle: 2s');
  const client = await openUpgrade(gate);
  await client.until('\r\n\r\n');
  const connection = upstream.connections[0]?.socket;
  if (connection === undefined) throw new Error('no connection');
  connection.allowHalfOpen = true;
  client.socket.end('last words');
  await once(connection, 'end');
  // Longer than streamIdle in all.
  for (let i = 0; i < 5; i += 1) {
    await pause(500);
    connection.write('.');
  }
  await eventually(
    () => client.received(),
    (text) => text.endsWith('.'.repeat(5)),
  );
  const left = await eventually(
    () => gate.metric(open),
    (count) => count === 0,
  );
  expect(left).toBe(0);
});

test('applies backpressure in both directions', async () => {
  let written = 0;
  const chunk = Buffer.alloc(64 * 1024);
  const limit = 32 * 1024 * 1024;
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    const write = (): void => {
      while (written < limit) {
        written += chunk.length;
        if (!socket.write(chunk)) return void socket.once('drain', write);
      }
    };
    write();
    socket.pause();
  });
  const gate = await start(upstream.url);
  const client = await openUpgrade(gate);
  await client.until('\r\n\r\n');
  client.socket.pause();
  let sent = 0;
  const send = (): void => {
    while (sent < limit) {
      sent += chunk.length;
      if (!client.socket.write(chunk)) return void client.socket.once('drain', send);
    }
  };
  send();
  const settled = async (): Promise<void> => {
    for (let before = -1; before !== written + sent; ) {
      before = written + sent;
      await pause(100);
    }
  };
  await settled();
  expect(written).toBeLessThan(limit);
  expect(sent).toBeLessThan(limit);
});

test('leaves nothing behind when a client disconnects before the upgrade', async () => {
  let broken = 0;
  const { url, server } = await listen(() => undefined);
  server.on('upgrade', (_request, socket) => {
    socket.on('error', () => undefined);
    socket.on('close', () => (broken += 1));
    socket.on('end', () => socket.destroy());
    socket.resume();
  });
  const gate = await start(url, ', timeout: 60s, perTryTimeout: 60s');
  const [half, whole] = await Promise.all([openUpgrade(gate), openUpgrade(gate)]);
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 2,
  );
  half.socket.end();
  whole.socket.resetAndDestroy();
  await eventually(
    () => broken,
    (count) => count === 2,
  );
  const lines = await eventually(
    () => gate.requests(),
    ({ length }) => length === 2,
  );
  expect(lines.map(({ outcome }) => outcome)).toEqual(['client_gone', 'client_gone']);
});

test('closes the upstream connection when its client breaks off', async () => {
  const upstream = await startWebSocketUpstream();
  const gate = await start(upstream.url);
  const client = await openUpgrade(gate);
  await client.until('\r\n\r\n');
  const [connection] = upstream.sockets;
  if (connection === undefined) throw new Error('no connection');
  client.socket.resetAndDestroy();
  await eventually(
    () => connection.destroyed,
    (destroyed) => destroyed,
  );
  const lines = await eventually(
    () => gate.requests(),
    ({ length }) => length === 1,
  );
  expect(lines).toMatchObject([{ status: 101 }]);
});

test('does not close a quiet connection', async () => {
  const upstream = await startWebSocketUpstream();
  const gate = await start(
    upstream.url,
    ', timeout: 400ms, perTryTimeout: 400ms, streamIdle: 400ms',
    'limits: {headers: 400ms, bodyIdle: 400ms}',
  );
  const socket = openWebSocket(gate);
  await next(socket, 'open');
  await pause(1500); // Node checks for late clients once a second
  socket.send('still there');
  expect((await next(socket, 'message')).data).toBe('still there');
});

test('gives WebSockets the drain timeout, and no longer', async () => {
  const upstream = await startWebSocketUpstream();
  const gate = await start(upstream.url, '', 'drain: {delay: 0, timeout: 1s}');
  const [ends, stays] = [openWebSocket(gate), openWebSocket(gate)];
  await Promise.all([next(ends, 'open'), next(stays, 'open')]);
  const drained = gate.drain();
  ends.send('in time');
  expect((await next(ends, 'message')).data).toBe('in time');
  ends.close(1000);
  expect((await next(ends, 'close')).wasClean).toBe(true);
  expect((await next(stays, 'close')).wasClean).toBe(false);
  await drained;
  expect(gate.log()).toContainEqual(expect.objectContaining({ level: 'warn', cut: 1 }));
  await eventually(
    () => upstream.sockets.filter(({ destroyed }) => destroyed),
    ({ length }) => length === 2,
  );
});

test('serves an upgrade to another protocol as an ordinary request', async () => {
  const upstream = await startWebSocketUpstream();
  const gate = await start(upstream.url);
  const ask = async (...lines: string[]): Promise<string> => {
    const client = await openRaw(gate.url);
    client.write([...lines, 'Host: x', '\r\n'].join('\r\n'));
    return client.until(/\r\n\r\n[^]*(?:plain|\})/);
  };
  const h2c = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA'];
  const websocket = ['Connection: Upgrade', 'Upgrade: websocket'];
  for (const request of [
    ['GET / HTTP/1.1', ...h2c],
    // HTTP2-Settings must be listed in Connection, and is not.
    ['GET / HTTP/1.1', 'Connection: Upgrade', ...h2c.slice(1)],
    ['GET / HTTP/1.0', ...websocket],
    ['GET / HTTP/1.1', 'Upgrade: websocket'],
    ['PUT / HTTP/1.1', ...websocket, 'Content-Length: 0'],
    ['GET / HTTP/1.1', ...websocket, 'Content-Length: 2'],
  ]) {
    const body = request.some((line) => line.endsWith(': 2')) ? '\r\n\r\nhi' : '';
    const client = await openRaw(gate.url);
    client.write(`${[...request, 'Host: x'].join('\r\n')}${body === '' ? '\r\n\r\n' : body}`);
    expect(await client.until(/\r\n\r\n[^]*plain/), request.join()).toMatch(/^HTTP\/1\.[01] 200 /);
  }
  expect(upstream.asked).toHaveLength(0);
  expect(upstream.plain()).toBe(6);
  expect(await ask('GET /a/../b HTTP/1.1', ...websocket)).toMatch(/^HTTP\/1\.1 400 [^]*"reason":"bad_request"/);
});

test('does not upgrade while an earlier response is pending on the connection, and keeps their order', async () => {
  const upstream = await startRawUpstream((socket, head) => {
    const answer = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    if (head.startsWith('GET /slow ')) setTimeout(() => socket.write(answer('slow')), 100);
    else socket.write(answer('no upgrade'));
  });
  const gate = await start(upstream.url);
  const client = await openRaw(gate.url);
  client.write(`GET /slow HTTP/1.1\r\nHost: x\r\n\r\n${UPGRADE}`);
  const received = await client.until('no upgrade');
  expect(received.indexOf('slow')).toBeLessThan(received.indexOf('no upgrade'));
  expect(received.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
});

const certificates = makeCertificates();
beforeAll(() => certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1'));
afterAll(() => certificates.remove());

test('works over TLS beside HTTP/2, and lets one side end before the other', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.allowHalfOpen = true;
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.on('end', () => setTimeout(() => socket.end('answer to them'), 50));
  });
  const { path, read } = certificates;
  const gate =
    await startTidegate(`listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams: {api: {url: "${upstream.url}"}}`);
  const { hostname, port } = new URL(gate.url);
  const socket = connectTls({ host: hostname, port: Number(port), ca: read('ca.crt') });
  socket.on('error', () => undefined);
  socket.allowHalfOpen = true;
  onTestFinished(() => {
    socket.destroy();
  });
  let text = '';
  socket.on('data', (data: Buffer) => (text += data.toString()));
  socket.write(UPGRADE);
  await eventually(
    () => text,
    (seen) => seen.includes('\r\n\r\n'),
  );
  const ended = once(socket, 'end');
  socket.end('last words');
  await ended;
  expect(text).toMatch(/answer to them$/);
  expect(upstream.connections[0]?.received()).toMatch(/last words$/);
});

test('detects a client that disconnects before the upgrade over TLS too', async () => {
  let broken = 0;
  const { url, server } = await listen(() => undefined);
  server.on('upgrade', (_request, socket) => {
    socket.on('error', () => undefined);
    socket.on('close', () => (broken += 1));
    socket.on('end', () => socket.destroy());
    socket.resume();
  });
  const { path, read } = certificates;
  const gate =
    await startTidegate(`listen: {address: 127.0.0.1:0, tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}}
upstreams: {api: {url: "${url}", timeout: 60s, perTryTimeout: 60s}}`);
  const { hostname, port } = new URL(gate.url);
  const socket = connectTls({ host: hostname, port: Number(port), ca: read('ca.crt') });
  socket.on('error', () => undefined);
  socket.write(UPGRADE);
  await eventually(
    () => gate.metric(inFlight),
    (count) => count === 1,
  );
  socket.end();
  const noticed = await eventually(
    () => broken,
    (count) => count > 0,
  );
  expect(noticed).toBe(1);
});

test('is bounded by the connections from clients, not by those to the upstream', async () => {
  const gate = await start((await startWebSocketUpstream()).url, ', connections: 1', 'limits: {connections: 3}');
  const sockets = [openWebSocket(gate), openWebSocket(gate), openWebSocket(gate)];
  await Promise.all(sockets.map((socket) => next(socket, 'open')));
  await next(openWebSocket(gate), 'error');
  const used = (bound: string) => gate.metric(`tidegate_bound_used_ratio{bound="${bound}"}`);
  expect([await used('connections'), await used('upstream_connections')]).toEqual([1, 0]);
});
