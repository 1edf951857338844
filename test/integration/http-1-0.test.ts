import { expect, test } from 'vitest';
import type { RawClient } from '../support/raw.ts';
import { openRaw, sendRaw, startRawUpstream } from '../support/raw.ts';
import { startTidegate } from '../support/tidegate.ts';

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

/** Asks twice on one connection; fails unless both are answered and it stays open. */
async function askTwice(client: RawClient, request: string): Promise<string> {
  client.write(request);
  await client.until(/hello$/);
  client.write(request);
  return client.until(/hello[^]*hello$/);
}

test('a client that does not ask to be kept is answered, and its connection closed', async () => {
  const { gate } = await startSaying(LENGTH);
  const answer = await sendRaw(gate.url, get());
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 5\r\n/);
  expect(answer).toMatch(/\r\nConnection: close\r\n/);
  expect(answer).toMatch(/\r\n\r\nhello$/);
});

test('one that asks to be kept is, and is told so', async () => {
  const { gate } = await startSaying(LENGTH);
  const client = await openRaw(gate.url);
  const answers = await askTwice(client, get('Host: x', 'Connection: keep-alive'));
  expect(answers.match(/\r\nConnection: keep-alive\r\n/g)).toHaveLength(2);
  expect(client.socket.readableEnded).toBe(false);
});

test.each([[[]], [['Connection: keep-alive']]])(
  'chunks are undone for it, and the end of the connection is that of the body (%s)',
  async (headers) => {
    const { gate } = await startSaying(CHUNKS);
    const answer = await sendRaw(gate.url, get(...headers));
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
    expect(answer).not.toMatch(/chunked|trailer|X-Sum|content-length/i);
    expect(answer).toMatch(/\r\n\r\nhello$/);
  },
);

test('HEAD keeps its connection, and says how long the body would be', async () => {
  const { gate } = await startSaying('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n');
  const client = await openRaw(gate.url);
  const head = 'HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n';
  client.write(head);
  await client.until(/\r\nContent-Length: 5\r\n[^]*\r\n\r\n$/);
  client.write(head);
  const answers = await client.until(/(?:HTTP\/1\.1 200 OK\r\nContent-Length: 5\r\n[^]*?\r\n\r\n){2}$/);
  expect(answers).not.toContain('hello');
});

test('its body goes on with its length; what it expects is not waited for', async () => {
  const { gate, upstream } = await startSaying(LENGTH);
  const post = 'POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody';
  expect(await sendRaw(gate.url, post)).toMatch(/^HTTP\/1\.1 200 /); // RFC 9110 §10.1.1: no 100 to HTTP/1.0
  expect(upstream.connections[0]?.received()).toMatch(/^POST \/ HTTP\/1\.1\r\n[^]*\r\ncontent-length: 4\r\n\r\nbody$/);
});

test('chunks from it are refused: who passed them on may have read another end into them', async () => {
  const { gate, upstream } = await startSaying(LENGTH);
  const post = 'POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n';
  expect(await sendRaw(gate.url, post)).toMatch(/^HTTP\/1\.1 400 [^]*chunks in HTTP\/1\.0/);
  expect(upstream.connections).toHaveLength(0);
});

test('answers of our own are for it too', async () => {
  const gate = await startTidegate('upstreams: {api: {url: "http://127.0.0.1:1", retry: {attempts: 1}}}');
  const answer = await sendRaw(gate.url, get());
  expect(answer).toMatch(/^HTTP\/1\.1 502 [^]*\r\nConnection: close\r\n[^]*"reason":"connect"/);
});
