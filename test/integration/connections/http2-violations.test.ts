/** An upstream whose responses make this side close its HTTP/2 connections ends the requests of others once, not again and again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { encodeUint32s, FLAG, FRAME, frame, literals, OK } from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { answerOk, startFrames } from '../../support/upstreams/http2-upstream.ts';

const NO_ERROR = 0;
const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const body = (stream: number): Buffer => frame(FRAME.data, FLAG.endStream, stream, Buffer.from('hello'));
const head = (stream: number, fields: Buffer): Buffer => frame(FRAME.headers, FLAG.endHeaders, stream, fields);

function start(url: string, more = ''): Promise<Tidegate> {
  return startTidegate(
    `upstreams: {api: {url: "${url}", http2: true, tls: {ca: ${certificates.path('ca.crt')}}, retry: {attempts: 1}${more}}}`,
  );
}

const warnings = (gate: Tidegate): Record<string, unknown>[] =>
  gate.log().filter(({ msg }) => String(msg).startsWith('upstream violates HTTP/2'));

test.each([
  ['a HEAD with DATA', 'HEAD', (stream: number) => [head(stream, OK), body(stream)]],
  ['a 304 with DATA', 'GET', (stream: number) => [head(stream, literals({ ':status': '304' })), body(stream)]],
  [
    'DATA beyond its Content-Length',
    'GET',
    (stream: number) => [head(stream, Buffer.concat([OK, literals({ 'content-length': '3' })])), body(stream)],
  ],
])('after %s, no write of another client shares a connection', async (_, method, answer) => {
  const violations: number[] = [];
  const upstream = await startFrames(identity, (socket, stream, _connection, hasBody) => {
    if (hasBody) return void setTimeout(() => answerOk(socket, stream), 1000);
    violations.push(Date.now());
    socket.write(Buffer.concat(answer(stream)));
  });
  const gate = await start(upstream.url);
  const pay = async (): Promise<{ sentAt: number; status: number }> => {
    const sentAt = Date.now();
    const { status } = await send(gate.url, '/', { method: 'POST', body: 'pay' });
    return { sentAt, status };
  };
  const writes: Promise<{ sentAt: number; status: number }>[] = [];
  for (let i = 0; i < 10; i += 1) {
    writes.push(pay());
    await sleep(100);
    if (i >= 1) void send(gate.url, '/', { method }).catch(() => undefined);
    await sleep(50);
  }
  const sent = await Promise.all(writes);
  const [first = 0] = violations;
  expect(violations.length).toBe(9);
  expect(sent.filter(({ sentAt }) => sentAt < first).map(({ status }) => status)).toEqual([504, 504]);
  expect(sent.filter(({ sentAt }) => sentAt >= first).map(({ status }) => status)).toEqual(Array(8).fill(200));
  expect(warnings(gate)).toEqual([
    expect.objectContaining({ level: 'warn', upstream: 'api', cause: 'Protocol error' }),
  ]);
});

test('a write that follows such a response is sent over another connection', async () => {
  const upstream = await startFrames(identity, (socket, stream, _connection, hasBody) => {
    if (hasBody) return answerOk(socket, stream);
    socket.write(Buffer.concat([head(stream, OK), body(stream)]));
  });
  const gate = await start(upstream.url);
  for (let i = 0; i < 10; i += 1) {
    const writes: Promise<{ readonly status: number }>[] = [];
    const violation = send(gate.url, '/', { method: 'HEAD' });
    for (let j = 0; j < 20; j += 1) {
      await sleep(3);
      if (i > 0) writes.push(send(gate.url, '/', { method: 'POST', body: 'pay' }));
    }
    await violation;
    expect((await Promise.all(writes)).filter(({ status }) => status !== 200)).toEqual([]);
  }
});

test('a request that waits for a place on a shared connection gets its own', async () => {
  const connections: number[] = [];
  const upstream = await startFrames(identity, (socket, stream, connection, hasBody) => {
    connections.push(connection);
    if (connections.length > 1) answerOk(socket, stream);
    else if (!hasBody) setTimeout(() => socket.write(body(stream)), 300);
  });
  const gate = await start(upstream.url, ', connections: 1');
  const first = send(gate.url, '/');
  await eventually(
    () => connections,
    ({ length }) => length === 1,
  );
  expect((await first).status).toBe(502);
  const rest = await Promise.all(Array.from({ length: 8 }, () => send(gate.url, '/', { method: 'POST', body: 'pay' })));
  expect(new Set(rest.map(({ status }) => status))).toEqual(new Set([200]));
});

test('a GOAWAY, a reset of the connection and an error of one stream are no violations', async () => {
  const endings: readonly ((stream: number) => Buffer)[] = [
    (stream) => frame(FRAME.goAway, 0, 0, encodeUint32s(stream, NO_ERROR)),
    (stream) => frame(FRAME.goAway, 0, 0, encodeUint32s(stream, 1)),
    (stream) => head(stream, literals({ ':status': 'abc' })),
    () => Buffer.alloc(0),
  ];
  let requests = 0;
  const upstream = await startFrames(identity, (socket, stream) => {
    const ending = endings[requests];
    requests += 1;
    if (ending === undefined) return answerOk(socket, stream);
    socket.end(ending(stream));
  });
  const gate = await start(upstream.url);
  for (const _ of endings) expect((await send(gate.url, '/')).status).toBe(502);
  expect((await send(gate.url, '/')).status).toBe(200);
  expect(warnings(gate)).toEqual([]);
});
