/** The built package for the tests of one file, in a folder without other project files. */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { builtPackage, MODULES } from './built-program.ts';

export interface Bundle {
  /** Contains the files of the package. */
  readonly folder: string;
  /** The modules of src in each file of dist. */
  readonly modules: ReadonlyMap<string, readonly string[]>;
}

/** Copies the built package. The copy is removed after the tests of the file. */
export function copyBundle(): Bundle {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-bundle-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  cpSync(builtPackage(), folder, { recursive: true });
  const modules = JSON.parse(readFileSync(join(folder, MODULES), 'utf8')) as Readonly<
    Record<string, readonly string[]>
  >;
  return { folder, modules: new Map(Object.entries(modules)) };
}
