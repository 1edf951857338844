// The cost of idempotency keys: responses a second, CPU time and latency of GETs, of POSTs without a key, and of POSTs with a new key
// each, for each place that keeps the keys. All are measured in turn. docs/performance.md has the results.
//
//   npm run bench:keys -- [--rounds N] [--seconds N] [--smoke] [--markdown FILE]

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProgram } from '../../setup/find-program.ts';
import { BUILT, ensureBuilt } from '../build.ts';
import { writeSection } from '../control/section.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { Program } from '../program.ts';
import { freePort } from '../../support/free-port.ts';
import { readOptions } from '../workers/options.ts';
import { type KeysRun, load } from './load.ts';
import { SETUPS, STORED, WITHOUT_KEY } from './setups.ts';

const USAGE = `npm run bench:keys -- [--rounds N] [--seconds N] [--smoke] [--markdown FILE]

Ends with 1 when fewer than 5000 writes a second with a key are stored in SQLite with \`durability: normal\`.`;
const CONNECTIONS = 32;
/** Responses a second, of one process. */
const GOAL = 5000;

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
      standing.push({
        setup,
        url: `http://127.0.0.1:${gatePort}`,
        pid: program.pid ?? 0,
        request: setup.request,
        busy: [] as KeysRun[],
        quiet: [] as KeysRun[],
      });
    }
    await sleep(500);
    for (const each of standing) await load(each, { connections: CONNECTIONS, seconds: options.smoke ? 1 : 6, folder });
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const each of standing) {
        each.busy.push(await load(each, { connections: CONNECTIONS, seconds: options.seconds, folder }));
        each.quiet.push(await load(each, { connections: 1, seconds: 1, folder }));
      }
      console.log(`round ${round} of ${options.rounds}`);
    }
    const plain = standing.find(({ setup }) => setup.name === WITHOUT_KEY)?.quiet ?? [];
    const rows = standing.map(({ setup, busy, quiet }) => {
      const of = (figure: keyof KeysRun): number => median(busy.map((each) => each[figure]));
      const added = (figure: 'p50' | 'p99'): string =>
        median(quiet.map((each, i) => each[figure] - (plain[i]?.[figure] ?? Number.NaN))).toFixed(2);
      return [
        setup.name,
        of('rate').toFixed(0),
        of('cpu').toFixed(0),
        of('p99').toFixed(1),
        added('p50'),
        added('p99'),
      ];
    });
    const table = {
      title: `GETs, and POSTs without a key or with a new key each`,
      head: ['requests', 'responses/s', 'CPU µs', 'p99 ms', 'added p50 ms', 'added p99 ms'],
      rows,
    };
    console.log(toText(table));
    if (options.markdown !== undefined) writeSection(options.markdown, 'keys', toMarkdown(table));
    const stored = Number(rows.find(([name]) => name === STORED)?.[1]);
    if (options.smoke || stored >= GOAL) return;
    console.error(`${STORED}: ${stored} responses a second, fewer than ${GOAL}`);
    process.exitCode = 1;
  } finally {
    for (const program of programs.toReversed()) await program.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

await run(process.argv.slice(2));
