/** A body without a length ends with its connection: only a reset shows that it was truncated. */
import { describe, expect, test } from 'vitest';
import { openRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import { send } from '../../support/clients/send.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

describe('a response whose body ends with its connection', () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n';

  test('is truncated for the client when the upstream resets it', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write(`${head}the first half`, () => setTimeout(() => socket.resetAndDestroy(), 50));
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await expect(send(gate.url, '/')).rejects.toThrow();
    const lines = await eventually(gate.requests, ({ length }) => length === 1);
    expect(lines).toMatchObject([{ status: 200, cut: true, level: 'warn', cause: 'ECONNRESET' }]);
  });

  test('is complete when the upstream closes it', async () => {
    const upstream = await startRawUpstream((socket) => socket.end(`${head}all of it`));
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    expect((await send(gate.url, '/')).body.toString()).toBe('all of it');
  });
});

test('resets an HTTP/1.0 connection for a truncated body, because a close would mark it as complete', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nthe firs\r\n');
    setTimeout(() => socket.destroy(), 50);
  });
  const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
  const client = await openRaw(gate.url);
  const errors: unknown[] = [];
  client.socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code));
  client.write('GET / HTTP/1.0\r\n\r\n');
  expect(await client.ended()).toContain('the firs');
  await eventually(
    () => errors,
    (seen) => seen.length > 0,
  );
  expect(errors).toEqual(['ECONNRESET']);
});
