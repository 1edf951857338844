import { readFileSync } from 'node:fs';
import { sep } from 'node:path';
import type { ConfigEnvironment } from '../../../src/config/load/substitute.ts';

/** Reads shipped presets, and everything else with `readFile`. */
export function withPresets(readFile: ConfigEnvironment['readFile']): ConfigEnvironment['readFile'] {
  return (path) => (path.includes(`${sep}config${sep}providers${sep}`) ? readFileSync(path, 'utf8') : readFile(path));
}
