// Fills the compile cache of a container image with a first start and a first request. Run it as the image's user, after
// `npm run build`; see docs/start.md.
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
  child.kill('SIGINT'); // exits at once and normally, so that Node writes its compile cache
}
await ended;
assert.equal(child.exitCode, 0);
// Copying the folder makes root its owner, so it must be world-readable.
assert.equal(spawnSync('chmod', ['-R', 'a+rX', FOLDER]).status, 0);
