import { describe, expect, test } from 'vitest';
import { pause } from '../support/pause.ts';
import type { RawClient } from '../support/raw.ts';
import { openRaw, startRawUpstream } from '../support/raw.ts';
import type { Tidegate } from '../support/tidegate.ts';
import { eventually, startTidegate } from '../support/tidegate.ts';

const GET = 'GET /events HTTP/1.1\r\nHost: x\r\n\r\n';
const CONNECT = 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n';
const UPGRADE = 'GET /events HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const UPLOAD = 'POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n';

/** Says one thing, and then nothing for as long as it lives. Of uploads it takes nothing. */
const startQuiet = () =>
  startRawUpstream((socket, head) => {
    if (head.startsWith('POST')) socket.pause();
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 0\n\n');
  });

const leave = { 'breaks off': destroy, 'has said all': end };

function destroy({ socket }: RawClient): void {
  socket.destroy();
}

function end({ socket }: RawClient): void {
  socket.end();
}

/** Nothing of it is left, neither here nor at the upstream. */
async function expectGivenBack(
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
  // One that it does not read it sees to be closed when it writes.
  for (const { socket } of upstream.connections) socket.resume();
  await eventually(() => upstream.connections.every(({ socket }) => socket.closed), Boolean);
}

describe.each(Object.entries(leave))('a client that waits for events and %s is noticed at once', (_, go) => {
  test.each([
    ['with CONNECT behind it', `${GET}${CONNECT}`],
    ['with CONNECT and more behind it', `${GET}${CONNECT}${'x'.repeat(200_000)}`],
    ['with nonsense behind it', `${GET}NONSENSE\r\n\r\nmore`],
    ['with an upgrade behind it', `${GET}${UPGRADE}more`],
    ['that came instead of an upgrade, as it goes on talking', `${UPGRADE}more`],
    ['that came instead of an upgrade, as it talks much', `${UPGRADE}${'x'.repeat(200_000)}`],
  ])('%s', async (__, bytes) => {
    const upstream = await startQuiet();
    const gate = await startTidegate(`upstreams: {api: {url: "${upstream.url}"}}`);
    const client = await openRaw(gate.url);
    client.write(bytes);
    await client.until('data: 0');
    await pause(50); // what follows has been read too
    go(client);
    await expectGivenBack(gate, upstream);
  });
});

describe('a client that waits for events on a connection that cannot be read', () => {
  const yaml = (url: string) => `upstreams: {api: {url: "${url}", streamIdle: 300ms}}`;

  test.each([
    ['for the requests that wait behind', GET + GET.repeat(20)],
    ['for an upload that the upstream does not take', UPLOAD + 'x'.repeat(8_000_000)],
    ['for an upload that waits behind', GET + UPLOAD + 'x'.repeat(300_000)],
  ])('%s: is held to have left after as long as a stream may pause', async (_, bytes) => {
    const upstream = await startQuiet();
    const gate = await startTidegate(yaml(upstream.url));
    const client = await openRaw(gate.url);
    client.write(bytes);
    await client.until('data: 0');
    client.socket.destroy();
    await expectGivenBack(gate, upstream);
  });

  test('is not, while it is told something', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n');
      let said = 0;
      const saying = setInterval(() => socket.write(`data: ${said++}\n\n`), 50);
      socket.on('close', () => clearInterval(saying));
    });
    const gate = await startTidegate(yaml(upstream.url));
    const client = await openRaw(gate.url);
    client.write(GET + GET.repeat(20));
    await client.until('data: 30');
    client.socket.destroy();
    await expectGivenBack(gate, upstream);
  });

  test('and one whose connection is read may hear nothing for as long as it likes', async () => {
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
