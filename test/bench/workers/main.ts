// What a second worker is worth: requests a second of one worker and of two, with the upstream and the clients beside them on the
// same processors. Both of those are written in C here (nginx, wrk), so that they take little of what there is.
//
//   npm run bench:workers -- --help

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findProgram } from '../../setup/find-program.ts';
import { BUILT, ensureBuilt } from '../build.ts';
import { writeSection } from '../control/section.ts';
import type { Table } from '../control/table.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { tidegateConfig } from '../overhead/configs.ts';
import type { Spread } from '../overhead/runs.ts';
import { spreadOf } from '../overhead/runs.ts';
import { nginxFrame } from '../nginx-frame.ts';
import { freePort, Program } from '../program.ts';

const USAGE = `npm run bench:workers -- [options]

  --rounds N        how often each is measured, in turn (7)
  --seconds N       counted time of each run (4)
  --smoke           a moment of each: does it all work?
  --markdown FILE   puts the table between the marks of that file
`;

const GOAL = 1.5;
const CONNECTIONS = 64;
const BODY = 1024;
const WORKERS = [1, 2] as const;

interface Options {
  readonly rounds: number;
  readonly seconds: number;
  readonly smoke: boolean;
  readonly markdown: string | undefined;
}

interface Run {
  readonly rate: number;
  /** In milliseconds. */
  readonly p99: number;
}

function readOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      markdown: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const { smoke, markdown } = values;
  const rounds = Number(values.rounds ?? (smoke ? 1 : 7));
  const seconds = Number(values.seconds ?? (smoke ? 1 : 4));
  if (!(rounds >= 1 && rounds <= 1000)) throw new Error(`--rounds ${values.rounds}: expected a number from 1`);
  if (!Number.isInteger(seconds) || seconds < 1) throw new Error(`--seconds ${values.seconds}: expected whole seconds`);
  return { rounds, seconds, smoke, markdown };
}

function originConfig(port: number, folder: string): string {
  return nginxFrame(
    folder,
    'off',
    `  server {
    listen 127.0.0.1:${port};
    location / { return 200 "${'x'.repeat(BODY)}"; }
  }
`,
  );
}

function startTidegate(workers: number, origin: string, folder: string): Program {
  const file = join(folder, `${workers}.yaml`);
  writeFileSync(file, `${tidegateConfig(origin)}workers: ${workers}\ndrain: {delay: 0, timeout: 1s}\n`);
  return new Program({
    command: process.execPath,
    args: [BUILT, 'serve', '--config', file],
    stopSignal: 'SIGTERM',
    output: join(folder, `${workers}.log`),
  });
}

/** Runs the clients. Rejects when any request failed. */
function load(wrk: string, url: string, seconds: number): Run {
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--latency', url];
  const { stdout, stderr } = spawnSync(wrk, args, { encoding: 'utf8' });
  const rate = Number(/Requests\/sec:\s*([\d.]+)/.exec(stdout)?.[1] ?? Number.NaN);
  const [, value = '', unit = ''] = /99%\s+([\d.]+)(us|ms|s)/.exec(stdout) ?? [];
  if (!(rate > 0) || /Non-2xx|Socket errors/.test(stdout)) throw new Error(`wrk: ${stdout}${stderr}`);
  return { rate, p99: Number(value) * (unit === 's' ? 1000 : unit === 'us' ? 0.001 : 1) };
}

async function run(options: Options): Promise<void> {
  ensureBuilt();
  const [nginx, wrk] = [findProgram('nginx'), findProgram('wrk')];
  if (nginx === undefined || wrk === undefined) throw new Error('needs nginx and wrk: apt-get install nginx wrk');
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-workers-'));
  const programs: Program[] = [];
  const start = (program: Program): Program => {
    programs.push(program);
    return program;
  };
  try {
    const port = await freePort();
    const file = join(folder, 'nginx.conf');
    writeFileSync(file, originConfig(port, folder));
    const args = ['-p', folder, '-c', file, '-e', 'stderr'];
    await start(new Program({ command: nginx, args, stopSignal: 'SIGTERM' })).listening(port);
    const urls = new Map<number, string>();
    for (const workers of WORKERS) {
      const program = start(startTidegate(workers, `http://127.0.0.1:${port}`, folder));
      urls.set(workers, await program.printed(/"url":"(http:[^"]+)".*"msg":"listening"/));
    }
    const runs = new Map<number, Run[]>(WORKERS.map((workers) => [workers, []]));
    for (const url of urls.values()) load(wrk, url, options.seconds); // until code is compiled
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const [workers, url] of urls) {
        const one = load(wrk, url, options.seconds);
        runs.get(workers)?.push(one);
        console.log(`${round}. ${workers} of them: ${one.rate.toFixed(0)}/s, p99 ${one.p99.toFixed(1)} ms`);
      }
    }
    report(runs, options);
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
    rmSync(folder, { recursive: true, force: true });
  }
}

function report(runs: ReadonlyMap<number, readonly Run[]>, { smoke, markdown }: Options): void {
  const spread = (workers: number, figure: (each: Run) => number): Spread =>
    spreadOf((runs.get(workers) ?? []).map(figure)) ?? { median: Number.NaN, min: Number.NaN, max: Number.NaN };
  const rate = ({ rate: each }: Run): number => each;
  const ratio = spread(2, rate).median / spread(1, rate).median;
  const table: Table = {
    title: `GET 1 KB, ${CONNECTIONS} connections, ${availableParallelism()} processors`,
    head: ['workers', 'requests/s', 'min–max', 'p99'],
    rows: WORKERS.map((workers) => {
      const { median, min, max } = spread(workers, rate);
      const p99 = spread(workers, (each) => each.p99).median;
      return [String(workers), median.toFixed(0), `${min.toFixed(0)}–${max.toFixed(0)}`, `${p99.toFixed(1)} ms`];
    }),
    note: `Two do ${ratio.toFixed(2)} times what one does.`,
  };
  console.log(`\n${toText(table)}`);
  if (markdown !== undefined) writeSection(markdown, 'workers', toMarkdown(table));
  if (smoke) console.log('Everything works; the figures of so short a run mean nothing.');
  else if (!(ratio >= GOAL)) {
    console.error(`FAULT two workers do ${ratio.toFixed(2)} times what one does; the goal is ${GOAL}`);
    process.exitCode = 1;
  }
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else await run(options);
} catch (error) {
  console.error(`bench:workers: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
