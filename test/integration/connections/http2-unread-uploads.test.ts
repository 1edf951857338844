/** Over HTTP/2, a body that the upstream does not read stops no request of another client. */
import type { ServerHttp2Stream } from 'node:http2';
import { afterAll, describe, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { encodeUint32s, FLAG, FRAME, frame } from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { answerOk, startFrames, startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const PING = 6;
/** The first byte of a body that the upstream does not read. */
const UNREAD = 0x55;
/** Bodies of up to 64 KiB are kept, longer ones are streamed. */
const STREAMED = 100_000;
/** A request that waits for an unread body takes as long as this. */
const PATIENT = ', timeout: 20s, perTryTimeout: 20s, retry: {attempts: 1}';
const SOON = 10_000;

function start(url: string, more: string): Promise<Tidegate> {
  return startTidegate(
    `upstreams: {api: {url: "${url}", http2: true, tls: {ca: ${certificates.path('ca.crt')}}${more}}}`,
  );
}

const unread = (length: number): Buffer => Buffer.alloc(length, UNREAD);

/** Leaves bodies with `UNREAD` unread. It has windows of 64 KiB, which it renews for the bodies that it reads. */
async function startWithSmallWindows() {
  const connections = new Set<number>();
  const first = new Map<string, number>();
  let unreadBytes = 0;
  const upstream = await startFrames(
    identity,
    (socket, stream, connection, hasBody) => {
      connections.add(connection);
      if (!hasBody) answerOk(socket, stream);
    },
    (socket, { type, flags, stream, payload }, connection) => {
      if (type === PING && (flags & FLAG.ack) === 0) socket.write(frame(PING, FLAG.ack, 0, payload));
      if (type !== FRAME.data) return;
      const key = `${connection} ${stream}`;
      if (!first.has(key)) first.set(key, payload[0] ?? 0);
      if (first.get(key) === UNREAD) return void (unreadBytes += payload.length);
      if (payload.length > 0) socket.write(frame(FRAME.windowUpdate, 0, 0, encodeUint32s(payload.length)));
      if ((flags & FLAG.endStream) !== 0) answerOk(socket, stream);
      else if (payload.length > 0) socket.write(frame(FRAME.windowUpdate, 0, stream, encodeUint32s(payload.length)));
    },
  );
  return { ...upstream, connections, unreadBytes: () => unreadBytes };
}

/** Requests of others, while some are not answered. */
async function expectServed(gate: Tidegate): Promise<void> {
  const before = performance.now();
  for (const bytes of [0, 1, 20_000, 60_000, STREAMED]) {
    const method = bytes === 0 ? 'GET' : 'POST';
    const answers = Array.from({ length: 3 }, () =>
      send(gate.url, '/', bytes === 0 ? { method } : { method, body: Buffer.alloc(bytes) }),
    );
    for (const answer of answers) expect([bytes, (await answer).status]).toEqual([bytes, 200]);
  }
  expect(performance.now() - before).toBeLessThan(SOON);
}

describe('an upstream whose windows unread bodies fill', () => {
  test.each([
    { kept: 60_000, connections: 256 },
    { kept: 60_000, connections: 1 },
    { kept: 30_000, connections: 256 },
    { kept: STREAMED, connections: 1 },
  ])('gets the requests of others all the same: %j', async ({ kept, connections }) => {
    const upstream = await startWithSmallWindows();
    const gate = await start(upstream.url, `${PATIENT}, connections: ${connections}`);
    expect((await send(gate.url, '/')).status).toBe(200);
    const leaving = new AbortController();
    const options = { method: 'POST', body: unread(kept), signal: leaving.signal };
    const held = Array.from({ length: 4 }, () => send(gate.url, '/', options).catch(() => undefined));
    await eventually(upstream.unreadBytes, (bytes) => bytes >= 4 * Math.min(kept, 60_000));
    await expectServed(gate);
    leaving.abort();
    await Promise.all(held);
  });

  test('gets bodies one after another over one connection, however late it renews its window', async () => {
    const upstream = await startHttp2(identity, (stream) => {
      stream.resume().on('end', () => stream.respond({ ':status': 200 }, { endStream: true }));
    });
    const gate = await start(upstream.url, PATIENT);
    for (const length of [30_000, 60_000, 40_000, 65_536, 10_000, 60_000, 60_000]) {
      expect((await send(gate.url, '/', { method: 'POST', body: Buffer.alloc(length) })).status).toBe(200);
    }
    expect(upstream.sessions()).toBe(1);
  });
});

test('an upstream that reads nothing of a connection while it does not read an upload gets the writes of others', async () => {
  let stopped = 0;
  const upstream = await startFrames(
    identity,
    (socket, stream, _connection, hasBody) => {
      if (!hasBody) answerOk(socket, stream);
    },
    (socket, { type, flags, stream, payload }) => {
      if (type === PING && (flags & FLAG.ack) === 0) socket.write(frame(PING, FLAG.ack, 0, payload));
      if (type !== FRAME.data) return;
      if (payload[0] === UNREAD) {
        stopped += 1;
        return void socket.pause();
      }
      const bytes = encodeUint32s(Math.max(1, payload.length));
      socket.write(
        Buffer.concat([frame(FRAME.windowUpdate, 0, 0, bytes), frame(FRAME.windowUpdate, 0, stream, bytes)]),
      );
      if ((flags & FLAG.endStream) !== 0) answerOk(socket, stream);
    },
  );
  const gate = await start(upstream.url, PATIENT);
  expect((await send(gate.url, '/', { method: 'POST', body: 'pay' })).status).toBe(200);
  const leaving = new AbortController();
  const options = { method: 'POST', body: unread(20_000_000), signal: leaving.signal };
  const held = send(gate.url, '/', options).catch(() => undefined);
  await eventually(
    () => stopped,
    (count) => count > 0,
  );
  for (let i = 0; i < 3; i += 1) await expectServed(gate);
  leaving.abort();
  await held;
});

describe('uploads', () => {
  /** Answers each when its test says so, with the number of bytes received. */
  async function startHolding() {
    const held: (() => void)[] = [];
    const upstream = await startHttp2(identity, (stream: ServerHttp2Stream, _nth, head) => {
      let bytes = 0;
      stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
      stream.once('end', () => {
        const answer = (): void => {
          stream.respond({ ':status': 200 });
          stream.end(`${bytes} of ${head['content-length'] ?? 'any'}`);
        };
        if (head[':path'] === '/now') answer();
        else held.push(answer);
      });
    });
    return { ...upstream, held };
  }

  test.each([true, false])('are under way at a time on a connection each, in chunks: %j', async (chunked) => {
    const UPLOADS = 40;
    const upstream = await startHolding();
    const gate = await start(upstream.url, PATIENT);
    const body = Buffer.alloc(STREAMED);
    expect((await send(gate.url, '/now', { method: 'PUT', chunked, body })).status).toBe(200);
    const answers = Array.from({ length: UPLOADS }, () => send(gate.url, '/', { method: 'PUT', chunked, body }));
    await eventually(
      () => upstream.held,
      ({ length }) => length === UPLOADS,
    );
    expect(upstream.sessions()).toBe(UPLOADS);
    for (const answer of upstream.held) answer();
    const texts = (await Promise.all(answers)).map(({ body: text }) => text.toString());
    expect(new Set(texts)).toEqual(new Set([`${STREAMED} of ${chunked ? 'any' : STREAMED}`]));
  });

  test('that wait for such a connection say nothing about the upstream', async () => {
    const upstream = await startHolding();
    const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", http2: true, retry: {attempts: 1}, tls: {ca: ${certificates.path('ca.crt')}}, connections: 1}}
routes: [{path: /, upstream: api}, {path: /hurried, upstream: api, perTryTimeout: 500ms}]`);
    const upload = (path: string) => send(gate.url, path, { method: 'PUT', body: Buffer.alloc(STREAMED) });
    expect((await upload('/now')).status).toBe(200);
    expect((await send(gate.url, '/now', { method: 'POST', body: 'pay' })).status).toBe(200);
    const slow = Array.from({ length: 16 }, () => upload('/'));
    await eventually(
      () => upstream.held,
      ({ length }) => length === 16,
    );
    expect((await upload('/hurried')).status).toBe(504); // 502 would blame the upstream
    expect((await send(gate.url, '/now', { method: 'POST', body: 'pay' })).status).toBe(200);
    for (const answer of upstream.held) answer();
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual(Array(16).fill(200));
  });
});
