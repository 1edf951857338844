// How much of a hidden limit a proxy makes use of, and how much it wastes, over real sockets and in real time: Tidegate,
// the proxies that people have, and none. docs/benchmarks.md says how to read it.
//
//   npm run bench:goodput -- --help

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import type { ContenderName } from './contenders.ts';
import { CONTENDERS, versionOf } from './contenders.ts';
import { METHOD } from './method.ts';
import type { Options } from './options.ts';
import { parseOptions, USAGE } from './options.ts';
import type { KindResult } from './run-kind.ts';
import { runKind } from './run-kind.ts';
import { agreementTable, goodputTable, toMarkdown, toText } from './tables.ts';

const SMOKED = 'Everything works; the figures of so short a run mean nothing.';

async function run(options: Options): Promise<void> {
  if (options.markdown !== undefined) splitAtMarks(options.markdown); // now, not after twenty minutes
  const versions = new Map(CONTENDERS.map((name) => [name, versionOf(name)] as const));
  const present = options.contenders.filter((name) => versions.get(name) !== undefined);
  const absent = options.contenders.filter((name) => !present.includes(name));
  if (absent.length > 0) console.log(`Not installed, and so not compared with: ${absent.join(', ')}.`);

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

/** A smoke run is too short to be judged by its figures. */
function judge(results: readonly KindResult[], { smoke }: Options): void {
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

type Versions = ReadonlyMap<ContenderName, string | undefined>;

function writeJson(
  file: string,
  options: Options,
  versions: Versions,
  absent: readonly ContenderName[],
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

/** JSON has none, and would say null. */
function keepInfinity(_key: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? 'Infinity' : value;
}

const BEGIN = '<!-- bench:goodput -->';
const END = '<!-- /bench:goodput -->';

function writeMarkdown(file: string, tables: string): void {
  const { before, after } = splitAtMarks(file);
  writeFileSync(file, `${before}${BEGIN}\n\n${tables}\n${END}${after}`);
}

/** @throws Error when the file is not there or has no place for the tables */
function splitAtMarks(file: string): { readonly before: string; readonly after: string } {
  const text = readFileSync(file, 'utf8');
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`${file} has no ${BEGIN} … ${END}`);
  return { before: text.slice(0, begin), after: text.slice(end + END.length) };
}

function caption({ seconds, warmup, seed, workers, date }: Options, versions: Versions): string {
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
