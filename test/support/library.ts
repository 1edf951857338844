/** Scenarios of the library, run in this process. */
import { readFile } from '../../src/cli/read-file.ts';
import { scenarioFile } from '../../src/cli/bundled-scenarios.ts';
import { loadScenario } from '../../src/simulator/scenario-file/load-scenario.ts';
import { formatMistakes } from '../../src/config/load/mistakes.ts';
import type { ScenarioConfig } from '../../src/simulator/scenario-file/scenario-schema.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import type { Report } from '../../src/simulator/report/simulation-report.ts';
import { SAMPLE } from '../../src/simulator/run-scenario.ts';
import type { Simulated } from '../../src/simulator/simulate-scenario.ts';
import { simulate } from '../../src/simulator/simulate-scenario.ts';

/** @throws with all of its mistakes and warnings, if it has any */
export function loadLibrary(name: string): ScenarioConfig {
  const file = scenarioFile(name);
  const read = loadScenario(readFile(file), file, { env: {}, readFile });
  if (read.kind === 'mistakes') throw new Error(formatMistakes(read.mistakes));
  if (read.warnings.length > 0) throw new Error(formatMistakes(read.warnings));
  return read.value;
}

/** @param changes instead of what the file says */
export function runLibrary(name: string, seed?: number, changes: Partial<ScenarioConfig> = {}): Simulated {
  return simulate(name, { ...loadLibrary(name), ...changes }, seed);
}

/** Goals of the file that were not met, such as `waste = 0.02`. */
export function missedGoals({ goals }: Simulated): string[] {
  return goals.filter(({ met }) => !met).map(({ goal, value }) => `${goal} = ${value}`);
}

/** How many there were in a stretch of a run. @param from exclusive, to the sample @param to inclusive */
export function countBetween(
  { series }: Report,
  counted: 'offered' | 'sent' | 'accepted' | 'wasted',
  [from, to]: readonly [from: Millis, to: Millis],
): number {
  const seconds = SAMPLE / 1000;
  return series.filter(({ at }) => at > from && at <= to).reduce((sum, sample) => sum + sample[counted] * seconds, 0);
}
