import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { findProgram } from '../../setup/find-program.ts';
import { processorTime } from '../overhead/processor-time.ts';
import type { KeysRequest } from './setups.ts';

const POST = `wrk.method = "POST"
wrk.body = '{"amount":100,"currency":"eur"}'
wrk.headers["Content-Type"] = "application/json"`;

/** Each thread of wrk has keys of its own. */
const script = (request: KeysRequest, run: number): string => `
local threads = 0
function setup(thread) threads = threads + 1; thread:set("own", threads) end
local count = 0
${request === 'get' ? '' : POST}
function request()
  count = count + 1
  ${request === 'keyed' ? `wrk.headers["Idempotency-Key"] = "${run}-" .. own .. "-" .. count` : ''}
  return wrk.format(nil, "/v1/charges")
end
`;

export interface KeysRun {
  readonly rate: number;
  /** CPU microseconds per request. */
  readonly cpu: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

let runs = 0;

/** Sends as much as the proxy answers over these connections. @param folder for files */
export async function load(
  { url, pid, request }: { readonly url: string; readonly pid: number; readonly request: KeysRequest },
  { connections, seconds, folder }: { readonly connections: number; readonly seconds: number; readonly folder: string },
): Promise<KeysRun> {
  runs += 1;
  const file = join(folder, 'clients.lua');
  writeFileSync(file, script(request, runs));
  const wrk = findProgram('wrk') ?? 'wrk';
  const before = processorTime(pid);
  const clients = spawn(wrk, ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', file, url]);
  const [report] = await Promise.all([text(clients.stdout), once(clients, 'exit')]);
  const after = processorTime(pid);
  const requests = Number(/(\d+) requests in/.exec(report)?.[1]);
  if (!(requests > 0) || /Non-2xx|Socket errors/.test(report)) throw new Error(`wrk: ${report}`);
  const latency = (share: string): number => {
    const [, value = '', unit = ''] = new RegExp(`${share}%\\s+([\\d.]+)(us|ms|s)`).exec(report) ?? [];
    return Number(value) * (unit === 's' ? 1000 : unit === 'us' ? 0.001 : 1);
  };
  return { rate: requests / seconds, cpu: (1e6 * (after - before)) / requests, p50: latency('50'), p99: latency('99') };
}
