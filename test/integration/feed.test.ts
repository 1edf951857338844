/** Who watches slowly: real sockets, and frames that are larger and more frequent than they are. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { Frame } from '../../src/admin/api/admin-operations.ts';
import { Feed } from '../../src/admin/event-broadcaster.ts';
import { eventually } from '../support/tidegate.ts';

async function open(frame: () => Promise<Frame>) {
  const feed = new Feed({ watch: () => ({ frame }) }, 5);
  const server = createServer((_request, response) => feed.open(response, {})).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const join = () => {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    return socket;
  };
  return { server, join };
}

test('one that does not read is let go, with no more kept for it than a bound, and the others miss nothing', async () => {
  let frames = 0;
  const text = 'x'.repeat(200_000);
  const { server, join } = await open(() => {
    frames += 1;
    return Promise.resolve({ moments: [{ id: String(frames), at: '', kind: 'cut', upstream: null, text }] });
  });
  let heard = 0;
  join().on('data', (chunk: Buffer) => (heard += chunk.length));
  join().pause();
  const connections = (): Promise<number> =>
    new Promise((resolve) => void server.getConnections((_error, count) => resolve(count)));
  await eventually(connections, (count) => count === 2);
  await eventually(connections, (count) => count === 1, 20_000);
  const [before, made] = [heard, frames];
  await eventually(
    () => frames,
    (count) => count > made + 20,
  );
  expect(heard - before).toBeGreaterThan(10 * text.length);
}, 30_000);

test('nothing is asked for when nobody watches, and again when somebody does', async () => {
  let frames = 0;
  const { join } = await open(() => {
    frames += 1;
    return Promise.resolve({ moments: [] });
  });
  expect(frames).toBe(0);
  const viewer = join();
  await eventually(
    () => frames,
    (count) => count > 3,
  );
  viewer.destroy();
  let last = -1;
  await eventually(async () => {
    const isStill = last === frames;
    last = frames;
    await new Promise((resolve) => void setTimeout(resolve, 100));
    return isStill && last === frames;
  }, Boolean);
  join();
  await eventually(
    () => frames,
    (count) => count > last + 3,
  );
});

test('a frame that fails is left out, and the next is told', async () => {
  let frames = 0;
  const { join } = await open(() => {
    frames += 1;
    if (frames % 2 === 1) return Promise.reject(new Error('no idea'));
    return Promise.resolve({ moments: [{ id: String(frames), at: '', kind: 'cut', upstream: null, text: 'well' }] });
  });
  let text = '';
  join().on('data', (chunk: Buffer) => (text += chunk.toString()));
  await eventually(
    () => text.split('event: timeline').length,
    (count) => count > 3,
  );
  expect(text).not.toContain('no idea');
});
