/** An HTTP/2 connection that cannot be opened, while other requests keep the open ones. */
import type { TLSSocket } from 'node:tls';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { encodeUint32s, FLAG, FRAME, frame, OK } from '../../support/clients/http2-client.ts';
import { begin, send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { answerOk, startFrames } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

/** SETTINGS_MAX_CONCURRENT_STREAMS: one. */
const ONE_STREAM = frame(FRAME.settings, 0, 0, Buffer.from([0, 3, 0, 0, 0, 1]));
const UPLOAD = 'x'.repeat(100_000);

/**
 * Keeps a request open on its first connection, which carries no other one. A request that only waited would do so for the time of
 * an attempt, which is longer than a test may last.
 * @param refusals connections that are refused after the first
 */
async function startBusy(kind: 'upload' | 'stream', refusals: number, retry: string) {
  let refused = 0;
  let held: [TLSSocket, number] | undefined;
  const onConnection = (socket: TLSSocket): void => {
    if (held !== undefined && refused < refusals) {
      refused += 1;
      socket.destroy();
    } else if (kind === 'stream') socket.write(ONE_STREAM);
  };
  const upstream = await startFrames(
    identity,
    (socket, stream, _connection, hasBody) => {
      if (hasBody) for (const id of [0, stream]) socket.write(frame(FRAME.windowUpdate, 0, id, encodeUint32s(1e6)));
      if (held !== undefined) return hasBody ? undefined : answerOk(socket, stream);
      held = [socket, stream];
      if (kind === 'stream') socket.write(frame(FRAME.headers, FLAG.endHeaders, stream, OK));
    },
    (socket, { type, flags, stream }) => {
      if (type === FRAME.data && (flags & FLAG.endStream) !== 0) answerOk(socket, stream);
    },
    onConnection,
  );
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", http2: true, timeout: 60s, perTryTimeout: 60s, retry: {${retry}}, tls: {ca: ${certificates.path('ca.crt')}}}}
`);
  const holding = begin(gate.url, '/held', kind === 'upload' ? { method: 'POST', chunked: true } : {});
  if (kind === 'upload') holding.write(UPLOAD);
  else holding.end();
  onTestFinished(() => void holding.destroy());
  await eventually(
    () => held,
    (found) => found !== undefined,
  );
  return { gate, refused: () => refused };
}

const ask = (gate: Tidegate, kind: 'upload' | 'stream') =>
  kind === 'stream' ? send(gate.url, '/') : send(gate.url, '/', { method: 'POST', body: UPLOAD });

describe.each(['stream', 'upload'] as const)('while another %s has a connection', (kind) => {
  test('a request whose connection is refused is retried on another one', async () => {
    const { gate, refused } = await startBusy(kind, 1, 'attempts: 2');
    const answer = await ask(gate, kind);
    expect([answer.status, answer.header('tidegate-attempts'), refused()]).toEqual([200, '2', 1]);
  });

  test('a request whose connections are all refused fails', async () => {
    const { gate, refused } = await startBusy(kind, 100, 'attempts: 3, backOff: {strategy: fixed, baseInterval: 10ms}');
    const answer = await ask(gate, kind);
    expect([answer.status, answer.json()['reason'], refused()]).toEqual([502, 'connect', 3]);
  });

  test('requests that wait with one whose connection is refused get another one', async () => {
    const { gate } = await startBusy(kind, 3, 'attempts: 1');
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => ask(gate, kind)))).map(({ status }) => status);
    expect(statuses.filter((status) => status === 502)).toHaveLength(3);
    expect(statuses.filter((status) => status === 200)).toHaveLength(5);
  });
});
