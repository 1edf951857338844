import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { findProgram } from '../../setup/find-program.ts';
import { freePort } from '../../support/free-port.ts';
import { pinned } from '../overhead/contenders.ts';
import { processorTime } from '../overhead/processor-time.ts';
import { Program } from '../program.ts';
import { type Gate, startGate } from './gate.ts';

const CONNECTIONS = 32;
/** The other processor is that of Tidegate. */
const PROCESSOR_OF_OTHERS = 0;

export interface SocketsRow {
  readonly durability: 'normal' | 'full';
  readonly receiver: 'acknowledges' | 'hangs';
  readonly rate: number;
  /** CPU microseconds of Tidegate for each, its delivery included. */
  readonly cpu: number;
  /** Of the response, in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly deliveredRate: number;
}

/** Measures how many notifications Tidegate stores and answers a second, on one processor, with senders and receiver on another. */
export async function measureSockets(folder: string, seconds: number): Promise<readonly SocketsRow[]> {
  const rows: SocketsRow[] = [];
  const receivers = { acknowledges: await startAcknowledging(folder), hangs: await startHanging() };
  try {
    for (const durability of ['normal', 'full'] as const) {
      for (const receiver of ['hangs', 'acknowledges'] as const) {
        const { url } = receivers[receiver];
        const gate = await startGate(folder, { name: `${durability}-${receiver}`, durability, receiver: url });
        try {
          await notify(gate, folder, Math.min(2, seconds)); // while code is being compiled
          const before = await gate.metric('tidegate_deliveries_total{route="/hooks",event="delivered"}');
          const run = await notify(gate, folder, seconds);
          const delivered = (await gate.metric('tidegate_deliveries_total{route="/hooks",event="delivered"}')) - before;
          rows.push({ durability, receiver, ...run, deliveredRate: delivered / seconds });
        } finally {
          await gate.stop();
        }
      }
    }
  } finally {
    for (const each of Object.values(receivers)) await each.stop();
  }
  return rows;
}

interface Receiver {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

async function startAcknowledging(folder: string): Promise<Receiver> {
  const port = await freePort();
  const conf = join(folder, 'nginx.conf');
  writeFileSync(
    conf,
    `daemon off; pid ${folder}/pid; events {} http { access_log off; keepalive_requests 1000000000;
server { listen 127.0.0.1:${port}; location / { return 200 ok; } } }`,
  );
  const [command, args] = pinned(PROCESSOR_OF_OTHERS, findProgram('nginx') ?? 'nginx', [
    ...['-p', folder, '-c', conf, '-e', 'stderr'],
  ]);
  const program = new Program({ command, args, stopSignal: 'SIGTERM' });
  await program.listening(port);
  return { url: `http://127.0.0.1:${port}`, stop: () => program.stop() };
}

/** Accepts connections, and sends nothing. */
async function startHanging(): Promise<Receiver> {
  const server = createServer((socket) => socket.on('error', () => undefined).unref());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return { url: `http://127.0.0.1:${port}`, stop: () => Promise.resolve(void server.close()) };
}

/** Each notification is 1 KiB of JSON, with an id of its own. */
const script = (run: number): string => `
local threads = 0
function setup(thread) threads = threads + 1; thread:set("own", threads) end
local count = 0
local filler = string.rep("x", 960)
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
function request()
  count = count + 1
  return wrk.format(nil, "/hooks", nil, '{"id":"evt_${run}_' .. own .. '_' .. count .. '","data":"' .. filler .. '"}')
end
`;

let runs = 0;

async function notify(
  { url, pid }: Gate,
  folder: string,
  seconds: number,
): Promise<Pick<SocketsRow, 'rate' | 'cpu' | 'p50' | 'p99'>> {
  runs += 1;
  const file = join(folder, 'senders.lua');
  writeFileSync(file, script(runs));
  const [command, args] = pinned(PROCESSOR_OF_OTHERS, findProgram('wrk') ?? 'wrk', [
    ...['-t1', `-c${CONNECTIONS}`, `-d${Math.max(1, seconds)}s`, '--latency', '-s', file, url],
  ]);
  const before = processorTime(pid);
  const senders = spawn(command, args);
  const [report] = await Promise.all([text(senders.stdout), once(senders, 'exit')]);
  const after = processorTime(pid);
  const [, count, took = '', unit] = /(\d+) requests in ([\d.]+)(m|s)/.exec(report) ?? [];
  const requests = Number(count);
  if (!(requests > 0) || /Non-2xx|Socket errors/.test(report)) throw new Error(`wrk: ${report}`);
  const latency = (share: string): number => {
    const [, value = '', scale = ''] = new RegExp(`${share}%\\s+([\\d.]+)(us|ms|s)`).exec(report) ?? [];
    return Number(value) * (scale === 's' ? 1000 : scale === 'us' ? 0.001 : 1);
  };
  const rate = requests / (Number(took) * (unit === 'm' ? 60 : 1));
  return { rate, cpu: (1e6 * (after - before)) / requests, p50: latency('50'), p99: latency('99') };
}
