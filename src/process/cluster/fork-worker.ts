import cluster from 'node:cluster';
import type { Worker } from 'node:cluster';
import type { StoredWorkerProcesses } from '../../store/sqlite/stored-worker-processes.ts';
import { identifyProcess } from './process-identity.ts';
import { ConnectionHandoffs } from './connection-handoffs.ts';
import { workerClockEnvironment } from './host-clock.ts';
import { WORKER_ARGUMENT } from './worker-argument.ts';

/** Returns a function that starts a worker process. @param processes undefined if workers that are left need not be known */
export function createFork(processes: StoredWorkerProcesses | undefined): () => Worker {
  cluster.setupPrimary({ args: [WORKER_ARGUMENT], serialization: 'advanced' });
  const handoffs = new ConnectionHandoffs();
  return () => {
    const worker = cluster.fork(workerClockEnvironment());
    handoffs.watch(worker);
    const { pid } = worker.process;
    if (pid !== undefined) {
      const started = { pid, identity: identifyProcess(pid) ?? '' };
      processes?.add(started);
      worker.process.once('exit', () => processes?.remove(started));
    }
    return worker;
  };
}
