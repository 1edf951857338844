/**
 * The program as users install it, for tests that start it: the bundle starts in half the processor time of its source. It is
 * built once for each state of the source, below node_modules, and kept for the next run.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../..');
const BUILDS = join(ROOT, 'node_modules/.cache/tidegate-built');
/** What a build is made of. */
const SOURCES = [
  'src',
  'scripts/build',
  'scripts/build.ts',
  'package.json',
  'package-lock.json',
  'config',
  'CHANGELOG.md',
  'test/support/programs/built-program.ts',
];
/** Other checkouts may share node_modules, so that a build may be in use although its source is not this one. */
const KEPT_MS = 24 * 3_600_000;

let folder: string | undefined;

/** The path of a built program. Builds it first, which takes seconds, if the source has changed since. */
export function builtProgram(name: 'main' | 'practice'): string {
  return join(builtPackage(), 'dist', `${name}.js`);
}

/** The folder with the files of the built package. Beside them, MODULES lists the modules of src in each file of dist. */
export function builtPackage(): string {
  folder ??= findOrBuild();
  return folder;
}

export const MODULES = 'modules.json';

function findOrBuild(): string {
  const built = join(BUILDS, hashSources());
  if (existsSync(built)) return built;
  mkdirSync(BUILDS, { recursive: true });
  removeOldBuilds();
  const draft = mkdtempSync(join(BUILDS, 'draft-'));
  buildInto(draft, ['--modules', join(draft, MODULES)]);
  try {
    renameSync(draft, built);
  } catch (error) {
    // Another test file has built the same meanwhile.
    rmSync(draft, { recursive: true });
    if (!existsSync(built)) throw error;
  }
  return built;
}

/**
 * Writes the files of the package into a folder without other files of the project.
 * @param more arguments of scripts/build.ts
 */
function buildInto(target: string, more: readonly string[] = []): void {
  const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly files: readonly string[];
  };
  for (const name of ['package.json', ...files.filter((file) => file !== 'dist')]) {
    cpSync(join(ROOT, name), join(target, name), { recursive: true });
  }
  const build = ['scripts/build.ts', '--out', join(target, 'dist'), ...more];
  const { status, stdout, stderr } = spawnSync(process.execPath, build, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the build failed: ${stdout}${stderr}`);
}

function removeOldBuilds(): void {
  for (const name of readdirSync(BUILDS)) {
    const path = join(BUILDS, name);
    if (Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true });
  }
}

function hashSources(): string {
  const hash = createHash('sha256').update(process.version);
  for (const path of SOURCES.flatMap((name) => filesBelow(join(ROOT, name)))) {
    hash.update(`${path}\0`).update(readFileSync(path)).update('\0');
  }
  return hash.digest('hex').slice(0, 16);
}

function filesBelow(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const entries = readdirSync(path, { withFileTypes: true, recursive: true });
  return entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : [])).toSorted();
}
