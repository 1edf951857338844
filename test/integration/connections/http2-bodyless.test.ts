/** A response without a body is complete with its head, whatever frames an HTTP/2 upstream sends after it. */
import { afterAll, expect, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import {
  encodeUint32s,
  FLAG,
  FRAME,
  frame,
  literals,
  OK,
  openHttp2,
  sendHttp2,
} from '../../support/clients/http2-client.ts';
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
  );
  expect(resets.at(-1)?.payload.readUInt32BE(0)).toBe(CANCEL);
});

test.each<[string, (stream: number) => readonly Buffer[]]>([
  ['DATA', (stream) => [frame(FRAME.data, FLAG.endStream, stream, Buffer.from('body'))]],
  ['a reset', (stream) => [frame(FRAME.reset, 0, stream, encodeUint32s(CANCEL))]],
  ['nothing', () => []],
])('a write answered 204 is answered, for clients of HTTP/1.1 and HTTP/2, if %s follows', async (_, after) => {
  let requests = 0;
  const upstream = await startFrames(identity, (socket, stream) => {
    requests += 1;
    const done = [frame(FRAME.headers, FLAG.endHeaders, stream, statusHead(204)), ...after(stream)];
    const rejected = [frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, statusHead(401))];
    socket.write(Buffer.concat(requests % 2 === 1 ? done : rejected));
  });
  const api = `{url: "${upstream.url}", http2: true, tls: {ca: ${certificates.path('ca.crt')}}, retry: {attempts: 1}}`;
  const listenTls = `{cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}`;
  const plain = await startTidegate(`upstreams: {api: ${api}}`);
  const http2 = await startTidegate(`
listen: {address: 127.0.0.1:0, tls: ${listenTls}, http2: true}
upstreams: {api: ${api}}`);
  const session = await openHttp2(http2.url, certificates.read('ca.crt'));
  const clients = [
    async () => {
      const answer = await send(plain.url, '/', { method: 'POST', headers: ['Idempotency-Key', 'k'], body: '{}' });
      return { status: answer.status, outcome: answer.header('tidegate-outcome') };
    },
    async () => {
      const answer = await sendHttp2(session, '/', { ':method': 'POST', 'idempotency-key': 'k' }, '{}');
      return { status: answer.status, outcome: answer.headers['tidegate-outcome'] };
    },
  ];
  for (const pay of clients) {
    expect(await pay()).toEqual({ status: 204, outcome: undefined });
    // A rejection of the repeat is plain, because the write is known to be answered.
    expect(await pay()).toEqual({ status: 401, outcome: undefined });
  }
});
