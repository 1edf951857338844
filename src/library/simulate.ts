import { readFileSync } from 'node:fs';
import type { ScenarioInput } from '../simulator/scenario-file/scenario-schema.ts';
import type { GoalResult } from '../simulator/report/goals.ts';
import type { SimulationReport } from '../simulator/report/simulation-report.ts';
import { ConfigError } from './config-error.ts';
import { withoutPosition, stringifyConfig } from './config-object.ts';

export interface SimulateOptions {
  /** Seed of the random numbers: equal seeds give equal reports. Default: the scenario's own. */
  readonly seed?: number | undefined;
  /** Name of the scenario in the report. Default: `scenario`. */
  readonly name?: string | undefined;
}

/** The report of `tidegate simulate --json`. */
export interface Simulation extends SimulationReport {
  /** The goals of the scenario, each with its bound and the measured value. */
  readonly goals: readonly GoalResult[];
}

/**
 * Runs a scenario in virtual time with the code of the proxy. Blocks the event loop while it runs: some seconds for a million
 * requests.
 * @param scenario an object, or YAML text
 * @throws ConfigError with every problem of the scenario
 */
export async function simulate(
  scenario: ScenarioInput | string,
  { seed, name = 'scenario' }: SimulateOptions = {},
): Promise<Simulation> {
  // Loaded on demand, because most programs that import `retry` never simulate.
  const [{ loadScenario }, { simulateScenario: run }] = await Promise.all([
    import('../simulator/scenario-file/load-scenario.ts'),
    import('../simulator/simulate-scenario.ts'),
  ]);
  const isText = typeof scenario === 'string';
  const text = isText ? scenario : stringifyConfig(scenario, name);
  // Reads only the presets of `policy.provider`.
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  const read = loadScenario(text, name, { env: process.env, readFile });
  if (read.kind === 'mistakes') throw new ConfigError(isText ? read.mistakes : read.mistakes.map(withoutPosition));
  const { report, goals } = run(name, read.value, seed);
  return { ...report, goals };
}
