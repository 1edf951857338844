/** Names are unique: no exported type, and no file, has the name of another. */
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const source = fileURLToPath(new URL('../../../src/', import.meta.url));
const files = globSync('**/*.ts', { cwd: source });
const EXPORTED_TYPE = /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm;
/** Entry points, each of which Node or a bundler starts by its path. */
const ENTRY_POINTS = new Set(['index.ts', 'main.ts']);

/** The names that occur in several files, each with those files. */
function findShared(entries: readonly (readonly [name: string, file: string])[]): string[] {
  const byName = Map.groupBy(entries, ([name]) => name);
  return [...byName]
    .filter(([, named]) => named.length > 1)
    .map(([name, named]) => `${name}: ${named.map(([, file]) => file).join(', ')}`);
}

test('no exported type has the name of another', () => {
  const types = files.flatMap((file) =>
    [...readFileSync(join(source, file), 'utf8').matchAll(EXPORTED_TYPE)].map(([, name = '']) => [name, file] as const),
  );
  expect(types.length).toBeGreaterThan(500);
  expect(findShared(types)).toEqual([]);
});

test('no file has the name of another, unless it is an entry point', () => {
  const named = files.map((file) => [basename(file), file] as const).filter(([name]) => !ENTRY_POINTS.has(name));
  expect(findShared(named)).toEqual([]);
});

test('no source file is longer than 250 lines, and no folder has more than 25 of them', () => {
  const sources = globSync('**/*.{ts,js,css,html}', { cwd: source });
  const lengths = sources.map(
    (file) => [file, readFileSync(join(source, file), 'utf8').split('\n').length - 1] as const,
  );
  expect(lengths.filter(([, lines]) => lines > 250)).toEqual([]);
  const folders = Map.groupBy(sources, dirname);
  expect([...folders].filter(([, held]) => held.length > 25).map(([folder]) => folder)).toEqual([]);
});
