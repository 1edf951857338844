import { BASELINES, SERVICE_CONTROLLERS } from './baselines.ts';
import type { Controller } from './controllers.ts';
import { OURS } from './controllers.ts';
import type { Job } from './job.ts';
import type { Result } from './run-all.ts';

const ROWS = ['token bucket, 100/s', 'fixed 1 s, 50/s', '20 in flight', 'ten equal clients at 5x'];
const OVERLOADED_SERVICE = '8 workers of 50 ms';
const SERVICE_ROWS = [OVERLOADED_SERVICE, 'pauses of 200 ms every 5 s'];

/** A few short rows for every controller, one of them twice. */
export const SMOKE: readonly Job[] = [
  ...jobsOf([OURS, ...BASELINES, OURS], ROWS),
  ...jobsOf(SERVICE_CONTROLLERS, SERVICE_ROWS),
];

function jobsOf(controllers: readonly Controller[], rows: readonly string[]): Job[] {
  return controllers.flatMap(({ name }) => rows.map((row): Job => ({ row, controller: name, seed: 301, short: true })));
}

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
  for (const { job, figures } of results) {
    if (job.row !== OVERLOADED_SERVICE) continue;
    const { goodput, abandoned = Number.NaN } = figures;
    if (job.controller === 'oracle') require(goodput >= 0.9, `${job.row}: the oracle has a goodput of ${goodput}`);
    if (job.controller === 'none') require(abandoned >= 0.5, `${job.row}: without control, ${abandoned} are abandoned`);
  }
  return faults;
}
