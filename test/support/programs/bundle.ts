/** Builds the bundle for the tests of one file, in a folder without other project files. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');

export interface Bundle {
  /** Contains the files of the package. */
  readonly folder: string;
  /** The modules of src in each file of dist. */
  readonly modules: ReadonlyMap<string, readonly string[]>;
}

/** Builds the bundle. It is removed after the tests of the file. */
export function buildBundle(): Bundle {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-bundle-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly files: readonly string[];
  };
  for (const name of ['package.json', ...files.filter((file) => file !== 'dist')]) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  const list = join(folder, 'modules.json');
  const build = ['scripts/build.ts', '--out', join(folder, 'dist'), '--modules', list];
  const { status, stdout, stderr } = spawnSync(process.execPath, build, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the build failed: ${stdout}${stderr}`);
  const modules = JSON.parse(readFileSync(list, 'utf8')) as Readonly<Record<string, readonly string[]>>;
  return { folder, modules: new Map(Object.entries(modules)) };
}
