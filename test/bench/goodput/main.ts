// Goodput and waste under a hidden limit over real sockets and in real time, for Tidegate, common proxies, and no proxy.
// docs/benchmarks.md explains the results.
//
//   npm run bench:goodput -- --help

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import type { GoodputContenderName } from './contenders.ts';
import { CONTENDERS, versionOf } from './contenders.ts';
import { METHOD } from './method.ts';
import type { GoodputOptions } from './options.ts';
import { parseOptions, USAGE } from './options.ts';
import type { KindResult } from './run-kind.ts';
import { runKind } from './run-kind.ts';
import { agreementTable, goodputTable, toMarkdown, toText } from './tables.ts';

const SMOKED = 'Smoke run passed; figures of so short a run are not meaningful.';

async function run(options: GoodputOptions): Promise<void> {
  if (options.markdown !== undefined) splitAtMarks(options.markdown); // fails now, not after twenty minutes
  const versions = new Map(CONTENDERS.map((name) => [name, versionOf(name)] as const));
  const present = options.contenders.filter((name) => versions.get(name) !== undefined);
  const absent = options.contenders.filter((name) => !present.includes(name));
  if (absent.length > 0) console.log(`Not installed, left out of the comparison: ${absent.join(', ')}.`);

  console.log(present.map((name) => `${name}: ${versions.get(name)}`).join('\n'));

  const results: KindResult[] = [];
  for (const [index, kind] of options.kinds.entries()) {
    const contenders = options.smoke && index > 0 ? present.slice(0, 1) : present;
    const result = await runKind(kind, contenders, options, ({ contender, goodput, waste, measurement }) => {
      const figures = `goodput ${goodput.toFixed(3)}, waste ${waste.toFixed(4)}`;
      console.log(`${kind.title}: ${contender}: ${figures}, sent ${measurement.lateness.toFixed(1)} ms late at p99`);
    });
    results.push(result);
  }

  const isCompared = !options.smoke && present.includes('tidegate');
  const tables = [goodputTable(results, absent), ...(isCompared ? [agreementTable(results)] : [])];
  for (const table of tables) console.log(`\n${toText(table)}`);
  if (options.json !== undefined) writeJson(options.json, options, versions, absent, results);
  if (options.markdown !== undefined) {
    writeMarkdown(options.markdown, [...tables.map(toMarkdown), caption(options, versions)].join('\n'));
  }
  judge(results, options);
}

/** Does not judge the figures of a smoke run, which is too short. */
function judge(results: readonly KindResult[], { smoke }: GoodputOptions): void {
  const faults = results.flatMap((result) => [...result.faults]);
  if (!smoke) {
    for (const { kind, agreement } of results) {
      if (agreement === undefined) continue;
      for (const what of ['goodput', 'waste'] as const) {
        if (!agreement[what].agrees) faults.push(`${kind.name}: ${what} is not what the simulator says`);
      }
    }
  }
  for (const fault of faults) console.error(`FAULT ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
  else if (smoke) console.log(SMOKED);
}

type Versions = ReadonlyMap<GoodputContenderName, string | undefined>;

function writeJson(
  file: string,
  options: GoodputOptions,
  versions: Versions,
  absent: readonly GoodputContenderName[],
  results: readonly KindResult[],
): void {
  const { seconds, warmup, seed, workers, date } = options;
  const method = {
    ...METHOD,
    seconds,
    warmup,
    seed,
    workers,
    date,
    versions: Object.fromEntries(versions),
    absent,
    processors: processors(),
  };
  writeFileSync(file, `${JSON.stringify({ method, results }, keepInfinity, 2)}\n`);
}

/** Preserves Infinity, which JSON would write as null. */
function keepInfinity(_key: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? 'Infinity' : value;
}

const BEGIN = '<!-- bench:goodput -->';
const END = '<!-- /bench:goodput -->';

function writeMarkdown(file: string, tables: string): void {
  const { before, after } = splitAtMarks(file);
  writeFileSync(file, `${before}${BEGIN}\n\n${tables}\n${END}${after}`);
}

/** @throws Error if the file or its marks are missing */
function splitAtMarks(file: string): { readonly before: string; readonly after: string } {
  const text = readFileSync(file, 'utf8');
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`${file} has no ${BEGIN} … ${END}`);
  return { before: text.slice(0, begin), after: text.slice(end + END.length) };
}

function caption({ seconds, warmup, seed, workers, date }: GoodputOptions, versions: Versions): string {
  const against = (['nginx', 'haproxy'] as const).map((name) => `${name} ${versions.get(name) ?? '(not installed)'}`);
  const when = date === undefined ? '' : `${date}. `;
  const times = `${seconds ?? '30'} s after a warm-up of ${warmup ?? '10'} s`;
  const slowly = seconds === undefined && warmup === undefined ? ', 60 s after 30 s where a limit is found slowly' : '';
  return `${when}${times}${slowly}; seed ${seed}${workers === 1 ? '' : `; ${workers} workers`}; Node ${process.version}, ${against.join(', ')}; ${processors()}.\n`;
}

function processors(): string {
  return `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}`;
}

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else await run(options);
} catch (error) {
  console.error(`bench:goodput: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
