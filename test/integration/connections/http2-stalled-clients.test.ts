/** Over HTTP/2 to the upstream, clients that do not send or do not read give up the connections that they have for themselves. */
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { makeCertificates } from '../../support/certificates.ts';
import { send } from '../../support/clients/send.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';
import { startHttp2 } from '../../support/upstreams/http2-upstream.ts';

const certificates = makeCertificates();
const identity = certificates.issueServer();
afterAll(() => certificates.remove());

/** Bodies of up to 64 KiB are kept, longer ones are streamed. */
const STREAMED = 100_000;
/** More than the socket buffers take of a response that is not read. */
const LARGE = Buffer.alloc(16 * 1024 * 1024, 'x');
/** Connections without other requests that there may be. */
const UNSHARED = 16;

/** Answers /large with more than any socket buffers, and all else shortly. */
async function start(mode = 'enforce') {
  const upstream = await startHttp2(
    identity,
    (stream, _nth, head) => {
      const answer = (): void => {
        if (stream.destroyed) return;
        stream.respond({ ':status': 200 });
        stream.end(head[':path'] === '/large' ? LARGE : 'served');
      };
      stream.resume().once('end', answer);
    },
    { maxSessionMemory: 100 },
  );
  const gate = await startTidegate(`
mode: ${mode}
clients: {key: [header:X-Client]}
upstreams: {api: {url: "${upstream.url}", http2: true, connections: 1, tls: {ca: ${certificates.path('ca.crt')}}}}`);
  expect((await upload(gate, 'calm')).status).toBe(200);
  expect((await send(gate.url, '/')).status).toBe(200);
  return { upstream, gate };
}

const upload = (gate: Tidegate, client: string, path = '/') =>
  send(gate.url, path, { method: 'POST', headers: ['X-Client', client], body: Buffer.alloc(STREAMED) });

/** Sends a request with a body, and reads nothing. @param length announced: of more than is sent, the rest never comes */
function stall(gate: Tidegate, path: string, length: number): Socket {
  const { hostname, port } = new URL(gate.url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  socket.write(`POST ${path} HTTP/1.1\r\nHost: h\r\nX-Client: stalls\r\nContent-Length: ${length}\r\n\r\n`);
  socket.write(Buffer.alloc(STREAMED));
  return socket;
}

test.each([
  { stalled: 'uploads', path: '/', length: 1_000_000 },
  { stalled: 'responses', path: '/large', length: STREAMED },
])('serves uploads beside any number of $stalled that stall', async ({ path, length }) => {
  const { gate, upstream } = await start();
  const before = upstream.heads.length;
  for (let i = 0; i < 2.5 * UNSHARED; i += 1) stall(gate, path, length);
  await eventually(
    () => upstream.heads.length,
    (count) => count >= before + UNSHARED,
  );
  for (let i = 0; i < 3; i += 1) {
    const since = performance.now();
    const answer = await upload(gate, 'calm');
    expect([answer.status, answer.body.toString()]).toEqual([200, 'served']);
    expect(performance.now() - since).toBeLessThan(5000);
  }
});

test('ends no exchange that stalls on a connection that others do not wait for', async () => {
  const { gate, upstream } = await start();
  const before = upstream.heads.length;
  const { hostname, port } = new URL(gate.url);
  const reader = connect(Number(port), hostname);
  onTestFinished(() => void reader.destroy());
  reader.write('GET /large HTTP/1.1\r\nHost: h\r\nX-Client: reads\r\n\r\n'); // shares a connection
  for (let i = 0; i < 2 * UNSHARED; i += 1) stall(gate, '/', 1_000_000);
  await eventually(
    () => upstream.heads.length,
    (count) => count > before + UNSHARED,
  );
  await sleep(1500);
  expect((await upload(gate, 'calm')).status).toBe(200);
  expect(gate.requests().filter(({ path }) => path === '/large')).toEqual([]);
  expect(await gate.metric('tidegate_slow_readers_total{upstream="api",cause="gave_way"}')).toBe(0);
});

test('ends no exchange in observe mode', async () => {
  const { gate, upstream } = await start('observe');
  const before = upstream.heads.length;
  for (let i = 0; i < 2 * UNSHARED; i += 1) stall(gate, '/', 1_000_000);
  await eventually(
    () => upstream.heads.length,
    (count) => count >= before + UNSHARED,
  );
  await sleep(1500);
  expect(upstream.heads).toHaveLength(before + UNSHARED);
});
