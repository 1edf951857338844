import cluster from 'node:cluster';
import type { Worker } from 'node:cluster';
import { ConnectionHandoffs } from './connection-handoffs.ts';
import { WORKER_ARGUMENT } from './worker-argument.ts';

/** Returns a function that starts a worker process. */
export function createFork(): () => Worker {
  cluster.setupPrimary({ args: [WORKER_ARGUMENT], serialization: 'advanced' });
  const handoffs = new ConnectionHandoffs();
  return () => {
    const worker = cluster.fork();
    handoffs.watch(worker);
    return worker;
  };
}
