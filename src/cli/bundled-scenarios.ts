/** The scenarios that come with the program, found from wherever it is run. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadScenario } from '../simulator/scenario-file/load-scenario.ts';
import type { Surroundings } from '../config/load/substitute.ts';
import { installed } from '../installation.ts';

const FOLDER = installed('config/scenarios/');
const ENDING = '.yaml';

/** In alphabetical order. */
export function scenarioNames(): string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith(ENDING))
    .map((file) => file.slice(0, -ENDING.length))
    .toSorted();
}

/** @param name one of `scenarioNames` */
export function scenarioFile(name: string): string {
  return fileURLToPath(new URL(`${name}${ENDING}`, FOLDER));
}

/** Every scenario with its title, a line each. */
export function listScenarios(surroundings: Surroundings): string {
  const names = scenarioNames();
  const width = Math.max(...names.map((name) => name.length));
  return names
    .map((name) => {
      const file = scenarioFile(name);
      const read = loadScenario(surroundings.readFile(file), file, surroundings);
      const title = read.kind === 'ok' ? (read.value.title ?? '') : 'has mistakes';
      return `  ${name.padEnd(width)}  ${title}\n`;
    })
    .join('');
}
