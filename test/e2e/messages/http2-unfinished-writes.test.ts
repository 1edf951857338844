/** A connection with HTTP/2 is closed although a write on it never ends: Node does not close its socket. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { encodeUint32s, FRAME, frame } from '../../support/clients/http2-client.ts';
import { startProbedProcess } from '../../support/proxy/probed-process.ts';
import { eventually } from '../../support/proxy/tidegate.ts';
import { startFrames } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const GOAWAY = 7;
const MAX_WINDOW = 2 ** 31 - 1;
/** More than the system's buffers of both sides hold. */
const UPLOAD = 64 * 1024 * 1024;
const CHUNK = Buffer.alloc(64 * 1024);
const CLOSED_WITHIN = 20_000;

test('the connection of an abandoned upload is closed if its upstream retires it and reads nothing', async () => {
  const upstream = await startFrames(identity, (socket, stream) => {
    socket.write(frame(FRAME.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), encodeUint32s(MAX_WINDOW)])));
    socket.write(frame(FRAME.windowUpdate, 0, 0, encodeUint32s(MAX_WINDOW - 65_535)));
    socket.write(frame(GOAWAY, 0, 0, encodeUint32s(stream, 0)));
    socket.pause();
  });
  const gate = await startProbedProcess(
    `upstreams: {api: {url: "${upstream.url}", http2: true, tls: {ca: ${certificates.path('ca.crt')}}}}`,
    () => undefined,
  );
  onTestFinished(() => gate.stop());
  const idle = await gate.heldResources();

  const { hostname, port } = new URL(gate.url);
  const client = connect(Number(port), hostname);
  client.on('error', () => undefined);
  await once(client, 'connect');
  client.write(`POST /upload HTTP/1.1\r\nHost: a.test\r\nContent-Length: ${UPLOAD}\r\n\r\n`);
  for (let left = UPLOAD; left > 0 && client.writableLength < 8 * CHUNK.length; left -= CHUNK.length) {
    client.write(CHUNK);
    await new Promise((resolve) => {
      setTimeout(resolve, 1);
    });
  }
  await eventually(upstream.heads, (count) => count === 1);
  client.destroy();

  const left = await eventually(
    () => gate.heldResources(),
    ({ files }) => files <= idle.files,
    CLOSED_WITHIN,
    200,
  );
  expect(left.handles['TCPSocketWrap']).toBe(idle.handles['TCPSocketWrap']);
});
