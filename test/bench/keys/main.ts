// The cost of idempotency keys: responses a second, CPU time and latency of POSTs without a key, and with a new key each, for each
// place that keeps the keys. All are measured in turn. docs/performance.md has the results.
//
//   npm run bench:keys -- [--rounds N] [--seconds N] [--smoke] [--markdown FILE]

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProgram } from '../../setup/find-program.ts';
import { BUILT, ensureBuilt } from '../build.ts';
import { writeSection } from '../control/section.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { processorTime } from '../overhead/processor-time.ts';
import { freePort, Program } from '../program.ts';
import { readOptions } from '../workers/options.ts';

const USAGE = 'npm run bench:keys -- [--rounds N] [--seconds N] [--smoke] [--markdown FILE]';
const CONNECTIONS = 32;

interface KeysSetup {
  readonly name: string;
  readonly isKeyed: boolean;
  /** Responses are kept for repeats. */
  readonly keeps?: boolean;
  /** Lines of the configuration. @param folder for its files */
  readonly config: (folder: string, redisPort: number) => string;
}

const SETUPS: readonly KeysSetup[] = [
  { name: 'no key', isKeyed: false, config: () => '' },
  { name: 'key, memory', isKeyed: true, config: () => '' },
  { name: 'key and response, memory', isKeyed: true, keeps: true, config: () => '' },
  ...(['normal', 'full'] as const).map((durability) => ({
    name: `key, sqlite ${durability}`,
    isKeyed: true,
    config: (folder: string) => `state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: ${durability}}`,
  })),
  {
    name: 'key and response, sqlite normal',
    isKeyed: true,
    keeps: true,
    config: (folder) =>
      `secret: ${'s'.repeat(32)}\nstate: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}`,
  },
  { name: 'no key, workers', isKeyed: false, config: () => 'workers: 2' },
  { name: 'key, workers', isKeyed: true, config: () => 'workers: 2' },
  ...[false, true].map((isKeyed) => ({
    name: isKeyed ? 'key, redis' : 'no key, redis',
    isKeyed,
    config: (_folder: string, port: number) =>
      `state: {store: redis, url: "redis://127.0.0.1:${port}", prefix: ${isKeyed ? 'keyed' : 'plain'}}`,
  })),
];

/** Each thread of wrk has keys of its own. */
const script = (isKeyed: boolean, run: number): string => `
local threads = 0
function setup(thread) threads = threads + 1; thread:set("own", threads) end
local count = 0
wrk.method = "POST"
wrk.body = '{"amount":100,"currency":"eur"}'
wrk.headers["Content-Type"] = "application/json"
function request()
  count = count + 1
  ${isKeyed ? `wrk.headers["Idempotency-Key"] = "${run}-" .. own .. "-" .. count` : ''}
  return wrk.format(nil, "/v1/charges")
end
`;

interface KeysRun {
  readonly rate: number;
  /** CPU microseconds per request. */
  readonly cpu: number;
  /** In milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

let runs = 0;

async function load(url: string, pid: number, isKeyed: boolean, folder: string, seconds: number): Promise<KeysRun> {
  runs += 1;
  const file = join(folder, 'clients.lua');
  writeFileSync(file, script(isKeyed, runs));
  const wrk = findProgram('wrk') ?? 'wrk';
  const before = processorTime(pid);
  const clients = spawn(wrk, ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--latency', '-s', file, url]);
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

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function run(args: readonly string[]): Promise<void> {
  const options = readOptions(args);
  if (options === 'help') return console.log(USAGE);
  ensureBuilt();
  const [nginx, redis, wrk] = ['nginx', 'redis-server', 'wrk'].map((name) => findProgram(name));
  if (nginx === undefined || redis === undefined || wrk === undefined) throw new Error('needs nginx, redis and wrk');
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-keys-'));
  const programs: Program[] = [];
  try {
    const port = await freePort();
    const conf = join(folder, 'nginx.conf');
    writeFileSync(
      conf,
      `daemon off; pid ${folder}/pid; events {} http { access_log off; keepalive_requests 1000000000;
server { listen 127.0.0.1:${port}; location / { return 200 '{"status":"succeeded"}'; } } }`,
    );
    const start = (command: string, commandArgs: readonly string[]): Program => {
      const program = new Program({ command, args: commandArgs, stopSignal: 'SIGTERM' });
      programs.push(program);
      return program;
    };
    await start(nginx, ['-p', folder, '-c', conf, '-e', 'stderr']).listening(port);
    const redisPort = await freePort();
    const redisArgs = ['--port', String(redisPort), '--dir', folder, '--save', '', '--appendonly', 'yes'];
    await start(redis, redisArgs).listening(redisPort);
    const standing = [];
    for (const setup of SETUPS) {
      const own = mkdtempSync(join(folder, 'gate-'));
      const file = join(own, 'tidegate.yaml');
      const config = `listen: 127.0.0.1:0\nadmin: false\nlog: {level: warn}\n${setup.config(own, redisPort)}\n`;
      const gatePort = await freePort();
      const listen = config.replace('127.0.0.1:0', `127.0.0.1:${gatePort}`);
      const idempotency = `{ttl: 24h${setup.keeps === true ? ', replayAnswers: 24h' : ''}}`;
      writeFileSync(
        file,
        `${listen}upstreams: {api: {url: "http://127.0.0.1:${port}", idempotency: ${idempotency}}}\n`,
      );
      const program = start(process.execPath, [BUILT, 'serve', '--config', file]);
      await program.listening(gatePort);
      standing.push({ setup, url: `http://127.0.0.1:${gatePort}`, pid: program.pid ?? 0, runs: [] as KeysRun[] });
    }
    await sleep(500);
    for (const { url, pid, setup } of standing) await load(url, pid, setup.isKeyed, folder, options.smoke ? 1 : 6);
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const each of standing) {
        each.runs.push(await load(each.url, each.pid, each.setup.isKeyed, folder, options.seconds));
      }
      console.log(`round ${round} of ${options.rounds}`);
    }
    const rows = standing.map(({ setup, runs: own }) => {
      const of = (figure: keyof KeysRun): number => median(own.map((each) => each[figure]));
      return [setup.name, of('rate').toFixed(0), of('cpu').toFixed(0), of('p50').toFixed(2), of('p99').toFixed(2)];
    });
    const table = {
      title: `POSTs with a new idempotency key each, ${CONNECTIONS} connections`,
      head: ['keys', 'responses/s', 'CPU µs', 'p50 ms', 'p99 ms'],
      rows,
    };
    console.log(toText(table));
    if (options.markdown !== undefined) writeSection(options.markdown, 'keys', toMarkdown(table));
  } finally {
    for (const program of programs.toReversed()) await program.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

await run(process.argv.slice(2));
