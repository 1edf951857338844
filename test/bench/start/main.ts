// Time to the first response, and memory, of Tidegate: built and from source, with and without Node's compile cache.
// docs/start.md has the results. Linux only: memory is read from /proc.
//
//   npm run bench:start -- --help

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeSection } from '../control/section.ts';
import type { ControlTable } from '../control/table.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { ensureBuilt } from '../build.ts';
import type { StartMeasurement, StartOptions } from './measure.ts';
import { measureStart } from './measure.ts';
import type { StartBenchOptions } from './options.ts';
import { parseOptions, USAGE } from './options.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Goals for dist: maximum ms to the first 200, and maximum idle memory in bytes. */
const GOALS = { first: 320, idle: 95e6 };

const KINDS = [
  { name: 'dist, cache empty', main: 'dist/main.js', isWarm: false, isJudged: true },
  { name: 'dist, cache filled', main: 'dist/main.js', isWarm: true, isJudged: true },
  { name: 'source, cache empty', main: 'src/main.ts', isWarm: false, isJudged: false },
  { name: 'source, cache filled', main: 'src/main.ts', isWarm: true, isJudged: false },
] as const;

type Kind = (typeof KINDS)[number];
type Results = ReadonlyMap<Kind, readonly StartMeasurement[]>;

async function run(options: StartBenchOptions): Promise<void> {
  ensureBuilt();
  const upstream = createServer((_, response) => response.end('ok\n'));
  await new Promise<void>((resolve) => {
    upstream.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-start-'));
  try {
    const results = await measureAll(options, url, folder);
    const table = tabulate(results, options);
    console.log(`\n${toText(table)}`);
    if (options.json !== undefined) writeJson(options.json, results, options);
    if (options.markdown !== undefined) writeSection(options.markdown, 'start', toMarkdown(table));
    if (options.smoke) console.log('Smoke run passed; figures of one start are not meaningful.');
    else judge(results);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    upstream.close();
    upstream.closeAllConnections();
  }
}

/** Measures in turn, so that other load affects all alike. */
async function measureAll(
  { runs, idle, requests }: StartBenchOptions,
  upstream: string,
  folder: string,
): Promise<Results> {
  const results = new Map<Kind, StartMeasurement[]>(KINDS.map((kind) => [kind, []]));
  const start = (kind: Kind, cache: string, more: Partial<StartOptions> = {}): Promise<StartMeasurement> =>
    measureStart({ main: kind.main, root: ROOT, upstream, cache, idle, requests, ...more });
  const filled = new Map(KINDS.map((kind) => [kind, join(folder, kind.name.replaceAll(/\W+/g, '-'))]));
  // A normal exit writes the compile cache.
  for (const [kind, cache] of filled) if (kind.isWarm) await start(kind, cache, { idle: 0, requests: 10 });
  for (let nth = 0; nth < runs; nth += 1) {
    for (const [kind, starts] of results) {
      const cache = kind.isWarm ? (filled.get(kind) ?? folder) : mkdtempSync(join(folder, 'empty-'));
      const measured = await start(kind, cache);
      starts.push(measured);
      console.log(`${kind.name}: first 200 after ${inMs(measured.first)} ms, ${inMb(measured.idle)} MB`);
    }
  }
  return results;
}

function tabulate(results: Results, { runs, idle, requests, date }: StartBenchOptions): ControlTable {
  const of = (
    starts: readonly StartMeasurement[],
    figure: keyof StartMeasurement,
    write: (value: number) => string,
  ): string => {
    const [least, middle, most] = spread(starts.map((start) => start[figure])).map(write);
    return `${middle} (${least}–${most})`;
  };
  return {
    title: 'Time to the first response, and memory',
    note: `Medians of ${runs} starts in turn (least–most). Memory: resident, 1 MB = 10⁶ bytes. ${date === undefined ? '' : `${date}. `}Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}; load ${loadavg()[0]?.toFixed(1)} at the end.`,
    head: [
      '',
      'listening, ms',
      'first 200, ms',
      'processor by then, ms',
      `idle after ${idle} s, MB`,
      `after ${requests} requests, MB`,
    ],
    rows: [...results].map(([{ name }, starts]) => [
      name,
      of(starts, 'listening', inMs),
      of(starts, 'first', inMs),
      of(starts, 'processor', inMs),
      of(starts, 'idle', inMb),
      of(starts, 'loaded', inMb),
    ]),
  };
}

function judge(results: Results): void {
  for (const [{ name, isJudged }, starts] of results) {
    if (!isJudged) continue;
    const first = spread(starts.map((start) => start.first))[1];
    const idle = spread(starts.map((start) => start.idle))[1];
    formatGoal(`${name}: first 200 within ${GOALS.first} ms: ${inMs(first)} ms`, first <= GOALS.first);
    formatGoal(`${name}: less than ${inMb(GOALS.idle)} MB when idle: ${inMb(idle)} MB`, idle < GOALS.idle);
  }
}

function formatGoal(what: string, isMet: boolean): void {
  console.log(`${isMet ? 'met' : 'MISSED'}: ${what}`);
  if (!isMet) process.exitCode = 1;
}

/** Returns minimum, median and maximum. */
function spread(values: readonly number[]): readonly [number, number, number] {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return [at(0), (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2, at(sorted.length - 1)];
}

function inMs(ms: number): string {
  return ms.toFixed(0);
}

function inMb(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}

function writeJson(file: string, results: Results, options: StartBenchOptions): void {
  const method = { ...options, goals: GOALS, node: process.version, processors: cpus().map(({ model }) => model) };
  const kinds = [...results].map(([{ name }, starts]) => ({ name, starts }));
  writeFileSync(file, `${JSON.stringify({ method, kinds }, null, 2)}\n`);
}

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else await run(options);
} catch (error) {
  console.error(`bench:start: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
