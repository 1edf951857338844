import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { lingeringClose } from '../../../src/http/server/end-response.ts';

/** Its other side never ends by itself. */
function openConnection(): Duplex {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  return new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
}

test('a connection whose client does not end its side is closed after three seconds', async () => {
  const socket = openConnection();
  lingeringClose(socket);
  await once(socket, 'finish');
  vi.advanceTimersByTime(2999);
  expect([socket.destroyed, vi.getTimerCount()]).toEqual([false, 1]);
  vi.advanceTimersByTime(1);
  expect([socket.destroyed, vi.getTimerCount()]).toEqual([true, 0]);
});

test('a connection that closes before needs no timer any more', async () => {
  const socket = openConnection();
  lingeringClose(socket);
  socket.destroy();
  await once(socket, 'close');
  expect(vi.getTimerCount()).toBe(0);
});

test('a connection that is closed needs no timer', async () => {
  const socket = openConnection();
  socket.destroy();
  // Node ends the last response in a listener of this event.
  socket.once('close', () => lingeringClose(socket));
  await once(socket, 'close');
  expect(vi.getTimerCount()).toBe(0);
});
