/** A response counted as forwarded has been sent, even if the upstream connection breaks in the same tick. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { AttemptListener } from '../../../src/http/upstream/attempt-listener.ts';
import { UpstreamAttempt } from '../../../src/http/upstream/upstream-attempt.ts';
import { Http2UpstreamStream } from '../../../src/http/upstream/http2/http2-upstream-stream.ts';
import { Http1ServerRequest } from '../../../src/http/server/http1-server-request.ts';
import { abortResponse } from '../../../src/http/server/end-response.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
let identity: { key: string; cert: string };
beforeAll(() => {
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  identity = { key: certificates.read('server.key'), cert: certificates.read('server.crt') };
});
afterAll(() => certificates.remove());

/** Forwards to this origin over HTTP/2, and breaks the connection before or after the head is written. */
async function startBreaking(
  origin: string,
  moment: 'before' | 'after',
): Promise<{ url: string; ends: () => string[] }> {
  const ends: string[] = [];
  const forward = (request: Http1ServerRequest, response: ServerResponse): void => {
    const session = connectHttp2(origin, { rejectUnauthorized: false });
    session.on('error', () => undefined);
    const breakIt = (): void => session.destroy(new Error('broken'));
    const owner: AttemptListener = {
      onInterimResponse: () => undefined,
      onHead: (status) => {
        if (moment === 'before') breakIt();
        response.writeHead(status, ['X-Name', 'caf\xe9', 'Content-Length', '5']);
        attempt.forward(response);
        if (moment === 'after') breakIt();
      },
      onFailure: () => response.destroy(),
      onProgress: () => undefined,
      onBodyEnd: () => ends.push('whole'),
      onBodyAborted: () => {
        ends.push('broken');
        abortResponse(response, request);
      },
      onConnectionReleased: () => undefined,
    };
    const sent = { origin, method: 'GET' as const, path: '/', headers: ['host', 'x'], servername: '', body: null };
    const attempt = new UpstreamAttempt(owner, sent, performance);
    const onStreamClosed = (send: Http2UpstreamStream): void => {
      const error = send.takeError();
      if (error !== undefined) attempt.onResponseError(send, error);
    };
    new Http2UpstreamStream(attempt, {
      session,
      ...{ lastStreamId: undefined, errorCode: undefined, error: undefined },
      onResponse: () => undefined,
      onClosed: onStreamClosed,
      onUploadProgress: () => undefined,
    }).start();
  };
  const server = createHttps(
    { ...identity, IncomingMessage: Http1ServerRequest },
    (request: IncomingMessage, response) => {
      if (request instanceof Http1ServerRequest) forward(request, response);
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, ends: () => ends };
}

test.each(['before', 'after'] as const)(
  'delivers a head when the connection breaks %s it is written',
  async (moment) => {
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
  },
);
