/** Scenarios of the library, run in this process. */
import { readFile } from '../../src/cli/read-file.ts';
import { scenarioFile } from '../../src/cli/library.ts';
import { loadScenario } from '../../src/config/load-scenario.ts';
import { formatMistakes } from '../../src/config/mistakes.ts';
import type { ScenarioConfig } from '../../src/config/scenario-schema.ts';
import type { Simulated } from '../../src/simulate.ts';
import { simulate } from '../../src/simulate.ts';

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
