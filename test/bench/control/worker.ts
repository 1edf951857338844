/** A worker thread that runs one job at a time. */
import { parentPort } from 'node:worker_threads';
import type { Job } from './job.ts';
import { runJob } from './job.ts';

parentPort?.on('message', (job: Job) => {
  parentPort?.postMessage(runJob(job), []);
});
