import { runScenario } from '../../../src/simulator/run-scenario.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { ABLATIONS } from './ablations.ts';
import { BASELINES, SERVICE_CONTROLLERS } from './baselines.ts';
import type { Controller } from './controllers.ts';
import { OURS } from './controllers.ts';
import type { ControlFigures } from './measure.ts';
import { measure } from './measure.ts';
import { ORACLE } from './oracle.ts';
import type { ControlRow } from './rows/row.ts';
import { ROWS, SERVICE_ROWS } from './rows.ts';

/** One run: row, controller and seed. */
export interface Job {
  readonly row: string;
  readonly controller: string;
  readonly seed: number;
  /** Shortened to 30 s, enough for gross differences. */
  readonly short: boolean;
}

const ALL_ROWS: readonly ControlRow[] = [...ROWS, ...SERVICE_ROWS];

const CONTROLLERS: ReadonlyMap<string, Controller> = new Map(
  [OURS, ...BASELINES, ...SERVICE_CONTROLLERS, ...ABLATIONS].map((controller) => [controller.name, controller]),
);

/** @throws RangeError for an unknown name */
export function runJob(job: Job): ControlFigures {
  const row = ALL_ROWS.find(({ name }) => name === job.row);
  const controller = CONTROLLERS.get(job.controller);
  if (row === undefined || controller === undefined) throw new RangeError(`no such run: ${JSON.stringify(job)}`);
  const comparesWithOracle =
    controller !== ORACLE &&
    (row.comparesWithOracle === true || row.goals.some(({ figure }) => figure.endsWith('Oracle')));
  return run(row, controller, job, comparesWithOracle ? run(row, ORACLE, job, undefined) : undefined);
}

function run(
  row: ControlRow,
  controller: Controller,
  { seed, short }: Job,
  oracle: ControlFigures | undefined,
): ControlFigures {
  const whole = short ? shorten(row.scenario) : row.scenario;
  const scenario = controller.adapt?.(whole) ?? whole;
  const { script, makeStore } = controller.forRun?.(scenario) ?? controller;
  const report = runScenario({
    scenario,
    seed,
    makeStore: (_replica, random, listen) => makeStore(scenario, random, listen),
    ...(script === undefined ? {} : { script }),
  });
  return measure(row, report, oracle);
}

function shorten(scenario: Scenario): Scenario {
  return { ...scenario, warmup: Math.min(scenario.warmup, 10_000), duration: Math.min(scenario.duration, 40_000) };
}

/** Estimates the cost of a run by its offered requests. */
export function sizeOf({ row, short }: Job): number {
  const scenario = ALL_ROWS.find(({ name }) => name === row)?.scenario;
  if (scenario === undefined) return 0;
  const offered = scenario.clients.reduce((sum, { count, rate }) => sum + count * rate, 0);
  return offered * (short ? shorten(scenario) : scenario).duration;
}
