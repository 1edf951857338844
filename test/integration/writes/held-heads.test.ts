/** A request over HTTP/2 whose head nghttp2 still holds when the request is given up: nothing of it was sent, and nothing will be. */
import { once } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { connect as connectHttp2 } from 'node:http2';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import type { AttemptListener } from '../../../src/http/upstream/attempt-listener.ts';
import { Http2UpstreamStream } from '../../../src/http/upstream/http2/http2-upstream-stream.ts';
import { UpstreamAttempt } from '../../../src/http/upstream/upstream-attempt.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const nothing = (): undefined => undefined;

/** Starts an upstream that takes one stream at a time, and opens a connection to it. */
async function start() {
  const arrived: string[] = [];
  const held: ServerHttp2Stream[] = [];
  const upstream = await startHttp2(
    identity,
    (stream, _nth, head) => {
      arrived.push(String(head[':path']));
      held.push(stream);
    },
    { settings: { maxConcurrentStreams: 1 } },
  );
  const session = connectHttp2(upstream.url, { ca: certificates.read('ca.crt') });
  session.on('error', nothing);
  onTestFinished(() => session.destroy());
  await once(session, 'remoteSettings');
  const begin = (path: string, body: Buffer | null): UpstreamAttempt => {
    const owner: AttemptListener = {
      ...{ onInterimResponse: nothing, onHead: nothing, onFailure: nothing, onProgress: nothing, onBodyEnd: nothing },
      ...{ onBodyAborted: nothing, onConnectionReleased: nothing },
    };
    const head = { origin: upstream.url, method: 'POST' as const, path, headers: ['host', 'x'], servername: '' };
    const attempt = new UpstreamAttempt(owner, { ...head, body }, performance);
    new Http2UpstreamStream(attempt, {
      ...{ session, lastStreamId: undefined, errorCode: undefined, error: undefined },
      ...{ onResponse: nothing, onClosed: nothing, onUploadProgress: nothing },
    }).start();
    return attempt;
  };
  const untilArrived = (path: string): Promise<unknown> =>
    eventually(
      () => arrived,
      (paths) => paths.includes(path),
    );
  const answer = (): void => {
    const stream = held.shift();
    stream?.respond({ ':status': 200 });
    stream?.end();
  };
  return { arrived, begin, untilArrived, answer };
}

test.each([
  ['without a body', null],
  ['with a body', Buffer.from('amount=1')],
])('does not send a request %s that is given up while the upstream takes no more streams', async (_, body) => {
  const { arrived, begin, untilArrived, answer } = await start();
  begin('/first', null).discard();
  await untilArrived('/first');
  const second = begin('/second', body);
  await new Promise(setImmediate); // Node has written what it could
  expect(second.sent).toBe(true);
  second.cancel();
  expect(second.sent).toBe(false);
  begin('/third', body);
  answer();
  await untilArrived('/third');
  expect(arrived).toEqual(['/first', '/third']);
});

test('does not send several requests that are given up one after another, each once the connection can tell', async () => {
  const { arrived, begin, untilArrived, answer } = await start();
  begin('/first', null).discard();
  await untilArrived('/first');
  const held = ['/second', '/third', '/fourth'].map((path) => begin(path, null));
  await new Promise(setImmediate);
  const waits: boolean[] = [];
  for (const attempt of held) {
    waits.push(attempt.isResetBusy);
    await eventually(
      () => attempt.isResetBusy,
      (isBusy) => !isBusy,
    );
    attempt.cancel();
  }
  expect(waits).toEqual([false, true, true]);
  expect(held.map(({ sent }) => sent)).toEqual([false, false, false]);
  begin('/last', null);
  answer();
  await untilArrived('/last');
  expect(arrived).toEqual(['/first', '/last']);
});

test('counts a request as sent if Node writes it although it is given up in the same turn', async () => {
  const { begin, untilArrived } = await start();
  const attempt = begin('/first', null);
  attempt.cancel();
  await untilArrived('/first');
  expect(attempt.sent).toBe(true);
});

test('counts a request as sent once its head has been written', async () => {
  const { begin, untilArrived } = await start();
  const attempt = begin('/first', null);
  await untilArrived('/first');
  attempt.cancel();
  expect(attempt.sent).toBe(true);
});
