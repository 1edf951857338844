// Runs inside a container of the image, with the image's own user, entrypoint and health check. Uses Node only, because
// the image has no development dependencies.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface Inspected {
  readonly Docker: {
    readonly config: {
      readonly Entrypoint: readonly string[];
      readonly Healthcheck: { readonly Test: readonly string[] };
      readonly User: string;
    };
  };
}

const folder = import.meta.dirname;
const { config } = (JSON.parse(readFileSync(join(folder, 'image.json'), 'utf8')) as Inspected).Docker;
const health = config.Healthcheck.Test.slice(1);

assert.equal(`${process.getuid?.()}:${process.getgid?.()}`, config.User);
assert.throws(() => accessSync('/app/dist', constants.W_OK), 'the program cannot change itself');
for (const left of ['.git', 'src', 'test', 'node_modules']) {
  assert.ok(!existsSync(join('/app', left)), `${left} has no place in the image`);
}

const compiled = readdirSync('/app/cache').flatMap((name) => readdirSync(join('/app/cache', name)));
assert.ok(compiled.length > 5, 'what was compiled comes with the image');
assert.throws(() => accessSync('/app/cache', constants.W_OK), 'nobody puts other code there');

assert.equal(await exitCode(start([...config.Entrypoint, 'check', join(folder, 'tidegate.yaml')])), 0);
assert.equal(
  await exitCode(start([...config.Entrypoint, 'check', join(folder, 'replica.yaml')])),
  0,
  'secrets are read',
);
assert.equal(await exitCode(start(config.Entrypoint)), 2, 'nothing to serve is an error');

// A practice upstream from the same image, as in the compose file.
const practice = `127.0.0.1:${await freePort()}`;
const practiceMain = ['node', '/app/dist/practice.js', '--listen', practice];
const upstream = start([...practiceMain, '--spec', join(folder, 'payments.yaml')]);
const env = {
  TIDEGATE_UPSTREAM: `http://${practice}`,
  TIDEGATE_LISTEN: `127.0.0.1:${await freePort()}`,
  TIDEGATE_ADMIN: `127.0.0.1:${await freePort()}`,
  // Nothing listens there: Tidegate runs without the shared store.
  TIDEGATE_REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
};
assert.notEqual(await exitCode(start(health, env)), 0, 'not healthy before it runs');
const tidegate = start(config.Entrypoint, env);
try {
  await untilHealthy(tidegate, env);
  const answer = await fetch(`http://${env.TIDEGATE_LISTEN}/echo`);
  assert.equal(answer.status, 200);
  assert.match(await answer.text(), /"method":\s*"GET"/);
  console.log('forwards');

  const metrics = await (await fetch(`http://${env.TIDEGATE_ADMIN}/metrics`)).text();
  const known = new Set(Array.from(metrics.matchAll(/^# TYPE (\w+)/gm), ([, name]) => name));
  const drawn = readFileSync(join(folder, 'tidegate.json'), 'utf8').matchAll(/\b(?:tidegate|process|nodejs)_\w+/g);
  const unknown = Array.from(drawn, ([name]) => name.replace(/_(?:bucket|sum)$/, '')).filter(
    (name) => !known.has(name),
  );
  assert.deepEqual(unknown, [], 'the dashboard draws what is not measured');
  console.log('is measured');

  tidegate.kill('SIGTERM');
  assert.equal(await exitCode(tidegate), 0);
  console.log('drains');
} finally {
  tidegate.kill('SIGKILL');
  upstream.kill('SIGKILL');
}

function start([program = '', ...args]: readonly string[], extra: Readonly<Record<string, string>> = {}): ChildProcess {
  return spawn(program, args, { cwd: '/', env: { ...process.env, ...extra }, stdio: ['ignore', 'inherit', 'inherit'] });
}

async function exitCode(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null) return child.exitCode;
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(timer);
  return code;
}

/** Repeats the health check until it succeeds, as a container engine does. */
async function untilHealthy(child: ChildProcess, extra: Readonly<Record<string, string>>): Promise<void> {
  for (let tries = 0; tries < 60 && child.exitCode === null; tries += 1) {
    if ((await exitCode(start(health, extra))) === 0) return;
    await sleep(250);
  }
  assert.fail('never healthy');
}

/** Chroot isolation shares the ports of the machine, so a free one is chosen. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
