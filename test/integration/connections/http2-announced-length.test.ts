/** A response from an HTTP/2 upstream is complete once all of its Content-Length has arrived, whatever resets its stream after that. */
import { constants } from 'node:http2';
import { afterAll, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import {
  encodeUint32s,
  FLAG,
  FRAME,
  frame,
  literals,
  OK,
  openFrames,
  openHttp2,
  sendHttp2,
} from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startFrames } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const { NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL } = constants;

const start = (url: string) =>
  startTidegate(`
listen: {address: 127.0.0.1:0, tls: {cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}, http2: true}
upstreams: {api: {url: "${url}", http2: true, tls: {ca: ${certificates.path('ca.crt')}}, retry: {attempts: 1}}}
`);

const resetWith = (code: number, stream: number): Buffer => frame(FRAME.reset, 0, stream, encodeUint32s(code));

test.each([NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL])(
  'a write whose response announced trailers is answered if the stream is reset with %i instead',
  async (code) => {
    const head = Buffer.concat([OK, literals({ 'content-length': '4', trailer: 'x-sum' })]);
    let requests = 0;
    const upstream = await startFrames(identity, (socket, stream) => {
      requests += 1;
      const done = [
        frame(FRAME.headers, FLAG.endHeaders, stream, head),
        frame(FRAME.data, 0, stream, Buffer.from('body')),
        resetWith(code, stream),
      ];
      const denied = frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, literals({ ':status': '403' }));
      socket.write(requests % 2 === 1 ? Buffer.concat(done) : denied);
    });
    const gate = await start(upstream.url);
    const session = await openHttp2(gate.url, certificates.read('ca.crt'));
    const pay = () => sendHttp2(session, '/', { ':method': 'POST', 'idempotency-key': 'k' }, 'amount=1');
    const answer = await pay();
    expect([answer.status, answer.body.toString(), answer.trailers]).toEqual([200, 'body', {}]);
    const repeat = await pay();
    expect([repeat.status, repeat.headers['tidegate-outcome']]).toEqual([403, undefined]);
    expect(gate.requests()[0]).not.toHaveProperty('cut');
  },
);

test('a client over HTTP/1.1, which can get no trailers, does not wait for them', async () => {
  const head = Buffer.concat([OK, literals({ 'content-length': '4', trailer: 'x-sum' })]);
  const upstream = await startFrames(identity, (socket, stream) => {
    socket.write(frame(FRAME.headers, FLAG.endHeaders, stream, head));
    socket.write(frame(FRAME.data, 0, stream, Buffer.from('body')));
  });
  const { path } = certificates;
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", http2: true, tls: {ca: ${path('ca.crt')}}, retry: {attempts: 1}}}`,
  );
  const { status, body } = await send(gate.url, '/', { method: 'POST', headers: ['Connection', 'close'], body: 'x' });
  expect([status, body.toString()]).toEqual([200, 'body']);
  const line = await eventually(
    () => gate.requests().at(0),
    (seen) => seen !== undefined,
  );
  expect(line).toMatchObject({ status: 200, outcome: 'forwarded' });
  expect(line).not.toHaveProperty('cut');
});

test.each([NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR])(
  'a client that reads slowly gets all of a response whose stream is reset with %i after its last byte',
  async (code) => {
    const length = 200_000;
    const head = Buffer.concat([OK, literals({ 'content-length': String(length) })]);
    const chunk = Buffer.alloc(10_000, 'x');
    let areSent = false;
    const upstream = await startFrames(identity, (socket, stream) => {
      socket.write(frame(FRAME.headers, FLAG.endHeaders, stream, head));
      for (let i = 0; i < length / chunk.length; i += 1) socket.write(frame(FRAME.data, 0, stream, chunk));
      socket.write(resetWith(code, stream), () => (areSent = true));
    });
    const gate = await start(upstream.url);
    const { socket, frames } = await openFrames(gate.url, certificates.read('ca.crt'));
    const get = literals({ ':method': 'GET', ':scheme': 'https', ':path': '/', ':authority': '127.0.0.1' });
    socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, get));
    const received = (): number =>
      frames.reduce((sum, { type, payload }) => sum + (type === FRAME.data ? payload.length : 0), 0);
    // The window of a stream, unless the client opens it.
    await eventually(received, (bytes) => areSent && bytes === 65_535);
    for (const stream of [0, 1]) socket.write(frame(FRAME.windowUpdate, 0, stream, encodeUint32s(length)));
    const isEnd = ({ type, flags }: (typeof frames)[number]): boolean =>
      type === FRAME.reset || (type === FRAME.data && (flags & FLAG.endStream) !== 0);
    const end = await eventually(
      () => frames.find(isEnd),
      (seen) => seen !== undefined,
    );
    expect([end?.type, received()]).toEqual([FRAME.data, length]);
  },
);
