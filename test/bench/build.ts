import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** Sources of the build. */
const SOURCES = ['src', 'scripts', 'package.json', 'package-lock.json'];

/** The built program. */
export const BUILT = join(ROOT, 'dist/main.js');

/** Builds the program if it is missing or older than its sources. @throws Error if the build fails */
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
