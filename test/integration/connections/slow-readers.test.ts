/** Clients that do not read keep their upstream connections only while no other request waits, and not forever. */
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../support/upstreams/http-upstream.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';

/** More than the socket buffers take of a response that is not read: 10 MiB at most. */
const LARGE = Buffer.alloc(16 * 1024 * 1024, 'x');
/** The same after a client has read 8 MiB of it: by then the system may buffer 32 MiB for a reader. */
const HUGE = Buffer.alloc(64 * 1024 * 1024, 'x');

/** Answers /large with more than any socket buffers, /events with a stream, and all else shortly. */
async function start(settings: string, connections = 4, more = '') {
  const upstream = await startUpstream();
  const gate = await startTidegate(
    `${settings}\nclients: {key: [header:X-Client]}\nupstreams: {api: {url: "${upstream.url}", connections: ${connections}${more}}}`,
  );
  return { upstream, gate };
}

/** The same with hundreds of connections, and a limit on requests in flight that was learned before. */
async function startWithPlaces(places: number, more = '') {
  const upstream = await startUpstream();
  const file = join(mkdtempSync(join(tmpdir(), 'tidegate-')), 'state.json');
  const limit = { upstream: 'api', scope: 'upstream', key: '', rate: 100, ceiling: 100, places };
  const origins = [new URL(upstream.url).origin];
  const state = { version: 1, writtenAt: new Date().toISOString(), upstreams: { api: { origins } }, limits: [limit] };
  writeFileSync(file, JSON.stringify({ ...state, holds: [] }));
  const gate = await startTidegate(
    `state: {store: memory, file: ${file}}\nclients: {key: [header:X-Client]}\nupstreams: {api: {url: "${upstream.url}"${more}}}`,
  );
  expect(gate.view().limits).toMatchObject([{ concurrencyLimit: places }]);
  return gate;
}

const startUpstream = () =>
  listen((request, response) => {
    request.resume();
    if (request.url === '/large') response.end(LARGE);
    else if (request.url === '/huge') response.end(HUGE);
    else if (request.url === '/up') request.on('end', () => response.end('uploaded'));
    else if (request.url === '/slow') setTimeout(() => response.end('served'), 700);
    else if (request.url !== '/events') response.end('served');
    else response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': \n\n');
  });

/** Sends a request, reads the head, and then nothing. */
async function stall(url: string, path: string, client: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    socket.once('readable', () => resolve());
    socket.write(`GET ${path} HTTP/1.1\r\nHost: h\r\nX-Client: ${client}\r\n\r\n`);
  });
  return socket;
}

const cuts = (cause: string) => `tidegate_slow_readers_total{upstream="api",cause="${cause}"}`;

test('serves requests that wait for a connection by cutting a client that does not read', async () => {
  const { gate } = await start('');
  for (let i = 0; i < 4; i += 1) await stall(gate.url, '/large', 'stalls');
  await sleep(1100); // by then they have read nothing for long enough
  for (let i = 0; i < 3; i += 1) {
    const answer = await send(gate.url, '/', { headers: ['X-Client', 'calm'] });
    expect([answer.status, answer.body.toString()]).toEqual([200, 'served']);
  }
  expect(await gate.metric(cuts('gave_way'))).toBeGreaterThan(0);
  const cut = await eventually(
    () => gate.requests().filter(({ reason }) => reason === 'gave_way'),
    ({ length }) => length > 0,
  );
  expect(cut[0]).toMatchObject({ cut: true, path: '/large', reason: 'gave_way' });
});

test('serves requests that wait for a connection by cutting a stalled upload', async () => {
  const { gate } = await start('');
  const { hostname, port } = new URL(gate.url);
  const received: string[] = [];
  for (let i = 0; i < 4; i += 1) {
    const socket = connect(Number(port), hostname);
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => received.push(bytes.toString()));
    socket.write(
      `POST /up HTTP/1.1\r\nHost: h\r\nX-Client: stalls\r\nContent-Length: 1000000\r\n\r\n${i < 2 ? 'some' : ''}`,
    );
  }
  await sleep(1100);
  for (let i = 0; i < 3; i += 1) {
    const answer = await send(gate.url, '/', { headers: ['X-Client', 'calm'] });
    expect([answer.status, answer.body.toString()]).toEqual([200, 'served']);
  }
  expect(received.join('')).toMatch(/^HTTP\/1\.1 (?:408|504) /);
});

