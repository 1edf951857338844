import type { OutgoingHttpHeaders } from 'node:http2';
import { expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { fetchExplanation } from '../../support/admin/explanations.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { sendHttp2, openHttp2 } from '../../support/clients/http2-client.ts';
import { openRaw } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { startWebSocketUpstream } from '../../support/upstreams/websocket-upstream.ts';

/** The id of a response read from a socket. */
function idIn(text: string): string {
  return /^tidegate-request-id: (\S+)\r$/im.exec(text)?.[1] ?? '';
}

/** Expects that each id is unique, and that its explanation has the status of the response. */
async function expectExplanations(
  gate: Tidegate,
  received: readonly (readonly [id: string | undefined, status: number])[],
) {
  expect(new Set(received.map(([id]) => id)).size).toBe(received.length);
  for (const [id, status] of received) expect((await fetchExplanation(gate, id)).status).toBe(status);
}

test('gives every response over HTTP/1.1 an id that finds its explanation', async () => {
  const upstream = await startHttpUpstream((_n, response) =>
    response.writeHead(200, ['Tidegate-Request-Id', 'theirs']).end(),
  );
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", rateLimit: {initialRate: 1/s, maxRate: 1/s}, queue: {maxWait: 0}}}
routes: [{path: /v1, upstream: api}]
`);
  const answers = [await send(gate.url, '/v1'), await send(gate.url, '/v1'), await send(gate.url, '/v2')];
  expect(answers.map(({ status }) => status)).toEqual([200, 429, 404]);
  const raw = await openRaw(gate.url);
  raw.write('NONSENSE\r\n\r\n');
  const text = await raw.until('\r\n\r\n');
  await expectExplanations(gate, [
    ...answers.map((answer) => [answer.header('tidegate-request-id'), answer.status] as const),
    [idIn(text), 400],
  ]);
});

test('gives every response over HTTP/2 such an id', async () => {
  const certificates = makeCertificates();
  onTestFinished(() => certificates.remove());
  certificates.issue('server', '-addext', 'subjectAltName=IP:127.0.0.1');
  const { path, read } = certificates;
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`
listen: {address: "127.0.0.1:0", tls: {cert: ${path('server.crt')}, key: ${path('server.key')}}, http2: true}
upstreams: {api: {url: "${upstream.url}"}}
routes: [{path: /v1, upstream: api}]
`);
  const session = await openHttp2(gate.url, read('ca.crt'));
  const id = (headers: OutgoingHttpHeaders) => String(headers['tidegate-request-id']);
  const answers = [await sendHttp2(session, '/v1'), await sendHttp2(session, '/v2')];
  await expectExplanations(
    gate,
    answers.map(({ headers, status }) => [id(headers), status] as const),
  );
});

test('gives the response to an upgrade such an id, accepted or not', async () => {
  const upstream = await startWebSocketUpstream((_request, socket, nth) => {
    if (nth > 1) socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    return nth > 1;
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const received: [string, number][] = [];
  for (const status of [101, 403]) {
    const raw = await openRaw(gate.url);
    raw.write(
      'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    const text = await raw.until('\r\n\r\n');
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    received.push([idIn(text), status]);
    raw.socket.destroy();
  }
  await expectExplanations(gate, received);
});
