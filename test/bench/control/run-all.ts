import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Job } from './job.ts';
import { sizeOf } from './job.ts';
import type { ControlFigures } from './measure.ts';

export interface Result {
  readonly job: Job;
  readonly figures: ControlFigures;
}

/** Runs all jobs on one thread per processor, longest first to balance the load. */
export async function runAll(jobs: readonly Job[], onDone: (done: number) => void): Promise<Result[]> {
  const waiting = jobs.map((_, index) => index).toSorted((a, b) => size(jobs[b]) - size(jobs[a]));
  const results: Result[] = [];
  let done = 0;

  await Promise.all(Array.from({ length: Math.min(availableParallelism(), jobs.length) }, work));
  return results;

  /** Results are in the order of the jobs, whichever finishes first. */
  function work(): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = new Worker(new URL('worker.ts', import.meta.url));
      let index: number | undefined;
      const next = (): void => {
        index = waiting.shift();
        if (index === undefined) void worker.terminate();
        else worker.postMessage(jobs[index], []);
      };
      worker.on('message', (figures: ControlFigures) => {
        const job = index === undefined ? undefined : jobs[index];
        if (index !== undefined && job !== undefined) results[index] = { job, figures };
        done += 1;
        onDone(done);
        next();
      });
      worker.on('error', reject);
      worker.on('exit', () => resolve());
      next();
    });
  }
}

function size(job: Job | undefined): number {
  return job === undefined ? 0 : sizeOf(job);
}
