// Runs inside a container of the image, as kubelet would according to pod.json beside this file: checks that Tidegate
// becomes ready, answers the probes on its telemetry port, and exits on SIGTERM. Uses Node only. Chroot isolation shares
// the ports of the machine, so free ports replace the configured ones.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface Pod {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const { args, env } = JSON.parse(readFileSync(join(import.meta.dirname, 'pod.json'), 'utf8')) as Pod;
const [command, flag, file = ''] = args;
assert.deepEqual([command, flag], ['serve', '--config']);

const telemetry = await freePort();
const elsewhere = '/tmp/tidegate.yaml';
writeFileSync(
  elsewhere,
  readFileSync(file, 'utf8').replace(/^telemetry: .*:\d+$/m, `telemetry: 127.0.0.1:${telemetry}`),
);

const child = spawn('node', ['/app/dist/main.js', 'serve', '--config', elsewhere], {
  cwd: '/app',
  env: {
    ...process.env,
    ...env,
    TIDEGATE_LISTEN: `127.0.0.1:${await freePort()}`,
    TIDEGATE_ADMIN: `127.0.0.1:${await freePort()}`,
  },
  stdio: ['ignore', 'inherit', 'inherit'],
});
const ended = once(child, 'exit');
try {
  assert.ok(await untilReady(), 'never ready');
  assert.equal((await fetch(`http://127.0.0.1:${telemetry}/livez`)).status, 200);
  console.log('ready');
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
  console.log('drains');
} finally {
  child.kill('SIGKILL');
}

/** Polls readiness for half a minute, as a startupProbe does. */
async function untilReady(): Promise<boolean> {
  for (let tries = 0; tries < 120 && child.exitCode === null; tries += 1) {
    const answer = await fetch(`http://127.0.0.1:${telemetry}/readyz`).catch(() => undefined);
    if (answer?.status === 200) return true;
    await sleep(250);
  }
  return false;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
