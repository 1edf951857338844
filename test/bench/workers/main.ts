// What a second worker is worth: requests a second of one worker and of two, with the upstream and the clients beside them on the
// same processors. Both of those are written in C here (nginx, wrk), so that they take little of what there is. Beside them two
// proxies that share nothing: what two workers could do at most.
//
//   npm run bench:workers -- --help

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findProgram } from '../../setup/find-program.ts';
import { ensureBuilt } from '../build.ts';
import { writeSection } from '../control/section.ts';
import type { Table } from '../control/table.ts';
import { toMarkdown, toText } from '../control/table.ts';
import type { Spread } from '../overhead/runs.ts';
import { spreadOf } from '../overhead/runs.ts';
import { freePort, Program } from '../program.ts';
import type { Run } from './load.ts';
import { CONNECTIONS, load } from './load.ts';
import type { Setup } from './setups.ts';
import { originConfig, startSetups } from './setups.ts';

const USAGE = `npm run bench:workers -- [options]

  --rounds N        how often each is measured, in turn (7)
  --seconds N       counted time of each run (4)
  --smoke           a moment of each: does it all work?
  --markdown FILE   puts the table between the marks of that file
`;

const GOAL = 1.5;
/** Until code is compiled. */
const WARM_UP = 8;

interface Options {
  readonly rounds: number;
  readonly seconds: number;
  readonly smoke: boolean;
  readonly markdown: string | undefined;
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
    const origin = start(new Program({ command: nginx, args, stopSignal: 'SIGTERM' }));
    await origin.listening(port);
    const setups = await startSetups(`http://127.0.0.1:${port}`, folder, start);
    const measure = (setup: Setup, seconds: number): Promise<Run> => load(setup, { wrk, origin, folder, seconds });
    const runs = new Map<Setup, Run[]>(setups.map((setup) => [setup, []]));
    for (const setup of setups) await measure(setup, options.smoke ? 1 : WARM_UP);
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const [setup, own] of runs) {
        const one = await measure(setup, options.seconds);
        own.push(one);
        console.log(`${round}. ${setup.name}: ${one.rate.toFixed(0)}/s, p99 ${one.p99.toFixed(1)} ms, ${shares(one)}`);
      }
    }
    report(runs, options);
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
    rmSync(folder, { recursive: true, force: true });
  }
}

function shares({ proxy, upstream, clients }: Run): string {
  return `${proxy.toFixed(0)} + ${upstream.toFixed(0)} + ${clients.toFixed(0)} µs`;
}

function report(runs: ReadonlyMap<Setup, readonly Run[]>, { smoke, markdown }: Options): void {
  const [one = Number.NaN, two = Number.NaN, apart = Number.NaN] = [...runs.values()].map(
    (own) => spread(own, ({ rate }) => rate).median,
  );
  const ratio = two / one;
  const table: Table = {
    title: `GET 1 KB, ${CONNECTIONS} connections, ${availableParallelism()} processors`,
    head: ['', 'requests/s', 'min–max', 'p99', 'µs of the proxy', 'of nginx', 'of wrk'],
    rows: [...runs].map(([setup, own]) => rowOf(setup, own)),
    note: `Two workers do ${ratio.toFixed(2)} times what one does, and ${(two / apart).toFixed(2)} times what two proxies do that share nothing.`,
  };
  console.log(`\n${toText(table)}`);
  if (markdown !== undefined) writeSection(markdown, 'workers', toMarkdown(table));
  if (smoke) console.log('Everything works; the figures of so short a run mean nothing.');
  else if (!(ratio >= GOAL)) {
    console.error(`FAULT two workers do ${ratio.toFixed(2)} times what one does; the goal is ${GOAL}`);
    process.exitCode = 1;
  }
}

function rowOf({ name }: Setup, own: readonly Run[]): string[] {
  const rate = spread(own, (each) => each.rate);
  const median = (figure: (each: Run) => number, digits = 0): string => spread(own, figure).median.toFixed(digits);
  return [
    name,
    rate.median.toFixed(0),
    `${rate.min.toFixed(0)}–${rate.max.toFixed(0)}`,
    `${median(({ p99 }) => p99, 1)} ms`,
    median(({ proxy }) => proxy),
    median(({ upstream }) => upstream),
    median(({ clients }) => clients),
  ];
}

function spread(own: readonly Run[], figure: (each: Run) => number): Spread {
  return spreadOf(own.map(figure)) ?? { median: Number.NaN, min: Number.NaN, max: Number.NaN };
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else await run(options);
} catch (error) {
  console.error(`bench:workers: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
