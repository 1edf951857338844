/** Connections that are being passed to workers are kept until the workers acknowledge them. */
import type { ChildProcess } from 'node:child_process';
import type { Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ConnectionHandoffs } from '../../../src/process/cluster/connection-handoffs.ts';

const KEY = '127.0.0.1:8080:4::0';

/** A worker as node:cluster shows it to a primary, without a process. */
function startWorker(handoffs: ConnectionHandoffs, id: number) {
  const sent: unknown[] = [];
  const child = Object.assign(new EventEmitter(), {
    connected: true,
    send: (message: unknown) => sent.push(message) > 0,
  });
  handoffs.watch({ id, process: child as unknown as ChildProcess } as Worker);
  const send = (message: object, handle?: unknown): void =>
    void (child.send as (...args: readonly unknown[]) => unknown)({ cmd: 'NODE_CLUSTER', ...message }, handle);
  const receive = (message: object): void => void child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ...message });
  const received: unknown[] = [];
  child.on('internalMessage', (message) => received.push(message));
  return {
    sent,
    received,
    receive,
    listen: () => send({ ack: 1, key: KEY, errno: null }),
    /** @returns whether the connection was closed */
    passConnection: (seq: number): (() => boolean) => {
      let isClosed = false;
      send({ act: 'newconn', key: KEY, seq }, { close: () => (isClosed = true) });
      return () => isClosed;
    },
    end: async (): Promise<boolean> => {
      child.connected = false;
      let isDisconnected = false;
      child.once('disconnect', () => (isDisconnected = true));
      child.emit('exit');
      child.emit('close');
      await turn();
      return isDisconnected;
    },
  };
}

test('drops a connection once a worker has accepted it', () => {
  const handoffs = new ConnectionHandoffs();
  const worker = startWorker(handoffs, 1);
  worker.listen();
  const isClosed = worker.passConnection(7);
  expect(handoffs.pending).toBe(1);
  worker.receive({ ack: 7, accepted: true });
  expect([handoffs.pending, isClosed(), worker.sent.length]).toEqual([0, false, 2]);
});

test('returns a connection to Node as refused when its worker ends, once that worker is no longer in rotation', async () => {
  const handoffs = new ConnectionHandoffs();
  const [worker, other] = [startWorker(handoffs, 1), startWorker(handoffs, 2)];
  worker.listen();
  other.listen();
  const isClosed = worker.passConnection(7);
  expect(await worker.end()).toBe(true);
  expect(worker.received).toEqual([{ cmd: 'NODE_CLUSTER', ack: 7, accepted: false }]);
  expect([handoffs.pending, isClosed()]).toEqual([0, false]);
});

test('closes a connection when its worker ends and no other worker listens', async () => {
  const handoffs = new ConnectionHandoffs();
  const [worker, other] = [startWorker(handoffs, 1), startWorker(handoffs, 2)];
  worker.listen();
  other.listen();
  other.receive({ act: 'close', key: KEY });
  const isClosed = worker.passConnection(7);
  await worker.end();
  expect([handoffs.pending, isClosed(), worker.received]).toEqual([0, true, []]);
  // A worker that listens later opens another socket.
  const later = startWorker(handoffs, 3);
  later.listen();
  const isLaterClosed = later.passConnection(8);
  await other.end();
  expect([handoffs.pending, isLaterClosed()]).toEqual([1, false]);
});

test('closes a connection that the last worker refuses because it drains', () => {
  const handoffs = new ConnectionHandoffs();
  const worker = startWorker(handoffs, 1);
  worker.listen();
  const isClosed = worker.passConnection(7);
  worker.receive({ act: 'close', key: KEY });
  worker.receive({ ack: 7, accepted: false });
  expect([handoffs.pending, isClosed()]).toEqual([0, true]);
});
