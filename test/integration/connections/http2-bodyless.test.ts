/** A response without a body is complete with its head, whatever frames an HTTP/2 upstream sends after it. */
import { afterAll, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { encodeUint32s, FLAG, FRAME, frame, literals, OK } from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startFrames } from '../../support/upstreams/http2-upstream.ts';

const CANCEL = 8;
const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const statusHead = (status: number): Buffer => literals({ ':status': String(status) });

test.each([
  ['a HEAD', 'HEAD', 200, OK],
  ['a 204', 'POST', 204, statusHead(204)],
  ['a 304', 'GET', 304, statusHead(304)],
])('of %s is forwarded whatever follows its head', async (_, method, status, head) => {
  const endings: readonly ((stream: number) => readonly Buffer[])[] = [
    (stream) => [frame(FRAME.data, FLAG.endStream, stream, Buffer.from('body'))],
    (stream) => [frame(FRAME.data, FLAG.endStream, stream)],
    (stream) => [frame(FRAME.reset, 0, stream, encodeUint32s(CANCEL))],
    (stream) => [frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, literals({ 'x-sum': '1' }))],
    () => [],
  ];
  let requests = 0;
  const upstream = await startFrames(identity, (socket, stream) => {
    const after = endings[requests] ?? (() => []);
    requests += 1;
    socket.write(Buffer.concat([frame(FRAME.headers, FLAG.endHeaders, stream, head), ...after(stream)]));
  });
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", http2: true, tls: {ca: ${certificates.path('ca.crt')}}, retry: {attempts: 1}}}`,
  );
  for (const [index] of endings.entries()) {
    const { status: received, body } = await send(gate.url, `/${index}`, { method });
    expect([index, received, body.toString()]).toEqual([index, status, '']);
  }
  expect(requests).toBe(endings.length);
  // The stream that never ends is reset in the end, so that it keeps no place of the connection.
  const resets = await eventually(
    () => upstream.frames.filter(({ type }) => type === FRAME.reset),
    ({ length }) => length > 0,
    30_000,
  );
  expect(resets.at(-1)?.payload.readUInt32BE(0)).toBe(CANCEL);
});
