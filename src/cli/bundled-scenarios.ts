/** The scenarios of the installation. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadScenario } from '../simulator/scenario-file/load-scenario.ts';
import type { ConfigEnvironment } from '../config/load/substitute.ts';
import { installedFile } from '../installation.ts';

const SCENARIO_FOLDER = installedFile('config/scenarios/');
const SCENARIO_EXTENSION = '.yaml';

/** In alphabetical order. */
export function scenarioNames(): string[] {
  return readdirSync(SCENARIO_FOLDER)
    .filter((file) => file.endsWith(SCENARIO_EXTENSION))
    .map((file) => file.slice(0, -SCENARIO_EXTENSION.length))
    .toSorted();
}

/** @param name one of `scenarioNames` */
export function scenarioFile(name: string): string {
  return fileURLToPath(new URL(`${name}${SCENARIO_EXTENSION}`, SCENARIO_FOLDER));
}

/** One line per scenario, with its title. */
export function listScenarios(environment: ConfigEnvironment): string {
  const names = scenarioNames();
  const width = Math.max(...names.map((name) => name.length));
  return names
    .map((name) => {
      const file = scenarioFile(name);
      const read = loadScenario(environment.readFile(file), file, environment);
      const title = read.kind === 'ok' ? (read.value.title ?? '') : 'invalid';
      return `  ${name.padEnd(width)}  ${title}\n`;
    })
    .join('');
}
