/** With `http2: true`, `connections` bounds the connections, also while the upstream is silent for long. */
import type { ServerHttp2Stream } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { FLAG, FRAME, frame } from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { AGAIN_IF_STALLED, watchStalls } from '../../support/stalls.ts';
import { answerOk, startFrames, startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const PING = 6;
/** Connections without other requests that there may be. */
const UNSHARED = 16;
/** By then, a connection on which nothing moves has been pinged. */
const PINGED = 5000;

function start(url: string, connections: number): Promise<Tidegate> {
  return startTidegate(`
upstreams:
  api:
    url: "${url}"
    http2: true
    connections: ${connections}
    tls: {ca: ${certificates.path('ca.crt')}}
    timeout: 60s
    perTryTimeout: 60s
    queue: {maxWait: 30s}
    retry: {attempts: 1}`);
}

/** Answers all but /small when the test says so. */
async function startHolding(places: number) {
  const held: ServerHttp2Stream[] = [];
  const upstream = await startHttp2(
    identity,
    (stream, _nth, head) => {
      stream.resume();
      if (head[':path'] === '/small') stream.respond({ ':status': 200 }, { endStream: true });
      else held.push(stream);
    },
    { settings: { maxConcurrentStreams: places } },
  );
  const finish = (): void => {
    for (const stream of held.splice(0)) if (!stream.destroyed) stream.respond({ ':status': 200 }, { endStream: true });
  };
  return { ...upstream, held, finish };
}

describe('while responses take long', () => {
  test.each([
    { kind: 'requests', bytes: 0, places: 2, most: 2 },
    { kind: 'uploads', bytes: 100_000, places: 100, most: UNSHARED + 1 },
  ])('as many connections as allowed carry $kind', async ({ bytes, places, most }) => {
    const upstream = await startHolding(places);
    const gate = await start(upstream.url, 2);
    expect((await send(gate.url, '/small')).status).toBe(200);
    const options = bytes === 0 ? {} : { method: 'PUT', body: Buffer.alloc(bytes) };
    const answers = Array.from({ length: 30 }, () => send(gate.url, '/', options));
    await sleep(PINGED);
    expect(upstream.sessions()).toBeLessThanOrEqual(most);
    const finishing = setInterval(upstream.finish, 20);
    onTestFinished(() => clearInterval(finishing));
    expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('a connection that has acknowledged its ping takes requests again', async () => {
    const upstream = await startHolding(100);
    const gate = await start(upstream.url, 256);
    const slow = send(gate.url, '/');
    await sleep(PINGED);
    expect((await send(gate.url, '/small')).status).toBe(200);
    expect(upstream.sessions()).toBe(1);
    upstream.finish();
    expect((await slow).status).toBe(200);
  });
});

test(
  'requests are served although the upstream reads nothing of the only connection that they may share',
  AGAIN_IF_STALLED,
  async () => {
    const stalls = watchStalls();
    const stopped = new Set<number>();
    const upstream = await startFrames(
      identity,
      (socket, stream, connection, hasBody) => {
        if (!hasBody) return answerOk(socket, stream);
        stopped.add(connection);
        socket.pause();
      },
      (socket, { type, flags, payload }) => {
        if (type === PING && (flags & FLAG.ack) === 0) socket.write(frame(PING, FLAG.ack, 0, payload));
      },
    );
    const gate = await start(upstream.url, 1);
    expect((await send(gate.url, '/')).status).toBe(200);
    const leaving = new AbortController();
    const write = (bytes: number) =>
      send(gate.url, '/', { method: 'POST', body: Buffer.alloc(bytes), signal: leaving.signal }).catch(() => undefined);
    let isGivenUp = false;
    const writing = write(60_000).finally(() => {
      isGivenUp = true;
    });
    await eventually(
      () => stopped.size,
      (count) => count === 1,
    );
    await sleep(PINGED - 500); // the ping waits for the acknowledgement
    for (let i = 0; i < 3; i += 1) expect((await send(gate.url, '/')).status).toBe(200);
    // They have not waited until the ping had failed, which ends the write.
    stalls.unlessStalled(() => expect(isGivenUp).toBe(false));
    leaving.abort();
    await writing;
  },
);

test('no request is sent over a connection of which nothing is read, although all others are in use', async () => {
  const stopped = new Set<number>();
  const upstream = await startFrames(
    identity,
    (socket, stream, connection, hasBody) => {
      if (!hasBody) return answerOk(socket, stream);
      if (stopped.size > UNSHARED) return;
      stopped.add(connection);
      socket.pause();
      if (stopped.size > 1) setTimeout(() => socket.resume(), PINGED); // nothing of the first one is ever read
    },
    (socket, { type, flags, stream, payload }) => {
      if (type === PING && (flags & FLAG.ack) === 0) socket.write(frame(PING, FLAG.ack, 0, payload));
      if (type === FRAME.data && (flags & FLAG.endStream) !== 0) answerOk(socket, stream);
    },
  );
  const gate = await start(upstream.url, 1);
  expect((await send(gate.url, '/')).status).toBe(200);
  const writes = [send(gate.url, '/', { method: 'POST', body: Buffer.alloc(60_000) })];
  await eventually(
    () => stopped.size,
    (count) => count === 1,
  );
  await sleep(1500);
  const pinged = sleep(PINGED - 1500 - 500);
  for (let i = 0; i < UNSHARED; i += 1) {
    writes.push(
      send(gate.url, '/', { method: 'POST', body: Buffer.alloc(60_000), headers: ['X-A', 'a'.repeat(5000)] }),
    );
  }
  await eventually(
    () => stopped.size,
    (count) => count === 1 + UNSHARED,
  );
  await pinged;
  expect((await send(gate.url, '/', { method: 'POST', body: 'pay' })).status).toBe(200);
  const statuses = (await Promise.all(writes)).map(({ status }) => status);
  expect(statuses).toEqual([504, ...Array<number>(UNSHARED).fill(200)]);
});
