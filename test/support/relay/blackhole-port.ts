import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

/** Accept queue of a socket that never accepts; Linux queues one connection more than this. */
const BACKLOG = 1;
const ATTEMPTS = 50;
const FULL_AFTER = 100;

/** A program that listens and then blocks forever. */
const SLEEPER = `
const { createServer } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const server = createServer();
const listen = () => server.listen({ host: '127.0.0.1', port: workerData.port, backlog: ${BACKLOG} });
let attempts = 0;
server.on('error', (error) => {
  if ((attempts += 1) === ${ATTEMPTS}) throw error;
  setTimeout(listen, 20);
});
server.on('listening', () => {
  parentPort.postMessage('listening');
  setImmediate(() => Atomics.wait(new Int32Array(workerData.lock), 0, 0));
});
listen();
`;

/**
 * Opens a port that neither accepts nor refuses connections: the kernel drops SYNs because the accept queue is full.
 * Resolves to a function that closes it.
 */
export async function blackholePort(port: number): Promise<() => Promise<void>> {
  const lock = new SharedArrayBuffer(4);
  const worker = new Worker(SLEEPER, { eval: true, workerData: { port, lock } });
  await once(worker, 'message');
  const fillers: Socket[] = [];
  for (let i = 0; i <= BACKLOG; i += 1) {
    const filler = connect({ host: '127.0.0.1', port });
    filler.on('error', () => undefined);
    fillers.push(filler);
    // Another connection may have taken the last place, which also fills the queue.
    await Promise.race([once(filler, 'connect'), sleep(FULL_AFTER)]);
  }
  return async () => {
    for (const filler of fillers) filler.destroy();
    Atomics.store(new Int32Array(lock), 0, 1);
    Atomics.notify(new Int32Array(lock), 0);
    await worker.terminate();
  };
}
