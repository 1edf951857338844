import { readFileSync } from 'node:fs';
import { sep } from 'node:path';
import type { Surroundings } from '../../src/config/load/substitute.ts';

/** Reads presets as they are shipped, and everything else with `readFile`. */
export function withPresets(readFile: Surroundings['readFile']): Surroundings['readFile'] {
  return (path) => (path.includes(`${sep}config${sep}providers${sep}`) ? readFileSync(path, 'utf8') : readFile(path));
}
