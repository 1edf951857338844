import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** What a build is made of. */
const SOURCES = ['src', 'scripts', 'package.json', 'package-lock.json'];

/** What users run. */
export const BUILT = join(ROOT, 'dist/main.js');

/** Builds it where it is not there, or older than what it is made of. @throws Error when that fails */
export function ensureBuilt(): void {
  if (existsSync(BUILT) && SOURCES.every((name) => newest(join(ROOT, name)) <= statSync(BUILT).mtimeMs)) return;
  const { status } = spawnSync(process.execPath, ['scripts/build.ts'], { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) throw new Error('the build failed');
}

function newest(path: string): number {
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs;
  return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}
