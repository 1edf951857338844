/** Over HTTP/2 to the upstream, large responses that are read fast do not delay those of others on the same connection. */
import { once } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { connect } from 'node:net';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

const CHUNK = Buffer.alloc(64 * 1024, 'x');
/** More streams than one connection's window has room for. */
const DOWNLOADS = 16;

/** Sends until the stream is closed. */
function sendEndlessly(stream: ServerHttp2Stream): void {
  while (!stream.destroyed && stream.write(CHUNK));
  if (!stream.destroyed) stream.once('drain', () => sendEndlessly(stream));
}

async function start() {
  const upstream = await startHttp2(identity, (stream, _nth, head) => {
    stream.respond({ ':status': 200 });
    if (head[':path'] === '/endless') sendEndlessly(stream);
    else stream.end('served');
  });
  const gate = await startTidegate(`
clients: {key: [ip], trustedProxies: [127.0.0.1]}
upstreams: {api: {url: "${upstream.url}", http2: true, connections: 1, tls: {ca: ${certificates.path('ca.crt')}}}}`);
  return { upstream, gate };
}

/** Reads a response at full speed. Resolves when some of it has arrived. */
async function download(gate: Tidegate, priority: string): Promise<void> {
  const { hostname, port } = new URL(gate.url);
  const socket = connect(Number(port), hostname).on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  socket.write(`GET /endless HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.2\r\n${priority}\r\n`);
  await once(socket, 'data');
  socket.resume();
}

test.each(['', 'Priority: u=0, i\r\n'])('serves others while a client downloads with %j', async (priority) => {
  const { gate, upstream } = await start();
  await Promise.all(Array.from({ length: DOWNLOADS }, () => download(gate, priority)));
  for (let i = 0; i < 5; i += 1) expect((await send(gate.url, `/${i}`)).body.toString()).toBe('served');
  expect(upstream.sessions()).toBe(1);
});

test('sends all requests with the same priority, whatever their clients ask for', async () => {
  const { gate, upstream } = await start();
  for (const headers of [[], ['Priority', 'u=0'], ['priority', 'u=7'], ['Priority', 'u=1', 'Priority', 'i']]) {
    expect((await send(gate.url, '/', { headers })).status).toBe(200);
  }
  expect(upstream.heads.map(({ priority }) => priority)).toEqual(['i', 'i', 'i', 'i']);
});
