// Goodput under a hidden limit and at services that queue, over real sockets and in real time, for Tidegate, common proxies, and
// no proxy.
// docs/benchmarks.md explains the results.
//
//   npm run bench:goodput -- --help

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { writeSection } from '../control/section.ts';
import type { GoodputContenderName } from './contenders.ts';
import { CONTENDERS, versionOf } from './contenders.ts';
import { METHOD } from './method.ts';
import type { GoodputOptions } from './options.ts';
import { parseOptions, USAGE } from './options.ts';
import type { KindResult } from './run-kind.ts';
import { runKind } from './run-kind.ts';
import type { ServiceResult } from './services/run-service.ts';
import { runServices } from './services/run-service.ts';
import { SERVICE_CONTENDERS, serviceVersionOf } from './services/service-contenders.ts';
import { describeServiceRow, missedGoals, serviceGoalTable, serviceTable } from './services/service-tables.ts';
import { agreementTable, goodputTable, toMarkdown, toText } from './tables.ts';

const SMOKED = 'Smoke run passed; figures of so short a run are not meaningful.';

async function run(options: GoodputOptions): Promise<void> {
  const hasLimits = options.kinds.length > 0 && options.contenders.length > 0;
  if (options.markdown !== undefined && hasLimits) splitAtMarks(options.markdown); // fails now, not after twenty minutes
  const versions: Versions = new Map([
    ...SERVICE_CONTENDERS.map((name) => [name, serviceVersionOf(name)] as const),
    ...CONTENDERS.map((name) => [name, versionOf(name)] as const),
  ]);
  const isPresent = (name: string): boolean => versions.get(name) !== undefined;
  const asked = new Set<string>([
    ...(hasLimits ? options.contenders : []),
    ...(options.services.length > 0 ? options.serviceContenders : []),
  ]);
  const missing = [...asked].filter((name) => !isPresent(name));
  if (missing.length > 0) console.log(`Not installed, left out of the comparison: ${missing.join(', ')}.`);
  console.log(
    [...asked]
      .filter(isPresent)
      .map((name) => `${name}: ${versions.get(name)}`)
      .join('\n'),
  );

  const results = hasLimits ? await runLimits(options, options.contenders.filter(isPresent)) : [];
  const services = await runServices(options.serviceContenders.filter(isPresent), options, (kind, row) =>
    console.log(describeServiceRow(kind, row)),
  );

  const isCompared = !options.smoke && results.some(({ agreement }) => agreement !== undefined);
  const absent = options.contenders.filter((name) => !isPresent(name));
  const limitTables = [goodputTable(results, absent), ...(isCompared ? [agreementTable(results)] : [])];
  const absentAtServices = options.serviceContenders.filter((name) => !isPresent(name));
  const goals = serviceGoalTable(services);
  const areGoalsJudged = !options.smoke && goals.rows.length > 0;
  const serviceTables = [serviceTable(services, absentAtServices), ...(areGoalsJudged ? [goals] : [])];
  const tables = [...(hasLimits ? limitTables : []), ...(services.length > 0 ? serviceTables : [])];
  for (const table of tables) console.log(`\n${toText(table)}`);
  if (options.json !== undefined) writeJson(options.json, options, versions, missing, results, services);
  if (options.markdown !== undefined) {
    if (hasLimits) {
      writeMarkdown(options.markdown, [...limitTables.map(toMarkdown), caption(options, versions)].join('\n'));
    }
    if (services.length > 0) {
      const text = [...serviceTables.map(toMarkdown), serviceCaption(options, versions)].join('\n');
      writeSection(options.markdown, SERVICES_SECTION, `\n${text}`);
    }
  }
  judge(results, services, options);
}

async function runLimits(options: GoodputOptions, present: readonly GoodputContenderName[]): Promise<KindResult[]> {
  const results: KindResult[] = [];
  for (const [index, kind] of options.kinds.entries()) {
    const contenders = options.smoke && index > 0 ? present.slice(0, 1) : present;
    const result = await runKind(kind, contenders, options, ({ contender, goodput, waste, measurement }) => {
      const figures = `goodput ${goodput.toFixed(3)}, waste ${waste.toFixed(4)}`;
      console.log(`${kind.title}: ${contender}: ${figures}, sent ${measurement.lateness.toFixed(1)} ms late at p99`);
    });
    results.push(result);
  }
  return results;
}

/** Does not judge the figures of a smoke run, which is too short. */
function judge(results: readonly KindResult[], services: readonly ServiceResult[], { smoke }: GoodputOptions): void {
  const faults = [...results, ...services].flatMap((result) => [...result.faults]);
  if (!smoke) {
    for (const { kind, agreement } of results) {
      if (agreement === undefined) continue;
      for (const what of ['goodput', 'waste'] as const) {
        if (!agreement[what].agrees) faults.push(`${kind.name}: ${what} is not what the simulator says`);
      }
    }
    faults.push(...missedGoals(services));
  }
  for (const fault of faults) console.error(`FAULT ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
  else if (smoke) console.log(SMOKED);
}

type Versions = ReadonlyMap<string, string | undefined>;

function writeJson(
  file: string,
  options: GoodputOptions,
  versions: Versions,
  absent: readonly string[],
  results: readonly KindResult[],
  services: readonly ServiceResult[],
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
  writeFileSync(file, `${JSON.stringify({ method, results, services }, keepNonFinite, 2)}\n`);
}

/** Preserves Infinity and NaN, which JSON would write as null. */
function keepNonFinite(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}

const BEGIN = '<!-- bench:goodput -->';
const END = '<!-- /bench:goodput -->';
const SERVICES_SECTION = 'goodput-services';

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

function caption(options: GoodputOptions, versions: Versions): string {
  const { seconds, warmup } = options;
  const times = `${seconds ?? '30'} s after a warm-up of ${warmup ?? '10'} s`;
  const slowly = seconds === undefined && warmup === undefined ? ', 60 s after 30 s where a limit is found slowly' : '';
  return setting(`${times}${slowly}`, options, versions, ['nginx', 'haproxy']);
}

function serviceCaption(options: GoodputOptions, versions: Versions): string {
  const times = options.services.map(
    ({ name, seconds, warmup }) => `${name}: ${options.seconds ?? seconds} s after ${options.warmup ?? warmup} s`,
  );
  return setting(times.join(', '), options, versions, ['nginx', 'haproxy', 'caddy']);
}

function setting(
  times: string,
  { seed, workers, date }: GoodputOptions,
  versions: Versions,
  peers: readonly string[],
): string {
  const against = peers.map((name) => `${name} ${versions.get(name) ?? '(not installed)'}`);
  const when = date === undefined ? '' : `${date}. `;
  return `${when}${times}; seed ${seed}${workers === 1 ? '' : `; ${workers} workers`}; Node ${process.version}, ${against.join(', ')}; ${processors()}.\n`;
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
