import type { SpawnSyncReturns } from 'node:child_process';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/** Fields of package.json that concern development, and Node, which `npm ci` installs for the scripts of this project. */
const OMITTED: ReadonlySet<string> = new Set(['devDependencies', 'optionalDependencies', 'scripts']);

/** Runs npm on the packages that the program contains, as the lockfile names them. */
export type RunNpm = (...args: readonly string[]) => SpawnSyncReturns<string>;

/**
 * Calls `use` with an npm that knows only the packages that the program contains. With `--omit=dev`, npm 11.19 also omits
 * dependencies that a development tool needs too, such as yaml and zod. So this removes the others from a copy of the lockfile.
 * @throws if npm cannot do that
 */
export function withProductionTree<T>(use: (npm: RunNpm) => T): T {
  const manifest: unknown = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  if (!(manifest instanceof Object)) throw new TypeError('package.json holds no object');
  const place = mkdtempSync(join(tmpdir(), 'tidegate-production-'));
  try {
    // npm names a described component after the folder.
    const cwd = join(place, String(Reflect.get(manifest, 'name')));
    mkdirSync(cwd);
    const kept = Object.entries(manifest).filter(([key]) => !OMITTED.has(key));
    writeFileSync(join(cwd, 'package.json'), JSON.stringify(Object.fromEntries(kept)));
    cpSync(join(ROOT, 'package-lock.json'), join(cwd, 'package-lock.json'));
    const npm: RunNpm = (...args) =>
      spawnSync('npm', [...args, '--package-lock-only'], { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
    outputOf(npm('prune', '--offline', '--ignore-scripts', '--no-audit', '--no-fund'));
    return use(npm);
  } finally {
    rmSync(place, { recursive: true });
  }
}

/** @throws if the command failed */
export function outputOf({ status, stdout, stderr, error }: SpawnSyncReturns<string>): string {
  if (status !== 0) throw new Error(`npm failed: ${error?.message ?? ''}${stdout}${stderr}`);
  return stdout;
}
