import { describe, expect, test } from 'vitest';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { openRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const SIZE = 8 * 1024 * 1024;

async function startHeld(more = '') {
  const upstream = await startHttpUpstream((_n, response) => response.writeHead(429, ['Retry-After', '30']).end());
  const gate = await startTidegate(`${more}upstreams: {api: {url: "${upstream.url}"}}`);
  await send(gate.url, '/');
  return { upstream, gate };
}

test('lets a client read the rejection of its unfinished upload', async () => {
  const { upstream, gate } = await startHeld();
  for (let i = 0; i < 10; i += 1) {
    const answer = await send(gate.url, '/', { method: 'POST', body: Buffer.alloc(SIZE), chunked: i % 2 === 1 });
    expect(answer.status).toBe(429);
    expect(answer.json()).toMatchObject({ reason: 'held' });
    expect(answer.header('connection')).toBe('close');
  }
  expect(upstream.hits).toHaveLength(1);
});

test('lets a client read it that reads only after sending everything', async () => {
  const { gate } = await startHeld();
  const client = await openRaw(gate.url);
  client.socket.pause();
  client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${SIZE}\r\n\r\n`);
  const sent = new Promise<Error | null | undefined>((resolve) => {
    client.socket.write(Buffer.alloc(SIZE), resolve);
  });
  expect(await sent).toBeFalsy();
  client.socket.resume();
  expect(await client.ended()).toMatch(/^HTTP\/1\.1 429 /);
});

describe('an upstream that responds before it has read an upload', () => {
  const refusal = 'HTTP/1.1 413 Payload Too Large\r\nContent-Length: 3\r\n';

  test.each([
    ['and closes', `${refusal}Connection: close\r\n\r\nno!`],
    ['and keeps its connection', `${refusal}\r\nno!`],
    ['in chunks', 'HTTP/1.1 413 Payload Too Large\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nno!\r\n0\r\n\r\n'],
  ])('%s, reaches its client', async (_, bytes) => {
    const upstream = await startRawUpstream((socket) => {
      if (bytes.includes('close')) socket.end(bytes);
      else socket.write(bytes);
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const answer = await send(gate.url, '/', { method: 'POST', body: Buffer.alloc(SIZE) });
    expect(answer.status).toBe(413);
    expect(answer.body.toString()).toBe('no!');

    const client = await openRaw(gate.url);
    client.socket.pause();
    client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${SIZE}\r\n\r\n`);
    const sent = new Promise<Error | null | undefined>((resolve) => {
      client.socket.write(Buffer.alloc(SIZE), resolve);
    });
    expect(await sent).toBeFalsy();
    client.socket.resume();
    const text = await client.ended();
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(text).toContain('no!');
  });
});

test('does the same for requests without a route, loops and invalid targets', async () => {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}"}}
routes: [{path: /v1, upstream: api}]
`);
  for (const target of ['/elsewhere', '/v1/../x']) {
    const answer = await send(gate.url, target, { method: 'POST', body: Buffer.alloc(SIZE) });
    expect([400, 404]).toContain(answer.status);
  }
});

test('stops reading a rejected upload eventually', async () => {
  const { gate } = await startHeld();
  const client = await openRaw(gate.url);
  client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  client.write(`${(70_000).toString(16)}\r\n${'x'.repeat(70_000)}\r\n`);
  await client.until('HTTP/1.1 429 ');
  const dripping = setInterval(() => client.write('1\r\nx\r\n'), 50);
  expect(await client.ended(10_000)).toMatch(/^HTTP\/1\.1 429 /);
  clearInterval(dripping);
  await eventually(
    () => gate.metric('tidegate_requests_in_flight{route="/"}'),
    (count) => count === 0,
  );
});
