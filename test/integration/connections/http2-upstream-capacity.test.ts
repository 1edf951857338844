/** With `http2: true`, the requests that an upstream takes at a time depend on what it negotiates and announces. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, SecureServerOptions, ServerHttp2Session } from 'node:http2';
import { createSecureServer } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const LARGE = Buffer.alloc(16 * 1024 * 1024, 'x');

interface HoldingUpstream {
  readonly url: string;
  /** The client of each request that has arrived. */
  readonly clients: readonly string[];
  readonly sessions: readonly ServerHttp2Session[];
  /** Answers the request that has been waiting for the longest time. */
  readonly answerNext: () => void;
}

/** Holds each response until the test releases it; /large and /small are answered at once. */
async function startHolding(options: SecureServerOptions | 'HTTP/1.1 only'): Promise<HoldingUpstream> {
  const clients: string[] = [];
  const sessions: ServerHttp2Session[] = [];
  const held: (() => void)[] = [];
  const answer = (
    { url, headers }: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): void => {
    clients.push(String(headers['x-client']));
    if (url === '/large') response.end(LARGE);
    else if (url === '/small') response.end();
    else held.push(() => void response.end());
  };
  const server =
    options === 'HTTP/1.1 only'
      ? createHttps({ ...identity }, answer)
      : createSecureServer({ ...identity, maxSessionMemory: 100, ...options }, answer).on(
          'session',
          (session: ServerHttp2Session) => {
            sessions.push(session);
            onTestFinished(() => session.destroy());
          },
        );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, clients, sessions, answerNext: () => held.shift()?.() };
}

function start({ url }: HoldingUpstream, connections: number): Promise<Tidegate> {
  return startTidegate(`
clients: {key: [header:X-Client]}
upstreams:
  api:
    url: "${url}"
    http2: true
    connections: ${connections}
    tls: {ca: ${certificates.path('ca.crt')}}
    timeout: 60s
    perTryTimeout: 60s
    queue: {maxWait: 30s}
`);
}

const ask = async (gate: Tidegate, client: string, path = '/'): Promise<number> =>
  (await send(gate.url, path, { headers: ['X-Client', client] })).status;

async function untilQueued(gate: Tidegate, count: number): Promise<void> {
  await eventually(
    () => gate.metric('tidegate_queue_depth{upstream="api"}'),
    (depth) => depth === count,
  );
}

async function untilArrived({ clients }: HoldingUpstream, count: number): Promise<void> {
  await eventually(
    () => clients.length,
    (length) => length === count,
  );
}

test.each([
  { offer: 'HTTP/1.1 only' as const, connections: 4, isWarm: true },
  { offer: 'HTTP/1.1 only' as const, connections: 4, isWarm: false },
  { offer: { settings: { maxConcurrentStreams: 1 } }, connections: 4, isWarm: true },
  { offer: { settings: { maxConcurrentStreams: 1 } }, connections: 4, isWarm: false },
  { offer: { settings: { maxConcurrentStreams: 2 } }, connections: 2, isWarm: true },
])(
  'shares four places fairly among clients, whatever the upstream offers them as: %j',
  async ({ offer, connections, isWarm }) => {
    const upstream = await startHolding(offer);
    const gate = await start(upstream, connections);
    const before = isWarm ? 1 : 0;
    if (isWarm) await ask(gate, 'first', '/small');
    const flood = Array.from({ length: 12 }, () => ask(gate, 'flood'));
    await untilArrived(upstream, before + 4);
    await untilQueued(gate, 8);
    const calm = ask(gate, 'calm');
    await untilQueued(gate, 9);
    for (let next = 5; next <= 13; next += 1) {
      upstream.answerNext();
      await untilArrived(upstream, before + next);
    }
    for (let i = 0; i < 4; i += 1) upstream.answerNext();
    expect(await Promise.all([calm, ...flood])).toEqual(Array.from({ length: 13 }, () => 200));
    expect(upstream.clients.indexOf('calm')).toBeLessThan(before + 6);
  },
);

/** Reads the head of a large response, and then nothing. */
async function stall(gate: Tidegate): Promise<void> {
  const { hostname, port } = new URL(gate.url);
  const socket: Socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  socket.write('GET /large HTTP/1.1\r\nHost: h\r\nX-Client: stalls\r\n\r\n');
  await once(socket, 'readable');
}

