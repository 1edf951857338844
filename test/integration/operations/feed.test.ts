/** Slow viewers: real sockets, with larger and more frequent frames than in operation. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { EventFrame } from '../../../src/admin/api/admin-operations.ts';
import { EventBroadcaster } from '../../../src/admin/event-broadcaster.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

async function open(frame: () => Promise<EventFrame>) {
  const feed = new EventBroadcaster({ watch: () => ({ nextFrame: frame }) }, 5);
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

test('disconnects a viewer that does not read after a bounded buffer, and sends all to the others', async () => {
  let frames = 0;
  const text = 'x'.repeat(200_000);
  const { server, join } = await open(() => {
    frames += 1;
    return Promise.resolve({ timelineEvents: [{ id: String(frames), at: '', kind: 'cut', upstream: null, text }] });
  });
  let received = 0;
  join().on('data', (chunk: Buffer) => (received += chunk.length));
  join().pause();
  const connections = (): Promise<number> =>
    new Promise((resolve) => void server.getConnections((_error, count) => resolve(count)));
  await eventually(connections, (count) => count === 2);
  await eventually(connections, (count) => count === 1);
  const [before, made] = [received, frames];
  await eventually(
    () => frames,
    (count) => count > made + 20,
  );
  expect(received - before).toBeGreaterThan(10 * text.length);
});

test('collects nothing without viewers, and resumes with the next one', async () => {
  let frames = 0;
  const { join } = await open(() => {
    frames += 1;
    return Promise.resolve({ timelineEvents: [] });
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

test('skips a frame that fails, and sends the next one', async () => {
  let frames = 0;
  const { join } = await open(() => {
    frames += 1;
    if (frames % 2 === 1) return Promise.reject(new Error('no idea'));
    return Promise.resolve({
      timelineEvents: [{ id: String(frames), at: '', kind: 'cut', upstream: null, text: 'well' }],
    });
  });
  let text = '';
  join().on('data', (chunk: Buffer) => (text += chunk.toString()));
  await eventually(
    () => text.split('event: timeline').length,
    (count) => count > 3,
  );
  expect(text).not.toContain('no idea');
});
