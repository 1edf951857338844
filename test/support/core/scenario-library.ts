/** Runs the bundled scenarios in this process. */
import { readFile } from '../../../src/cli/read-file.ts';
import { scenarioFile } from '../../../src/cli/bundled-scenarios.ts';
import { loadScenario } from '../../../src/simulator/scenario-file/load-scenario.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import type { ScenarioConfig } from '../../../src/simulator/scenario-file/scenario-schema.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { SimulationReport } from '../../../src/simulator/report/simulation-report.ts';
import { SAMPLE_INTERVAL } from '../../../src/simulator/run-scenario.ts';
import type { SimulationResult } from '../../../src/simulator/simulate-scenario.ts';
import { simulateScenario } from '../../../src/simulator/simulate-scenario.ts';

/** @throws an error with all errors and warnings of the scenario, if any */
export function loadLibraryScenario(name: string): ScenarioConfig {
  const file = scenarioFile(name);
  const read = loadScenario(readFile(file), file, { env: {}, readFile });
  if (read.kind === 'mistakes') throw new Error(formatMistakes(read.mistakes));
  if (read.warnings.length > 0) throw new Error(formatMistakes(read.warnings));
  return read.value;
}

/** @param changes overrides of the file's settings */
export function runLibraryScenario(
  name: string,
  seed?: number,
  changes: Partial<ScenarioConfig> = {},
): SimulationResult {
  return simulateScenario(name, { ...loadLibraryScenario(name), ...changes }, seed);
}

/** Returns the missed goals of the file, such as `waste = 0.02`. */
export function missedGoals({ goals }: SimulationResult): string[] {
  return goals.filter(({ met }) => !met).map(({ goal, value }) => `${goal} = ${value}`);
}

/** Counts within part of a run. @param from exclusive, rounded to samples @param to inclusive */
export function countBetween(
  { series }: SimulationReport,
  counted: 'offered' | 'sent' | 'accepted' | 'wasted',
  [from, to]: readonly [from: Millis, to: Millis],
): number {
  const seconds = SAMPLE_INTERVAL / 1000;
  return series.filter(({ at }) => at > from && at <= to).reduce((sum, sample) => sum + sample[counted] * seconds, 0);
}