test.each(['a response that is not read', 'an upload that stalls'])(
  'does not refuse a request for which %s gives way, however long responses took before',
  async (kind) => {
    const { gate } = await start('', 1, ', queue: {maxWait: 500ms}');
    for (let i = 0; i < 3; i += 1) expect((await send(gate.url, '/slow')).status).toBe(200);
    if (kind === 'an upload that stalls') await stallUpload(gate.url);
    else await stall(gate.url, '/large', 'stalls');
    await sleep(1100);
    const answer = await send(gate.url, '/', { headers: ['X-Client', 'calm'] });
    expect([answer.status, answer.body.toString()]).toEqual([200, 'served']);
  },
);

/** Sends the head of a request that is longer than what is kept for retries, and the beginning of its body. */
async function stallUpload(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write('POST /up HTTP/1.1\r\nHost: h\r\nX-Client: stalls\r\nContent-Length: 1000000\r\n\r\nsome');
}

test('cuts the client that holds the most connections first', async () => {
  const { gate } = await start('');
  const calm = await stall(gate.url, '/large', 'one');
  for (let i = 0; i < 3; i += 1) await stall(gate.url, '/large', 'many');
  await sleep(1100);
  expect((await send(gate.url, '/', { headers: ['X-Client', 'calm'] })).status).toBe(200);
  expect(calm.destroyed).toBe(false);
  const cut = await eventually(
    () => gate.requests().filter(({ reason }) => reason === 'gave_way'),
    ({ length }) => length > 0,
  );
  const served = gate.requests().find(({ path }) => path === '/');
  expect(cut.map(({ client }) => client)).not.toContain(served?.['client']);
});

test('cuts no client while no request waits for a connection', async () => {
  const { gate } = await start('');
  const sockets = await Promise.all([1, 2, 3].map(() => stall(gate.url, '/large', 'stalls')));
  await sleep(1300);
  expect((await send(gate.url, '/', { headers: ['X-Client', 'calm'] })).status).toBe(200);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
  expect(await gate.metric(cuts('gave_way'))).toBe(0);
});

/** Reads a little from time to time. */
function readSlowly(socket: Socket, bytes: number): void {
  const timer = setInterval(() => void socket.read(Math.min(bytes, socket.readableLength)), 20);
  socket.once('close', () => clearInterval(timer));
}

test('cuts a response read more slowly than limits.readRate, but not a quiet event stream', async () => {
  const { gate } = await start('limits: {bodyIdle: 300ms, readRate: 100MiB/s}');
  const events = await stall(gate.url, '/events', 'listens');
  readSlowly(await stall(gate.url, '/large', 'sips'), 256 * 1024);
  await eventually(
    () => gate.metric(cuts('slow_reader')),
    (count) => count === 1,
  );
  const line = gate.requests().find(({ path }) => path === '/large');
  expect(line).toMatchObject({ cut: true, reason: 'slow_reader' });
  await sleep(700);
  expect(events.destroyed).toBe(false);
  expect(gate.requests().some(({ path }) => path === '/events')).toBe(false);
});

test('does not cut a steady reader, however late the kernel reports its progress', async () => {
  const { gate } = await start('limits: {bodyIdle: 100ms, readRate: 1KiB/s}');
  const socket = await stall(gate.url, '/large', 'sips');
  readSlowly(socket, 64 * 1024);
  await sleep(1500);
  expect([socket.destroyed, await gate.metric(cuts('slow_reader'))]).toEqual([false, 0]);
});

test('cuts a reader only after twice the time in which it has shown progress before', async () => {
  const { gate } = await start('', 1);
  const socket = await stall(gate.url, '/huge', 'reads');
  for (let i = 0; i < 2; i += 1) {
    await sleep(1500);
    await readBytes(socket, 4 * 1024 * 1024);
  }
  await sleep(1200); // longer than a client may stall that has never shown progress
  expect((await send(gate.url, '/', { headers: ['X-Client', 'calm'] })).status).toBe(429);
  expect([socket.destroyed, await gate.metric(cuts('gave_way'))]).toEqual([false, 0]);
  await eventually(
    async () => (await send(gate.url, '/', { headers: ['X-Client', 'calm'] })).status,
    (status) => status === 200,
  );
  expect(await gate.metric(cuts('gave_way'))).toBe(1);
});

