/** Kept responses (`idempotency.replayAnswers`) that their clients do not read, or whose writes had no client at first. */
import type { ServerResponse } from 'node:http';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { connect as connectHttp2 } from 'node:http2';
import { once } from 'node:events';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { readHttp2Answer } from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';

const certificates = makeCertificates();
certificates.issueServer();
afterAll(() => certificates.remove());

const HEAD = { ':method': 'POST', ':path': '/charges', 'idempotency-key': 'k' };

async function start(answer: (response: ServerResponse) => unknown, onClientGone = 'finish') {
  const upstream = await startHttpUpstream((_, response) => answer(response));
  const gate = await startTidegate(`
listen: {address: "127.0.0.1:0", tls: {cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}, http2: true}
limits: {bodyIdle: 1s, readRate: 100000B/s}
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1, onClientGone: ${onClientGone}}, idempotency: {replayAnswers: 1h}}}
`);
  /** @param maxHeaderListSize the largest head that the client announces to accept */
  const open = (initialWindowSize = 1_000_000, maxHeaderListSize = 2 ** 16 - 1): ClientHttp2Session => {
    const session = connectHttp2(gate.url, {
      ca: certificates.read('ca.crt'),
      settings: { initialWindowSize, maxHeaderListSize },
    });
    session.on('error', () => undefined);
    onTestFinished(() => session.destroy());
    return session;
  };
  const post = (session: ClientHttp2Session, headers: Readonly<Record<string, string>> = {}): ClientHttp2Stream => {
    const stream = session.request({ ...HEAD, ...headers });
    stream.on('error', () => undefined);
    return stream.end('amount=1');
  };
  const state = async (): Promise<unknown> => {
    const { keys } = (await send(gate.adminUrl ?? '', '/api/keys')).json() as { keys: { state: string }[] };
    return keys[0]?.state;
  };
  return { gate, upstream, open, post, state };
}

const LARGE = 'x'.repeat(60_000);

test('a kept response that its client does not read is aborted, and its key is free', async () => {
  const { gate, open, post, state } = await start((response) => response.end(LARGE));
  expect((await readHttp2Answer(post(open()))).body.toString()).toBe(LARGE);
  const unread = post(open(0));
  const closed = new Promise((resolve) => unread.once('close', resolve));
  await once(unread, 'response');
  expect(await state()).toBe('in_progress');
  await closed;
  expect(unread.rstCode).not.toBe(0);
  expect(await state()).toBe('answered');
  const [, line] = await eventually(gate.requests, ({ length }) => length === 2);
  expect(line).toMatchObject({ outcome: 'replayed', reason: 'slow_reader', cut: true });
  expect(await gate.metric('tidegate_slow_readers_total{upstream="api",cause="slow_reader"}')).toBe(1);
});

test('a client that reads slowly gets a kept response', async () => {
  const { open, post } = await start((response) => response.end(LARGE));
  await readHttp2Answer(post(open()));
  const slow = post(open(20_000));
  slow.pause();
  const answer = readHttp2Answer(slow);
  slow.once('response', () => setTimeout(() => slow.resume(), 300));
  expect((await answer).body.toString()).toBe(LARGE);
});

/** Sends a write whose client leaves before its response begins; then the upstream responds. */
async function startAbandoned(answer: (response: ServerResponse) => unknown) {
  const held: ServerResponse[] = [];
  const started = await start((response) => void held.push(response));
  const { open, post, state } = started;
  const first = open();
  post(first, { authorization: 'Bearer old' });
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  first.destroy();
  await once(first, 'close');
  // The proxy has seen it once it has answered what came later.
  for (let i = 0; i < 2; i += 1) await state();
  for (const response of held.splice(0)) answer(response);
  await eventually(state, (now) => now === 'unresolved');
  return { ...started, held };
}

test('a write whose kept response breaks off stays unresolved, if no client has had a response', async () => {
  const { open, post, state, held } = await startAbandoned((response) => response.end(LARGE));
  const second = open(0);
  await once(post(second, { authorization: 'Bearer old' }), 'response');
  expect(await state()).toBe('in_progress');
  second.destroy();
  await eventually(state, (now) => now !== 'in_progress');
  expect(await state()).toBe('unresolved');
  const rejected = readHttp2Answer(post(open(), { authorization: 'Bearer new' }));
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  held[0]?.writeHead(401).end();
  const { status, headers } = await rejected;
  expect([status, headers['tidegate-outcome']]).toEqual([504, 'unknown']);
});

test('another body is not refused plainly while no client has the response', async () => {
  const { open } = await startAbandoned((response) => response.end('paid'));
  const other = open().request({ ...HEAD, authorization: 'Bearer old' });
  other.end('amount=1&at=2');
  const { status, headers, json } = await readHttp2Answer(other);
  expect([status, json()['reason'], headers['tidegate-outcome']]).toEqual([504, 'key_reused', 'unknown']);
});

