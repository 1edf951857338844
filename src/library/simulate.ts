import { readFileSync } from 'node:fs';
import type { ScenarioInput } from '../simulator/scenario-file/scenario-schema.ts';
import type { Judged } from '../simulator/report/goals.ts';
import type { Report } from '../simulator/report/simulation-report.ts';
import { ConfigError } from './config-error.ts';
import { withoutLines, writeObject } from './config-object.ts';

export interface SimulateOptions {
  /** Equal seeds give equal reports; the scenario's own unless given. */
  readonly seed?: number | undefined;
  /** What the report calls the scenario; `scenario` unless given. */
  readonly name?: string | undefined;
}

/** As `tidegate simulate --json` tells it. */
export interface Simulation extends Report {
  /** What the scenario should come to, and what it came to. */
  readonly goals: readonly Judged[];
}

/**
 * Runs a scenario in virtual time, with the proxy's own exchange and gate. Takes the processor for as long as it goes: a
 * million requests are some seconds.
 * @param scenario an object, or YAML
 * @throws ConfigError that tells every mistake in it
 */
export async function simulate(
  scenario: ScenarioInput | string,
  { seed, name = 'scenario' }: SimulateOptions = {},
): Promise<Simulation> {
  // Most who retry simulate nothing: they need not read what that needs.
  const [{ loadScenario }, { simulate: run }] = await Promise.all([
    import('../simulator/scenario-file/load-scenario.ts'),
    import('../simulator/simulate-scenario.ts'),
  ]);
  const isText = typeof scenario === 'string';
  const text = isText ? scenario : writeObject(scenario, name);
  // Only of presets: `policy.provider`.
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  const read = loadScenario(text, name, { env: process.env, readFile });
  if (read.kind === 'mistakes') throw new ConfigError(isText ? read.mistakes : read.mistakes.map(withoutLines));
  const { report, goals } = run(name, read.value, seed);
  return { ...report, goals };
}
