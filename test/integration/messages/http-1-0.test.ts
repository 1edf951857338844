import { expect, test } from 'vitest';
import type { RawClient } from '../../support/clients/raw-socket.ts';
import { openRaw, sendRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const LENGTH = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';
const CHUNKS =
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n';

async function startSaying(answer: string) {
  const upstream = await startRawUpstream((socket) => {
    socket.write(answer);
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  return { upstream, gate };
}

const get = (...headers: string[]) => ['GET / HTTP/1.0', ...headers, '', ''].join('\r\n');

/** Sends the request twice on one connection; fails unless both are answered and it stays open. */
async function askTwice(client: RawClient, request: string): Promise<string> {
  client.write(request);
  await client.until(/hello$/);
  client.write(request);
  return client.until(/hello[^]*hello$/);
}

test('answers a client without keep-alive, and closes its connection', async () => {
  const { gate } = await startSaying(LENGTH);
  const answer = await sendRaw(gate.url, get());
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 5\r\n/);
  expect(answer).toMatch(/\r\nConnection: close\r\n/);
  expect(answer).toMatch(/\r\n\r\nhello$/);
});

test('keeps the connection of a client that asks for it, and announces that', async () => {
  const { gate } = await startSaying(LENGTH);
  const client = await openRaw(gate.url);
  const answers = await askTwice(client, get('Host: x', 'Connection: keep-alive'));
  expect(answers.match(/\r\nConnection: keep-alive\r\n/g)).toHaveLength(2);
  expect(client.socket.readableEnded).toBe(false);
});

test.each([[[]], [['Connection: keep-alive']]])(
  'decodes chunks for it, and ends the body with the connection (%s)',
  async (headers) => {
    const { gate } = await startSaying(CHUNKS);
    const answer = await sendRaw(gate.url, get(...headers));
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
    expect(answer).not.toMatch(/chunked|trailer|X-Sum|content-length/i);
    expect(answer).toMatch(/\r\n\r\nhello$/);
  },
);

test('keeps the connection for HEAD, and sends the length of the body', async () => {
  const { gate } = await startSaying('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n');
  const client = await openRaw(gate.url);
  const head = 'HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n';
  client.write(head);
  await client.until(/\r\nContent-Length: 5\r\n[^]*\r\n\r\n$/);
  client.write(head);
  const answers = await client.until(/(?:HTTP\/1\.1 200 OK\r\nContent-Length: 5\r\n[^]*?\r\n\r\n){2}$/);
  expect(answers).not.toContain('hello');
});

test('forwards its body with its length, and ignores its expectation', async () => {
  const { gate, upstream } = await startSaying(LENGTH);
  const post = 'POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody';
  expect(await sendRaw(gate.url, post)).toMatch(/^HTTP\/1\.1 200 /); // RFC 9110 §10.1.1: no 100 to HTTP/1.0
  expect(upstream.connections[0]?.received()).toMatch(/^POST \/ HTTP\/1\.1\r\n[^]*\r\ncontent-length: 4\r\n\r\nbody$/);
});

test('rejects its chunked bodies: an earlier hop may end them elsewhere', async () => {
  const { gate, upstream } = await startSaying(LENGTH);
  const post = 'POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n';
  expect(await sendRaw(gate.url, post)).toMatch(/^HTTP\/1\.1 400 [^]*a chunked body in HTTP\/1\.0/);
  expect(upstream.connections).toHaveLength(0);
});

test('sends proxy errors that it can read', async () => {
  const gate = await startTidegate('upstreams: {api: {url: "http://127.0.0.1:1", retry: {attempts: 1}}}');
  const answer = await sendRaw(gate.url, get());
  expect(answer).toMatch(/^HTTP\/1\.1 502 [^]*\r\nConnection: close\r\n[^]*"reason":"connect"/);
});