test.each(['HTTP/1.1 only' as const, { settings: { maxConcurrentStreams: 2 } }])(
  'cuts a client that does not read for the requests of others where the upstream takes few requests: %j',
  async (offer) => {
    const upstream = await startHolding(offer);
    const gate = await start(upstream, offer === 'HTTP/1.1 only' ? 4 : 2);
    for (let i = 0; i < 4; i += 1) await stall(gate);
    await sleep(1100); // by then they have read nothing for long enough
    expect(await ask(gate, 'calm', '/small')).toBe(200);
    expect(await gate.metric('tidegate_slow_readers_total{upstream="api",cause="gave_way"}')).toBeGreaterThan(0);
  },
);

test.each([4, 50])(
  'gives a place to the next request only when the upstream has freed it: %i places',
  async (places) => {
    const upstream = await startHolding({ settings: { maxConcurrentStreams: places } });
    const gate = await start(upstream, 1);
    await ask(gate, 'first', '/small');
    for (let round = 1; round <= 4; round += 1) {
      const leaving = await Promise.all(Array.from({ length: places }, () => openRaw(gate.url)));
      for (const client of leaving) client.write('GET / HTTP/1.1\r\nHost: h\r\nX-Client: leaves\r\n\r\n');
      await untilArrived(upstream, 1 + places + (round - 1) * 2 * places);
      const writes = Array.from({ length: places }, (_, i) =>
        send(gate.url, '/small', { method: 'POST', headers: ['X-Client', `writes-${i}`], body: 'pay' }),
      );
      await untilQueued(gate, places);
      for (const { socket } of leaving) socket.destroy();
      expect((await Promise.all(writes)).map(({ status }) => status)).toEqual(writes.map(() => 200));
    }
    expect(upstream.sessions.length).toBeLessThanOrEqual(3); // after 100 resets another one is opened
  },
);

test('sends as many requests at a time as the upstream announces, also when that changes', async () => {
  const upstream = await startHolding({ settings: { maxConcurrentStreams: 1 } });
  const gate = await start(upstream, 1);
  const answers = Array.from({ length: 6 }, () => ask(gate, 'any'));
  await untilArrived(upstream, 1);
  await untilQueued(gate, 5);
  upstream.sessions[0]?.settings({ maxConcurrentStreams: 3 });
  await untilArrived(upstream, 3);
  await untilQueued(gate, 3);
  upstream.sessions[0]?.settings({ maxConcurrentStreams: 1 });
  await eventually(
    () => upstream.sessions[0]?.pendingSettingsAck,
    (isPending) => isPending === false,
  );
  for (let left = 2; left > 0; left -= 1) upstream.answerNext();
  await sleep(50);
  expect(upstream.clients).toHaveLength(3); // one of them is still under way
  for (let next = 4; next <= 7; next += 1) {
    upstream.answerNext();
    await untilArrived(upstream, Math.min(next, 6));
  }
  expect(await Promise.all(answers)).toEqual(answers.map(() => 200));
});

test('opens another connection beside one that finishes its last request', async () => {
  const upstream = await startHolding({ settings: { maxConcurrentStreams: 1 } });
  const gate = await start(upstream, 1);
  const last = ask(gate, 'any');
  await untilArrived(upstream, 1);
  const next = ask(gate, 'any');
  await untilQueued(gate, 1);
  upstream.sessions[0]?.close(); // GOAWAY
  await untilArrived(upstream, 2);
  expect(upstream.sessions).toHaveLength(2);
  upstream.answerNext();
  upstream.answerNext();
  expect(await Promise.all([last, next])).toEqual([200, 200]);
});

test('opens another connection however many finish their last requests', async () => {
  const ROUNDS = 20;
  const upstream = await startHolding({});
  const gate = await start(upstream, 1);
  const answers: Promise<number>[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    answers.push(ask(gate, `client-${round}`));
    await untilArrived(upstream, round);
    upstream.sessions.at(-1)?.close(); // GOAWAY
  }
  expect(await ask(gate, 'another', '/small')).toBe(200);
  expect(upstream.sessions).toHaveLength(ROUNDS + 1);
  for (let i = 0; i < ROUNDS; i += 1) upstream.answerNext();
  expect(await Promise.all(answers)).toEqual(answers.map(() => 200));
});

test('recovers from an upstream that announces that it takes no requests', async () => {
  const upstream = await startHolding({ settings: { maxConcurrentStreams: 0 } });
  const gate = await start(upstream, 1);
  const answer = ask(gate, 'any', '/small');
  await eventually(
    () => upstream.sessions.length,
    (count) => count === 1,
  );
  upstream.sessions[0]?.settings({ maxConcurrentStreams: 5 });
  expect(await answer).toBe(200);
});
