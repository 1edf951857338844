/** Over HTTP/2, an upstream that holds too much on a connection resets each further request on it with ENHANCE_YOUR_CALM. */
import { connect } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { encodeUint32s, FRAME, frame } from '../../support/clients/http2-client.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { answerOk, startFrames, startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const ENHANCE_YOUR_CALM = 11;
/** More than Node keeps for a connection (`maxSessionMemory`), and than the socket buffers take. */
const LARGE = Buffer.alloc(48 * 1024 * 1024, 'x');

const startGate = (url: string) =>
  startTidegate(`
clients: {key: [ip], trustedProxies: [127.0.0.1]}
upstreams: {api: {url: "${url}", http2: true, connections: 1, tls: {ca: ${certificates.path('ca.crt')}}}}`);

test('the next request gets another connection, and those on the first one end there', async () => {
  const held: { readonly socket: TLSSocket; readonly stream: number }[] = [];
  let rejected = 0;
  const upstream = await startFrames(identity, (socket, stream, connection) => {
    if (connection > 1) return answerOk(socket, stream);
    if (held.length === 0) return void held.push({ socket, stream });
    rejected += 1;
    socket.write(frame(FRAME.reset, 0, stream, encodeUint32s(ENHANCE_YOUR_CALM)));
  });
  const gate = await startGate(upstream.url);
  const first = send(gate.url, '/first');
  await eventually(
    () => held.length,
    (count) => count === 1,
  );
  for (let i = 0; i < 5; i += 1) expect((await send(gate.url, `/${i}`)).status).toBe(200);
  expect(rejected).toBe(1);
  for (const { socket, stream } of held) answerOk(socket, stream);
  expect((await first).status).toBe(200);
});

test('a response that its client does not read stops no requests of others', async () => {
  const upstream = await startHttp2(identity, (stream, _nth, head) => {
    stream.respond({ ':status': 200 });
    stream.end(head[':path'] === '/large' ? LARGE : 'served');
  });
  const gate = await startGate(upstream.url);
  expect((await send(gate.url, '/')).status).toBe(200);
  const { hostname, port } = new URL(gate.url);
  const unread = connect(Number(port), hostname).on('error', () => undefined);
  onTestFinished(() => void unread.destroy());
  unread.write('GET /large HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.2\r\n\r\n');
  await eventually(
    () => upstream.heads.length,
    (count) => count === 2,
  );
  for (let i = 0; i < 10; i += 1) expect((await send(gate.url, `/${i}`)).status).toBe(200);
  expect(upstream.sessions()).toBe(2);
  expect(upstream.open()).toBe(2);
});
