// Fills the compile cache that comes with an image, by a first start and a first request. To be run as the user that the
// image runs as, after `npm run build`; docs/start.md.
//
//   node scripts/fill-cache.ts

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const ROOT = join(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'cache');
const PATIENCE = 60_000;

const child = spawn(
  process.execPath,
  ['dist/main.js', '--config', 'config/practice.yaml', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'],
  {
    cwd: ROOT,
    env: { ...process.env, TIDEGATE_CACHE: FOLDER },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: PATIENCE,
  },
);
const ended = once(child, 'exit');
for await (const line of createInterface(child.stdout)) {
  const url = /"url":"([^"]+)".*"msg":"listening"/.exec(line)?.[1];
  if (url === undefined) continue;
  const answer = await fetch(url);
  assert.equal(answer.status, 200);
  child.kill('SIGINT'); // ends without a delay, and by itself: Node writes what it has compiled
}
await ended;
assert.equal(child.exitCode, 0);
// Whoever copies it makes it root's.
assert.equal(spawnSync('chmod', ['-R', 'a+rX', FOLDER]).status, 0);
