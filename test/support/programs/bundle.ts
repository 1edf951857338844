/** Builds the bundle for the tests of one file, in a folder without other project files. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { buildInto } from './built-program.ts';

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
  const list = join(folder, 'modules.json');
  buildInto(folder, ['--modules', list]);
  const modules = JSON.parse(readFileSync(list, 'utf8')) as Readonly<Record<string, readonly string[]>>;
  return { folder, modules: new Map(Object.entries(modules)) };
}