/** Reads this much as it arrives, and then nothing. */
async function readBytes(socket: Socket, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; ) {
    const chunk: unknown = socket.read(Math.min(left, socket.readableLength));
    if (Buffer.isBuffer(chunk)) left -= chunk.length;
    else await once(socket, 'readable');
  }
}

test('cuts no reader that pauses once for some seconds while another request waits', async () => {
  const { gate } = await start('', 1, ', queue: {maxWait: 20s}');
  const socket = await stall(gate.url, '/huge', 'reads');
  await readBytes(socket, 8 * 1024 * 1024);
  const waiting = send(gate.url, '/', { headers: ['X-Client', 'calm'] });
  await sleep(2500);
  await Promise.race([readBytes(socket, HUGE.length - 8 * 1024 * 1024), once(socket, 'close')]);
  expect([(await waiting).status, await gate.metric(cuts('gave_way'))]).toEqual([200, 0]);
  expect(gate.requests().find(({ path }) => path === '/huge')).not.toHaveProperty('cut');
});

test(
  'cuts readers that have stopped after some progress within five seconds and the time to check, if others wait',
  AGAIN_IF_STALLED,
  async () => {
    const stalls = watchStalls();
    const { gate } = await start('', 4, ', queue: {maxWait: 20s}');
    const sockets = await Promise.all([1, 2, 3, 4].map(() => stall(gate.url, '/huge', 'reads')));
    const readUntil = await Promise.all(
      sockets.map(async (socket) => {
        await readBytes(socket, 8 * 1024 * 1024);
        return performance.now();
      }),
    );
    const since = performance.now();
    const waiting = Array.from({ length: 4 }, () => send(gate.url, '/', { headers: ['X-Client', 'calm'] }));
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const until = performance.now();
    expect(until - Math.min(...readUntil)).toBeGreaterThan(4000);
    stalls.unlessStalled(() => expect(until - since).toBeLessThan(8000));
    expect(await gate.metric(cuts('gave_way'))).toBeGreaterThan(0);
  },
);

test('cuts no reader for requests that wait for the rate while connections are free', async () => {
  const { gate } = await start('', 4, ', rateLimit: {maxRate: 2/s}, queue: {maxWait: 20s}');
  const socket = await stall(gate.url, '/large', 'stalls');
  const waiting = Array.from({ length: 8 }, () => send(gate.url, '/', { headers: ['X-Client', 'many'] }));
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 200));
  expect([socket.destroyed, await gate.metric(cuts('gave_way'))]).toEqual([false, 0]);
});

test('allows any read speed with readRate: 0', async () => {
  const { gate } = await start('limits: {bodyIdle: 200ms, readRate: 0}');
  await stall(gate.url, '/large', 'stalls');
  await sleep(900);
  expect(await gate.metric(cuts('slow_reader'))).toBe(0);
});

test.each(['responses that are not read', 'uploads that stall'])(
  'serves requests that wait for a place in flight by cutting %s, while connections are free',
  async (kind) => {
    const gate = await startWithPlaces(4);
    for (let i = 0; i < 4; i += 1) {
      if (kind === 'uploads that stall') await stallUpload(gate.url);
      else await stall(gate.url, '/large', 'stalls');
    }
    await sleep(1100);
    const asked = Array.from({ length: 3 }, () => send(gate.url, '/', { headers: ['X-Client', 'calm'] }));
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const cut = await eventually(
      () => gate.requests().filter(({ path }) => path !== '/'),
      ({ length }) => length > 0,
    );
    expect(cut.length).toBeLessThan(4);
  },
);

test('keeps the Retry-After of a request that waits for a place in flight until a reader gives way', async () => {
  const gate = await startWithPlaces(1);
  await stall(gate.url, '/large', 'stalls');
  const ask = () => send(gate.url, '/', { headers: ['X-Client', 'calm'] });
  const first = await ask();
  if (first.status === 429) await sleep(1000 * Number(first.header('retry-after')));
  expect((await ask()).status).toBe(200);
});

test('cuts no reader for requests that wait for the rate while places in flight are free', async () => {
  const gate = await startWithPlaces(2, ', rateLimit: {maxRate: 2/s}, queue: {maxWait: 20s}');
  const socket = await stall(gate.url, '/large', 'stalls');
  const waiting = Array.from({ length: 8 }, () => send(gate.url, '/', { headers: ['X-Client', 'many'] }));
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 200));
  expect([socket.destroyed, await gate.metric(cuts('gave_way'))]).toEqual([false, 0]);
});