test('the response to a client that left before it began is kept, although its body takes a second', async () => {
  const { open, post, upstream } = await startAbandoned((response) => {
    response.write('pa');
    setTimeout(() => response.end('id'), 1000);
  });
  const { body, headers } = await readHttp2Answer(post(open(), { authorization: 'Bearer old' }));
  expect([body.toString(), headers['idempotent-replayed'], upstream.hits.length]).toEqual(['paid', 'true', 1]);
});

/** Sends a write whose client leaves once `answer` has begun its response. */
async function startAbandonedWithin(
  answer: (response: ServerResponse) => void,
  onClientGone?: string,
  window?: number,
) {
  const held: ServerResponse[] = [];
  const started = await start((response) => {
    held.push(response);
    answer(response);
  }, onClientGone);
  const first = started.open(window);
  await once(started.post(first), 'response');
  first.destroy();
  await eventually(started.gate.requests, ({ length }) => length === 1);
  const [response] = held;
  if (response === undefined) throw new Error('the upstream has no request');
  return { ...started, response };
}

test('a response that its client had not read when it left is kept', async () => {
  // The proxy stops reading until the client takes the first part.
  const { open, post, upstream, response } = await startAbandonedWithin(
    (begun) => begun.write(LARGE.slice(0, 40_000)),
    'finish',
    0,
  );
  response.end(LARGE.slice(40_000));
  const { body, headers } = await readHttp2Answer(post(open()));
  expect([body.toString(), headers['idempotent-replayed'], upstream.hits.length]).toEqual([LARGE, 'true', 1]);
});

const TOO_LARGE = 'x'.repeat(70_000);

test.each<[string, (response: ServerResponse) => void, string?]>([
  ['if `onClientGone` is `cancel`', (response) => response.write('pa'), 'cancel'],
  [
    'if it is an event stream',
    (response) => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(':'),
  ],
  ['if it is too large to be kept', (response) => response.write(TOO_LARGE)],
  ['if its length says so', (response) => response.writeHead(200, { 'Content-Length': 70_000 }).write('x')],
])('a response whose client leaves within it is cancelled %s', async (_, answer, onClientGone) => {
  const { response, state } = await startAbandonedWithin(answer, onClientGone);
  if (!response.destroyed) await once(response, 'close');
  expect(response.writableFinished).toBe(false);
  await eventually(state, (now) => now === 'unresolved');
});

test('a response is cancelled once it is too large to be kept, after its client has left', async () => {
  const { response, state } = await startAbandonedWithin((begun) => begun.write('x'));
  expect(await state()).toBe('in_progress');
  response.write(TOO_LARGE);
  if (!response.destroyed) await once(response, 'close');
  await eventually(state, (now) => now === 'unresolved');
});

test('a response that breaks off after its client has left is not kept', async () => {
  const { response, state, open, post, upstream } = await startAbandonedWithin((begun) => begun.write('x'));
  response.destroy();
  await eventually(state, (now) => now === 'unresolved');
  const repeat = post(open());
  await once(repeat, 'response');
  expect(upstream.hits).toHaveLength(2);
});

const WITH_LARGE_HEAD = (response: ServerResponse): unknown =>
  response.writeHead(200, { 'X-Large': 'v'.repeat(3000) }).end('paid');

test('a repeat that does not accept the headers of a kept response gets a plain 502', async () => {
  const { gate, open, post, state, upstream } = await start(WITH_LARGE_HEAD);
  expect((await readHttp2Answer(post(open()))).status).toBe(200);
  const { status, headers, json } = await readHttp2Answer(post(open(undefined, 1500)));
  expect([status, json()['reason'], json()['outcome']]).toEqual([502, 'answer_unwritable', undefined]);
  expect([headers['tidegate-outcome'], headers['tidegate-attempts']]).toEqual([undefined, '0']);
  const [, line] = await eventually(gate.requests, ({ length }) => length === 2);
  expect(line).toMatchObject({ status: 502, outcome: 'upstream_error', reason: 'answer_unwritable' });
  expect(await state()).toBe('answered');
  const again = await readHttp2Answer(post(open()));
  expect([again.status, again.headers['idempotent-replayed'], upstream.hits.length]).toEqual([200, 'true', 1]);
});

test('and a 504 with an unknown outcome while no client has the response', async () => {
  const { gate, open, post } = await startAbandoned(WITH_LARGE_HEAD);
  const { status, headers, json } = await readHttp2Answer(post(open(undefined, 1500), { authorization: 'Bearer old' }));
  expect([status, json()['reason'], headers['tidegate-outcome']]).toEqual([504, 'answer_unwritable', 'unknown']);
  const lines = await eventually(gate.requests, ({ length }) => length === 2);
  expect(lines[1]).toMatchObject({ status: 504, outcome: 'unknown' });
});
