/** What has been told of as forwarded has gone out, though the connection to the upstream breaks in the very turn. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { AttemptOwner } from '../../src/http/upstream/upstream-attempt.ts';
import { Attempt } from '../../src/http/upstream/upstream-attempt.ts';
import { Errand } from '../../src/http/upstream/http1-connection.ts';
import { Http2Send } from '../../src/http/upstream/http2-upstream-stream.ts';
import { Http1Inbound } from '../../src/http/server/server-request.ts';
import { breakOff } from '../../src/http/server/write-response.ts';
import { makeCertificates } from '../support/certificates.ts';
import { startHttp2 } from '../support/http2-upstream.ts';

const certificates = makeCertificates();
let identity: { key: string; cert: string };
beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  identity = { key: certificates.read('server.key'), cert: certificates.read('server.crt') };
});
afterAll(() => certificates.remove());

/** Forwards to this origin over HTTP/2, and breaks the connection when the head has come: before or after it is written. */
async function startBreaking(
  origin: string,
  moment: 'before' | 'after',
): Promise<{ url: string; ends: () => string[] }> {
  const ends: string[] = [];
  const forward = (request: Http1Inbound, response: ServerResponse): void => {
    const session = connectHttp2(origin, { rejectUnauthorized: false });
    session.on('error', () => undefined);
    const breakIt = (): void => session.destroy(new Error('broken'));
    const owner: AttemptOwner = {
      mayStart: () => true,
      onInformation: () => undefined,
      onHead: (status) => {
        if (moment === 'before') breakIt();
        response.writeHead(status, ['X-Name', 'caf\xe9', 'Content-Length', '5']);
        attempt.forward(response);
        if (moment === 'after') breakIt();
      },
      onFailure: () => response.destroy(),
      onUnsendable: () => response.destroy(),
      onProgress: () => undefined,
      onEnd: () => ends.push('whole'),
      onBroken: () => {
        ends.push('broken');
        breakOff(response, request);
      },
      onOver: () => undefined,
    };
    const attempt = new Attempt(owner, null);
    const errand = new Errand(
      { origin, method: 'GET', path: '/', headers: ['host', 'x'], servername: '', body: null },
      attempt,
    );
    const tell = (send: Http2Send): void => {
      const error = send.takeError();
      if (error !== undefined) attempt.onResponseError(send, error);
    };
    new Http2Send(errand, {
      session,
      lastRead: undefined,
      error: undefined,
      onClosed: tell,
      onWritten: () => undefined,
    }).begin();
  };
  const server = createHttps({ ...identity, IncomingMessage: Http1Inbound }, (request: IncomingMessage, response) => {
    if (request instanceof Http1Inbound) forward(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, ends: () => ends };
}

test.each(['before', 'after'] as const)('a head %s whose writing the connection breaks is there', async (moment) => {
  const upstream = await startHttp2(identity, (stream) => stream.respond({ ':status': 200, 'content-length': '5' }));
  const { url, ends } = await startBreaking(upstream.url, moment);
  const socket = connectTls({ host: '127.0.0.1', port: Number(new URL(url).port), ca: certificates.read('ca.crt') });
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'close');
  expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\nX-Name: caf\xe9\r\n[^]*\r\n\r\n$/);
  expect(ends()).toEqual(['broken']);
});
