/** A response over HTTP/2 that is sent before the end of its upload stays valid: the rest of the upload is reset with NO_ERROR. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { FLAG, FRAME, frame, literals, openFrames } from '../../support/clients/http2-client.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const certificates = makeCertificates();
certificates.issueServer();
afterAll(() => certificates.remove());

const NO_ERROR = 0;

/** Responds to each head, and reads no body. */
async function startEarlyUpstream(): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(413).end('too much'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([
  ['of Tidegate, after limits.bodyIdle', 'limits: {bodyIdle: 1s}', '', '408'],
  ['of Tidegate, as soon as it may be unread', 'limits: {bodyIdle: 300ms}', '', '408'],
  ['of the upstream, before streamIdle is over', '', 'streamIdle: 1s, retry: {replayLimit: 1B}', '413'],
  ['of the upstream, after streamIdle', '', 'streamIdle: 200ms, retry: {replayLimit: 1B}', '413'],
])('a response %s', async (_, limits, settings, status) => {
  const url = await startEarlyUpstream();
  const gate = await startTidegate(`
listen: {address: 127.0.0.1:0, tls: {cert: ${certificates.path('server.crt')}, key: ${certificates.path('server.key')}}, http2: true}
${limits}
upstreams: {api: {url: "${url}", ${settings}}}
`);
  const { socket, frames } = await openFrames(gate.url, certificates.read('ca.crt'));
  const path = { ':method': 'POST', ':scheme': 'https', ':path': '/', ':authority': '127.0.0.1' };
  socket.write(frame(FRAME.headers, FLAG.endHeaders, 1, literals({ ...path, 'content-length': '100' })));
  socket.write(frame(FRAME.data, 0, 1, Buffer.alloc(10)));
  const reset = await eventually(
    () => frames.find(({ type }) => type === FRAME.reset),
    (seen) => seen !== undefined,
  );
  const hasEnded = frames.some(({ type, flags }) => type === FRAME.data && (flags & FLAG.endStream) !== 0);
  expect([hasEnded, reset?.payload.readUInt32BE(0)]).toEqual([true, NO_ERROR]);
  const line = await eventually(
    () => gate.requests().at(0),
    (seen) => seen !== undefined,
  );
  expect(line).toMatchObject({ status: Number(status) });
  expect(line).not.toHaveProperty('cut');
});
