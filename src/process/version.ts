import { readFileSync } from 'node:fs';
import { installed } from '../installation.ts';

/** Of this program, as its package.json has it; `unknown` where that has none. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(installed('package.json'), 'utf8'));
  return manifest instanceof Object && 'version' in manifest ? String(manifest.version) : 'unknown';
}
