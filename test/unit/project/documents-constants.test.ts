import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../../..');
const text = readdirSync(join(root, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => readFileSync(join(root, 'docs', name), 'utf8'))
  .join('\n');

test('each constant that a document names is defined in the file that it names', () => {
  const named = text.matchAll(/((?:`[A-Z][A-Z0-9_]+`(?:, )?)+) in ([\w/-]+\.ts)/g);
  const pairs = Array.from(named, ([, constants = '', file = '']) =>
    Array.from(constants.matchAll(/[A-Z][A-Z0-9_]+/g), ([constant]) => ({ constant, file })),
  ).flat();
  expect(pairs.length).toBeGreaterThan(10);
  const wrong = pairs.filter(({ constant, file }) => {
    const path = join(root, 'src', file);
    return !existsSync(path) || !new RegExp(String.raw`const ${constant}\b`).test(readFileSync(path, 'utf8'));
  });
  expect(wrong).toEqual([]);
});

test('each source file that the bounds name exists', () => {
  const files = readFileSync(join(root, 'docs/bounds.md'), 'utf8').matchAll(/[\w/.-]+\.ts\b/g);
  const missing = Array.from(files, ([file]) => file).filter(
    (file) => !existsSync(join(root, 'src', file)) && !existsSync(join(root, file)),
  );
  expect(missing).toEqual([]);
});

test('each test that the bounds name exists', () => {
  const tests = readFileSync(join(root, 'docs/bounds.md'), 'utf8').matchAll(
    /\b(?:unit|property|integration|e2e)\/[\w-]+(?:\/[\w-]+)*/g,
  );
  const missing = Array.from(tests, ([name]) => `test/${name}`).filter(
    (path) => !existsSync(join(root, path)) && !existsSync(join(root, `${path}.test.ts`)),
  );
  expect(missing).toEqual([]);
});
