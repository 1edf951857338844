import { BASELINES } from './baselines.ts';
import { OURS } from './controllers.ts';
import type { Job } from './job.ts';
import type { Result } from './run-all.ts';

const ROWS = ['token bucket, 100/s', 'fixed 1 s, 50/s', '20 in flight', 'ten equal clients at 5x'];

/** A few short rows for every controller, one of them twice. */
export const SMOKE: readonly Job[] = [OURS, ...BASELINES, OURS].flatMap(({ name }) =>
  ROWS.map((row): Job => ({ row, controller: name, seed: 301, short: true })),
);

/** Checks conditions that hold for any run. Returns the violations. */
export function findFaults(results: readonly Result[]): string[] {
  const faults: string[] = [];
  const require = (holds: boolean, fault: string): void => {
    if (!holds) faults.push(fault);
  };
  for (const { job, figures } of results) {
    for (const [figure, value] of Object.entries(figures)) {
      require(Number.isFinite(value), `${job.controller}, ${job.row}: ${figure} is ${value}`);
    }
  }
  for (const row of ROWS) {
    const of = (name: string): Result['figures'][] =>
      results.filter(({ job }) => job.controller === name && job.row === row).map(({ figures }) => figures);
    const [ours, again] = of(OURS.name);
    const [none] = of('none');
    const [backoff] = of('backoff');
    if (ours === undefined || none === undefined || backoff === undefined) return [...faults, `${row}: not run`];
    require(JSON.stringify(ours) === JSON.stringify(again), `${row}: the same seed gave another run`);
    require(ours.goodput >= 0.75, `${row}: ours has a goodput of ${ours.goodput}`);
    require(ours.waste < none.waste / 10, `${row}: ours wastes ${ours.waste}, no control ${none.waste}`);
    require(backoff.waste < none.waste, `${row}: a budget for retries does not lower the waste`);
    require(ours.waste < backoff.waste / 10, `${row}: ours wastes ${ours.waste}, backing off ${backoff.waste}`);
  }
  return faults;
}
