/** A body without a length is over when its connection ends: a reset is all that tells that it was cut. */
import { describe, expect, test } from 'vitest';
import { openRaw, startRawUpstream } from '../support/raw.ts';
import { send } from '../support/send.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

describe('an answer whose body ends with its connection', () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n';

  test('is cut for the client too when the upstream resets it', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write(`${head}the first half`, () => setTimeout(() => socket.resetAndDestroy(), 50));
    });
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    await expect(send(gate.url, '/')).rejects.toThrow();
    const lines = await eventually(gate.requests, ({ length }) => length === 1);
    expect(lines).toMatchObject([{ status: 200, cut: true, level: 'warn' }]);
  });

  test('is whole when the upstream closes it', async () => {
    const upstream = await startRawUpstream((socket) => socket.end(`${head}all of it`));
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    expect((await send(gate.url, '/')).body.toString()).toBe('all of it');
  });
});

test('a client of HTTP/1.0, to whom the end of the connection is the end of the body, sees a cut as a reset', async () => {
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
