import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** What a build is made of. */
const SOURCES = ['src', 'scripts', 'package.json', 'package-lock.json'];

/** Builds `dist` where it is not there, or older than what it is made of. @throws Error when that fails */
export function ensureBuilt(root: string): void {
  const main = join(root, 'dist/main.js');
  if (existsSync(main) && SOURCES.every((name) => newest(join(root, name)) <= statSync(main).mtimeMs)) return;
  const { status } = spawnSync(process.execPath, ['scripts/build.ts'], { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error('the build failed');
}

function newest(path: string): number {
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs;
  return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}
