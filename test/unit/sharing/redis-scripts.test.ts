import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isUpToDate, sourcesOf } from '../../../scripts/lua/fingerprint.ts';

const script = readFileSync(join(import.meta.dirname, '../../../src/sharing/redis/scripts/limit.lua'), 'utf8');

// A comment in a source changes the fingerprint too: without the compiler, an unchanged script cannot be proven.
test('limit.lua is generated from the current sources', () => {
  expect(sourcesOf(script)).toContain('src/sharing/replicas/replica-shared-limit.ts');
  expect(isUpToDate(script), 'limit.lua is out of date: run npm run lua').toBe(true);
});

test('a script from other sources is out of date', () => {
  const [, hash = ''] = /^-- SHA-256 of the sources: (.*)$/m.exec(script) ?? [];
  expect(isUpToDate(script.replace(hash, '0'.repeat(64)))).toBe(false);
  expect(isUpToDate(script.replace('-- from src/', '-- from src/none/'))).toBe(false);
  expect(isUpToDate(script.replace('local VERSION', ' local VERSION'))).toBe(false);
  expect(isUpToDate('')).toBe(false);
});
