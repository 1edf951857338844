import { expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { startRawUpstream } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import { startTidegate } from '../../support/proxy/tidegate.ts';

const retry = 'connections: 1, retry: {backOff: {strategy: fixed, baseInterval: 5ms}}';

test.each([
  ['of 300 kB', 300_000],
  ['of 1 kB', 1000],
  ['without a body', 0],
])('frees the only connection after a discarded response %s', async (_, length) => {
  const upstream = await startHttpUpstream((n, response) => {
    if (n % 2 === 1) response.writeHead(503).end(Buffer.alloc(length, 'x'));
    else response.writeHead(200).end('fine');
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${retry}}}`);
  for (let i = 1; i <= 3; i += 1) {
    const answer = await send(gate.url, '/');
    expect(answer.status).toBe(200);
    expect(answer.body.toString()).toBe('fine');
    expect(upstream.hits).toHaveLength(2 * i);
  }
});

test('reads a short discarded response to its end, and retries on the same connection', async () => {
  const upstream = await startHttpUpstream((n, response) => response.writeHead(n === 1 ? 503 : 200).end('short'));
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${retry}}}`);
  expect((await send(gate.url, '/')).status).toBe(200);
  expect(upstream.connections()).toBe(1);
});

test('cuts a long discarded response even if it arrives fast, and retries on another connection', async () => {
  const upstream = await startHttpUpstream((n, response) => {
    if (n === 1) response.writeHead(503).end(Buffer.alloc(1_000_000));
    else response.end('fine');
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${retry}}}`);
  expect((await send(gate.url, '/')).body.toString()).toBe('fine');
  expect(upstream.connections()).toBe(2);
});

test('cuts an endless discarded response, and retries', async () => {
  const upstream = await startRawUpstream((socket, _head, connection) => {
    if (connection > 1) return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine');
    socket.write('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100000\r\n\r\nand then nothing');
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}", ${retry}}}`);
  const answer = await send(gate.url, '/');
  expect(answer.body.toString()).toBe('fine');
  expect(upstream.connections[0]?.socket.destroyed).toBe(true);
});

test('ends a discarded response during its retry without disturbing it', async () => {
  const upstream = await startHttpUpstream((n, response) => {
    if (n === 1) {
      response.writeHead(503).write('a little');
      void pause(200).then(() => response.end(', and the rest'));
    } else if (n === 2) {
      void pause(400).then(() => response.end('fine'));
    } else {
      response.end('later');
    }
  });
  const gate = await startTidegate(
    `upstreams: {api: {url: "${upstream.url}", retry: {backOff: {strategy: fixed, baseInterval: 5ms}}}}`,
  );
  const answer = await send(gate.url, '/', { method: 'POST', headers: ['Idempotency-Key', 'k'], body: 'x' });
  expect([answer.status, answer.body.toString(), upstream.hits.length]).toEqual([200, 'fine', 2]);
  // Both connections are reused.
  expect((await send(gate.url, '/')).body.toString()).toBe('later');
  expect(upstream.connections()).toBe(2);
});
