import { runScenario } from '../../../src/simulator/run-scenario.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { ABLATIONS } from './ablations.ts';
import { BASELINES } from './baselines.ts';
import type { Controller } from './controllers.ts';
import { OURS } from './controllers.ts';
import type { Figures } from './measure.ts';
import { measure } from './measure.ts';
import { ORACLE } from './oracle.ts';
import type { Row } from './rows/row.ts';
import { ROWS } from './rows.ts';

/** One run: which row, who controls it, with what chance. */
export interface Job {
  readonly row: string;
  readonly controller: string;
  readonly seed: number;
  /** Cut to half a minute, where only the grossest differences are looked for. */
  readonly short: boolean;
}

const CONTROLLERS: ReadonlyMap<string, Controller> = new Map(
  [OURS, ...BASELINES, ...ABLATIONS].map((controller) => [controller.name, controller]),
);

/** @throws RangeError when nothing is called so */
export function runJob(job: Job): Figures {
  const row = ROWS.find(({ name }) => name === job.row);
  const controller = CONTROLLERS.get(job.controller);
  if (row === undefined || controller === undefined) throw new RangeError(`no such run: ${JSON.stringify(job)}`);
  const comparesWithOracle = controller !== ORACLE && row.goals.some(({ figure }) => figure.endsWith('Oracle'));
  return run(row, controller, job, comparesWithOracle ? run(row, ORACLE, job, undefined) : undefined);
}

function run(row: Row, controller: Controller, { seed, short }: Job, oracle: Figures | undefined): Figures {
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

/** About how much a run costs: requests offered. */
export function sizeOf({ row, short }: Job): number {
  const scenario = ROWS.find(({ name }) => name === row)?.scenario;
  if (scenario === undefined) return 0;
  const offered = scenario.clients.reduce((sum, { count, rate }) => sum + count * rate, 0);
  return offered * (short ? shorten(scenario) : scenario).duration;
}
