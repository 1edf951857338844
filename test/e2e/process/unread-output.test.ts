import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { writeConfigFile } from '../../support/proxy/config-file.ts';
import { startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { keepAlive, send } from '../../support/clients/send.ts';
import { builtProgram } from '../../support/programs/built-program.ts';
import { eventually } from '../../support/proxy/tidegate.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PATH = `/${'x'.repeat(4000)}`;

interface Addresses {
  readonly url: string;
  readonly admin: string;
}

async function writeConfig(): Promise<string> {
  const upstream = await startHttpUpstream((_n, response) => response.end());
  const config = writeConfigFile(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
drain: {delay: 0, timeout: 1s}
log: {buffer: 64KiB, format: json}
upstreams: {api: {url: "${upstream.url}"}}
`);
  return config;
}

/** Reads the addresses from the log line "listening". */
async function readAddresses(output: Readable): Promise<Addresses> {
  for (let text = ''; ; ) {
    const [chunk] = (await once(output, 'data')) as [Buffer];
    text += chunk.toString();
    const line = text
      .split('\n')
      .slice(0, -1)
      .find((each) => each.includes('"listening"'));
    if (line === undefined) continue;
    output.pause();
    return JSON.parse(line) as Addresses;
  }
}

async function metric({ admin }: Addresses, name: string): Promise<number> {
  const text = await (await fetch(`${admin}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1],
  );
}

/** Makes a process write its log only when enough is buffered, and no longer after a time, from its first request on. */
const NO_FLUSH_INTERVAL = `
import { subscribe } from 'node:diagnostics_channel';
const start = globalThis.setTimeout;
let isServing = false;
subscribe('http.server.request.start', () => { isServing = true; });
globalThis.setTimeout = Object.assign(
  (run, ms, ...args) => start(run, isServing && ms === 200 ? 2 ** 31 - 1 : ms, ...args),
  start,
);`;

test('drops no log lines while its output is read, although one write exceeds the buffer', async () => {
  const preloaded = `data:text/javascript,${encodeURIComponent(NO_FLUSH_INTERVAL)}`;
  const child = spawn(
    process.execPath,
    ['--import', preloaded, builtProgram('main'), '--config', await writeConfig()],
    {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const addresses = await readAddresses(child.stdout);
  let lines = 0;
  child.stdout.on('data', (chunk: Buffer) => (lines += chunk.toString().split(PATH).length - 1));
  child.stdout.resume();
  const agent = keepAlive();
  // Ten lines are more than half of the buffer, and less than all of it. So none is dropped, however slow the reader is.
  for (let i = 0; i < 200; i += 1) {
    await eventually(
      () => i - lines,
      (unread) => unread < 10,
      60_000,
    );
    expect((await send(addresses.url, PATH, { agent })).status).toBe(200);
  }
  expect(await metric(addresses, 'tidegate_bound_reached_total{bound="log_buffer"}')).toBe(0);
}, 120_000);

test('serves while its output is not read, drops lines beyond the buffer, and exits on SIGTERM', async () => {
  const child = spawn(process.execPath, [builtProgram('main'), '--config', await writeConfig()], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  const addresses = await readAddresses(child.stdout);

  const agent = keepAlive();
  const dropped = () => metric(addresses, 'tidegate_bound_reached_total{bound="log_buffer"}');
  const held = () => metric(addresses, 'tidegate_bound_used_ratio{bound="log_buffer"}');
  /** Sends ten requests and returns how many of their log lines were dropped. */
  const ask = async (): Promise<number> => {
    const before = await dropped();
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(addresses.url, PATH, { agent })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    return (await dropped()) - before;
  };
  // The pipe and the paused reader's buffer fill up first, then the log buffer.
  await eventually(ask, (lines) => lines >= 9);
  expect(await held()).toBeGreaterThan(0.9);
  expect(await held()).toBeLessThanOrEqual(1);

  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

test('serves while its terminal is stopped, and exits when the terminal closes', async () => {
  const config = await writeConfig();
  const command = `echo $$ > ${config}.pid; exec ${process.execPath} '${builtProgram('main')}' --config ${config}`;
  const args =
    process.platform === 'darwin' ? ['-q', '/dev/null', 'sh', '-c', command] : ['-qec', command, '/dev/null'];
  const terminal = spawn('script', args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => {
    terminal.kill('SIGCONT');
    terminal.kill('SIGKILL');
  });
  const addresses = await readAddresses(terminal.stdout);
  terminal.kill('SIGSTOP'); // like a terminal after Ctrl-S, it reads nothing more
  const agent = keepAlive();
  for (let i = 0; i < 100; i += 1) expect((await send(addresses.url, PATH, { agent })).status).toBe(200);
  expect(await metric(addresses, 'tidegate_bound_reached_total{bound="log_buffer"}')).toBeGreaterThan(0);

  const pid = Number(readFileSync(`${config}.pid`, 'utf8'));
  expect(isAlive(pid)).toBe(true);
  terminal.kill('SIGCONT');
  terminal.kill('SIGKILL');
  await eventually(
    () => isAlive(pid),
    (alive) => !alive,
  );
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
