import { describe, expect, test } from 'vitest';
import { pause } from '../../support/pause.ts';
import type { RawClient } from '../../support/clients/raw-socket.ts';
import { openRaw, startRawUpstream } from '../../support/clients/raw-socket.ts';
import type { Tidegate } from '../../support/proxy/tidegate.ts';
import { eventually, startTidegate } from '../../support/proxy/tidegate.ts';

const GET = 'GET /events HTTP/1.1\r\nHost: x\r\n\r\n';
const CONNECT = 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n';
const UPGRADE = 'GET /events HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const UPLOAD = 'POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n';

/** Sends one event, then nothing. Reads no uploads. */
const startQuiet = () =>
  startRawUpstream((socket, head) => {
    if (head.startsWith('POST')) socket.pause();
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 0\n\n');
  });

const leave = { 'resets its connection': destroy, 'closes its sending side': end };

function destroy({ socket }: RawClient): void {
  socket.destroy();
}

function end({ socket }: RawClient): void {
  socket.end();
}

/** Expects that neither the proxy nor the upstream holds anything of the request. */
async function expectReleased(
  gate: Tidegate,
  upstream: Awaited<ReturnType<typeof startQuiet>>,
  within?: number,
): Promise<void> {
  await eventually(
    () => gate.metric('tidegate_requests_in_flight{route="/"}'),
    (count) => count === 0,
    within,
  );
  for (const bound of ['connections', 'requests']) {
    await eventually(
      () => gate.metric(`tidegate_bound_used_ratio{bound="${bound}"}`),
      (used) => used === 0,
    );
  }
  // A socket that is not read notices a close only when it writes.
  for (const { socket } of upstream.connections) socket.resume();
  await eventually(() => upstream.connections.every(({ socket }) => socket.closed), Boolean);
}

describe.each(Object.entries(leave))('detects at once when a client that waits for events %s', (_, go) => {
  test.each([
    ['with CONNECT behind it', `${GET}${CONNECT}`],
    ['with CONNECT and more behind it', `${GET}${CONNECT}${'x'.repeat(200_000)}`],
    ['with malformed data behind it', `${GET}NONSENSE\r\n\r\nmore`],
    ['with an upgrade behind it', `${GET}${UPGRADE}more`],
    ['after a declined upgrade, with more data following', `${UPGRADE}more`],
    ['after a declined upgrade, with much data', `${UPGRADE}${'x'.repeat(200_000)}`],
  ])('%s', async (__, bytes) => {
    const upstream = await startQuiet();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write(bytes);
    await client.until('data: 0');
    await pause(50); // what follows has been read too
    go(client);
    await expectReleased(gate, upstream);
  });
});

describe('a client that waits for events on a connection that is not read', () => {
  const yaml = (url: string, streamIdle = '300ms') => `upstreams: {api: {url: "${url}", streamIdle: ${streamIdle}}}`;

  test.each([
    ['because requests wait behind it', GET + GET.repeat(20)],
    ['because the upstream takes none of its upload', UPLOAD + 'x'.repeat(8_000_000)],
    ['because an upload waits behind it', GET + UPLOAD + 'x'.repeat(300_000)],
  ])('%s: counts as disconnected after the stream idle timeout', async (_, bytes) => {
    const upstream = await startQuiet();
    const gate = await startTidegate(yaml(upstream.url));
    const client = await openRaw(gate.url);
    client.write(bytes);
    await client.until('data: 0');
    client.socket.destroy();
    await expectReleased(gate, upstream);
  });

  test('does not count as disconnected while events are sent', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n');
      let said = 0;
      const saying = setInterval(() => socket.write(`data: ${said++}\n\n`), 50);
      socket.on('close', () => clearInterval(saying));
    });
    const gate = await startTidegate(yaml(upstream.url, '2s')); // a busy machine may send none for a second
    const client = await openRaw(gate.url);
    client.write(GET + GET.repeat(20));
    await client.until('data: 60'); // after three seconds
    client.socket.destroy();
    await expectReleased(gate, upstream);
  });

  test('may stay silent for any time where its connection is read', async () => {
    const upstream = await startQuiet();
    const gate = await startTidegate(yaml(upstream.url));
    const client = await openRaw(gate.url);
    client.write(GET + GET.repeat(3));
    await client.until('data: 0');
    await pause(1200);
    expect(client.socket.closed).toBe(false);
    upstream.connections[0]?.socket.write('data: still there\n\n');
    await client.until('still there');
  });
});
