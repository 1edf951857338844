import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fingerprint } from '../../scripts/lua/fingerprint.ts';

const FOLDER = join(import.meta.dirname, '../../src/sharing/redis/scripts');

// Changing any of them changes what Redis is to run: in most cases, but for a comment.
test.each(['lease', 'report'])('%s.lua is what the sources of today make', (name) => {
  const script = readFileSync(join(FOLDER, `${name}.lua`), 'utf8');
  const sources = [...script.matchAll(/^-- from (.*)$/gm)].map(([, path]) => path ?? '');
  expect(sources).toContain('src/sharing/replicas/replica-shared-limit.ts');
  expect(/^-- SHA-256 of what went in: (.*)$/m.exec(script)?.[1], 'run npm run lua').toBe(fingerprint(sources));
});
