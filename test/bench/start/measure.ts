import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/free-port.ts';

/** One start: milliseconds since the process was created, and bytes. */
export interface StartMeasurement {
  readonly listening: number;
  readonly first: number;
  /** CPU time until then, less dependent on other load. */
  readonly processor: number;
  /** Resident memory after some idle seconds. */
  readonly idle: number;
  readonly loaded: number;
}

export interface StartOptions {
  readonly main: string;
  readonly root: string;
  readonly upstream: string;
  /** The folder of the compile cache. */
  readonly cache: string;
  /** Seconds. */
  readonly idle: number;
  readonly requests: number;
}

const TIMEOUT = 30_000;
/** Milliseconds; rare enough to leave the processor to the measured process. */
const POLL_INTERVAL = 2;
const IN_FLIGHT = 10;

/** Starts Tidegate, sends requests, and stops it. Rejects if it does not respond correctly. */
export async function measureStart(options: StartOptions): Promise<StartMeasurement> {
  const { main, root, upstream, cache, idle, requests } = options;
  const port = await freePort();
  const args = [main, 'serve', '--upstream', upstream, '--listen', `127.0.0.1:${port}`, '--admin', '127.0.0.1:0'];
  const env = { PATH: process.env['PATH'], TIDEGATE_CACHE: cache };
  const began = { at: performance.now(), time: Date.now() };
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const kill = (): boolean => child.kill('SIGKILL');
  process.once('exit', kill); // an aborted benchmark leaves no process, see program.ts
  try {
    // The log line is written later, and contains its time.
    const logged = readListeningTime(child.stdout);
    const first = await untilFirst(child, port, began.at);
    const processor = processorMs(child);
    const listening = (await logged) - began.time;
    await sleep(idle * 1000);
    const idleBytes = residentBytes(child);
    await send(port, requests);
    const loaded = residentBytes(child);
    child.kill('SIGINT');
    const [code] = (await ended) as [number | null];
    if (code !== 0) throw new Error(`${main} ended with ${code}`);
    return { listening, first, processor, idle: idleBytes, loaded };
  } finally {
    kill();
    process.off('exit', kill);
  }
}

async function readListeningTime(output: NodeJS.ReadableStream): Promise<number> {
  return new Promise((resolve, reject) => {
    const lines = createInterface(output);
    lines.on('line', (line) => {
      const { msg, time } = JSON.parse(line) as { readonly msg?: string; readonly time?: string };
      if (msg === 'listening' && time !== undefined) resolve(Date.parse(time));
    });
    lines.on('close', () => reject(new Error('it never listened')));
  });
}

async function untilFirst(child: ChildProcess, port: number, since: number): Promise<number> {
  for (;;) {
    if ((await ask(port)) === 200) return performance.now() - since;
    if (child.exitCode !== null || performance.now() - since > TIMEOUT) {
      throw new Error('no response before the timeout');
    }
    await sleep(POLL_INTERVAL);
  }
}

/** @returns the status; undefined if the port is not open yet */
async function ask(port: number, agent?: Agent): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, agent: agent ?? false }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode));
    });
    request.on('error', () => resolve(undefined));
  });
}

async function send(port: number, requests: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
  let left = requests;
  const sender = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const status = await ask(port, agent);
      if (status !== 200) throw new Error(`expected 200, got ${status ?? 'no response'}`);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, sender));
  agent.destroy();
}

/** Returns the CPU time of all threads from /proc, because `ps` counts in hundredths of a second. */
function processorMs({ pid }: ChildProcess): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((task) =>
    Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

function residentBytes({ pid }: ChildProcess): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}
