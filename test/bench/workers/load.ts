import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processorTime } from '../overhead/processor-time.ts';
import type { Program } from '../program.ts';
import type { Setup } from './setups.ts';
import type { Workload } from './workloads.ts';

export const CONNECTIONS = 64;
/** Of clients, for all alike: so many as proxies that are asked at once. */
const THREADS = 2;
/** A worker that is held to a part of a processor compiles what is hot for as long as that takes. */
const TIMEOUT = '10s';
/** Before and after what is counted, in seconds: wrk starts, and writes its report. */
const MARGIN = 0.5;

export interface Run {
  /** Answers a second. */
  readonly rate: number;
  /** In milliseconds. */
  readonly p99: number;
  /** Microseconds of processor time a request. */
  readonly proxy: number;
  readonly upstream: number;
  readonly clients: number;
}

export interface Load {
  readonly workload: Workload;
  readonly wrk: string;
  readonly origin: Program;
  readonly folder: string;
  readonly seconds: number;
}

/** Runs the clients. Rejects when any request failed. */
export async function load(setup: Setup, { workload, wrk, origin, folder, seconds }: Load): Promise<Run> {
  const script = join(folder, 'clients.lua');
  writeFileSync(script, addressThreads(setup.urls) + ask(workload));
  const duration = `-d${seconds + 2 * MARGIN}s`;
  const args = [`-t${THREADS}`, `-c${CONNECTIONS}`, duration, '--timeout', TIMEOUT, '--latency', '-s', script];
  const clients = spawn(wrk, [...args, setup.urls[0] ?? ''], { stdio: ['ignore', 'pipe', 'pipe'] });
  const printed = Promise.all([textOf(clients.stdout), textOf(clients.stderr)]);
  const accounts = (): Accounts => ({
    proxy: setup.programs.reduce((sum, { pid }) => sum + processorTime(pid ?? 0), 0),
    upstream: processorTime(origin.pid ?? 0),
    clients: processorTime(clients.pid ?? 0),
  });
  await sleep(1000 * MARGIN);
  const [before, from] = [accounts(), performance.now()];
  await sleep(1000 * seconds);
  const [after, to] = [accounts(), performance.now()];
  const [report, complaints] = await printed;
  const rate = Number(/Requests\/sec:\s*([\d.]+)/.exec(report)?.[1] ?? Number.NaN);
  const [, value = '', unit = ''] = /99%\s+([\d.]+)(us|ms|s)/.exec(report) ?? [];
  if (!(rate > 0) || /Non-2xx|Socket errors/.test(report)) throw new Error(`wrk: ${report}${complaints}`);
  const each = (whose: keyof Accounts): number => (1e9 * (after[whose] - before[whose])) / (rate * (to - from));
  return {
    rate,
    p99: Number(value) * (unit === 's' ? 1000 : unit === 'us' ? 0.001 : 1),
    proxy: each('proxy'),
    upstream: each('upstream'),
    clients: each('clients'),
  };
}

/** Seconds of processor time so far. */
type Accounts = Record<'proxy' | 'upstream' | 'clients', number>;

/** For wrk: its threads go to these in turn. */
function addressThreads(urls: readonly string[]): string {
  const ports = urls.map((url) => `"${new URL(url).port}"`);
  return `local ports, made = {${ports.join(', ')}}, 0
function setup(thread)
  thread.addr = wrk.lookup("127.0.0.1", ports[made % #ports + 1])[1]
  made = made + 1
end
`;
}

function ask({ method, upload }: Workload): string {
  const asked = `wrk.method = "${method}"\n`;
  if (upload === 0) return asked; // an empty body is one too, for wrk
  return `${asked}wrk.body = string.rep("x", ${upload})\nwrk.headers["content-type"] = "application/json"\n`;
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}
