import { readFileSync } from 'node:fs';
import { installedFile } from '../installation.ts';

/** The version in package.json; `unknown` if it has none. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(installedFile('package.json'), 'utf8'));
  return manifest instanceof Object && 'version' in manifest ? String(manifest.version) : 'unknown';
}
