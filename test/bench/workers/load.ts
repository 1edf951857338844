import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processorTime } from '../overhead/processor-time.ts';
import type { Program } from '../program.ts';
import type { Setup } from './setups.ts';
import type { WorkersWorkload } from './workloads.ts';

export const CONNECTIONS = 64;
/** Client threads, as many as proxies under load at once. */
const THREADS = 2;
/** A worker limited to part of a processor takes long to compile hot code. */
const TIMEOUT = '10s';
/** Seconds before and after the counted time, in which wrk starts and writes its report. */
const MARGIN = 0.5;

export interface WorkersRun {
  /** Responses a second. */
  readonly rate: number;
  /** In milliseconds. */
  readonly p99: number;
  /** CPU microseconds per request. */
  readonly proxy: number;
  readonly upstream: number;
  readonly clients: number;
}

export interface LoadGenerator {
  readonly workload: WorkersWorkload;
  readonly wrk: string;
  readonly origin: Program;
  readonly folder: string;
  readonly seconds: number;
}

/** Runs the clients. Rejects when any request failed. */
export async function load(
  setup: Setup,
  { workload, wrk, origin, folder, seconds }: LoadGenerator,
): Promise<WorkersRun> {
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

/** CPU seconds so far. */
type Accounts = Record<'proxy' | 'upstream' | 'clients', number>;

/** A wrk script that assigns the URLs to threads in turn. */
function addressThreads(urls: readonly string[]): string {
  const ports = urls.map((url) => `"${new URL(url).port}"`);
  return `local ports, made = {${ports.join(', ')}}, 0
function setup(thread)
  thread.addr = wrk.lookup("127.0.0.1", ports[made % #ports + 1])[1]
  made = made + 1
end
`;
}

function ask({ method, upload }: WorkersWorkload): string {
  const asked = `wrk.method = "${method}"\n`;
  if (upload === 0) return asked; // wrk would send an empty body
  return `${asked}wrk.body = string.rep("x", ${upload})\nwrk.headers["content-type"] = "application/json"\n`;
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}
