// The cost of a proxy: CPU time per request, throughput and latency. Compares Tidegate with its default features to other
// proxies and to a minimal proxy in Node, in repeated rounds. docs/performance.md explains the results.
//
//   npm run bench:overhead -- --help

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeSection } from '../control/section.ts';
import type { ControlTable } from '../control/table.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { Program } from '../program.ts';
import type { OverheadContenderName, RunningContender } from './contenders.ts';
import { pinned, programOf, startContender, versionOf } from './contenders.ts';
import { GOALS, isMet } from './goals.ts';
import type { OverheadMeasurement } from './measure.ts';
import { measure } from './measure.ts';
import type { OverheadOptions } from './options.ts';
import { parseOptions, USAGE } from './options.ts';
import type { OverheadLoadPlan } from './plan.ts';
import type { OverheadRun } from './runs.ts';
import { figureOf, PACED, throughput } from './runs.ts';
import { goalTable, latencyTable, pairedTable, workloadTable } from './tables.ts';
import type { OverheadWorkload } from './workloads.ts';
import { CONNECTIONS, WORKLOADS } from './workloads.ts';

/** Share of the minimal proxy's throughput. */
const LOAD = 0.2;
/** Warm-up in ms before counting. While V8 compiles hot code, its threads share the one processor. */
const COMPILED: Readonly<Record<string, number>> = { 'get-1k': 10_000, 'post-1k': 5000, 'get-1m': 2000 };
const [GET_1K] = WORKLOADS;

async function run(options: OverheadOptions): Promise<void> {
  const { before } = options;
  const present = options.contenders.filter((name) => versionOf(name, before) !== undefined);
  const absent = options.contenders.filter((name) => name !== 'before' && !present.includes(name));
  if (absent.length > 0) console.log(`Not installed, left out of the comparison: ${absent.join(', ')}.`);
  console.log(present.map((name) => `${name}: ${versionOf(name, before)}`).join('\n'));

  const folder = mkdtempSync(join(tmpdir(), 'tidegate-overhead-'));
  const [command, args] = pinned(0, process.execPath, [programOf('upstream')]);
  const upstream = new Program({ command, args, stopSignal: 'SIGKILL' });
  const standing = new Map<OverheadContenderName, RunningContender>();
  try {
    const url = await upstream.printed(/listening on (http:\S+)/);
    for (const name of present) {
      const setting = { upstream: url, folder: mkdtempSync(join(folder, `${name}-`)), before };
      standing.set(name, await startContender(name, setting));
    }
    report(await measureAll(options, standing, url), present, options);
  } finally {
    for (const { stop } of standing.values()) await stop();
    await upstream.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Outcome {
  readonly runs: readonly OverheadRun[];
  /** Requests a second at which latency was measured. */
  readonly rate: number;
}

/** Measures in rounds, so that other load affects all alike. */
async function measureAll(
  options: OverheadOptions,
  standing: ReadonlyMap<OverheadContenderName, RunningContender>,
  upstream: string,
): Promise<Outcome> {
  const runs: OverheadRun[] = [];
  let rate = 0;
  for (const workload of options.smoke ? [] : WORKLOADS) {
    for (const { url, pid } of standing.values()) {
      await measure({ ...planOf(workload, url, options), warmup: COMPILED[workload.name] ?? 0, span: 1 }, pid);
    }
  }
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const workload of WORKLOADS) {
      for (const [contender, { url, pid }] of standing) {
        const measured = await measure(planOf(workload, url, options), pid);
        runs.push({ ...measured, contender, workload: workload.name, round });
        formatOutcome(round, contender, workload.title, measured);
      }
    }
    const base = standing.has('floor') ? 'floor' : 'tidegate';
    rate ||= LOAD * (figureOf(runs, base, 'get-1k', throughput)?.median ?? 1000);
    if (GET_1K === undefined) continue;
    for (const [contender, { url, pid }] of [['direct', { url: upstream, pid: undefined }] as const, ...standing]) {
      const measured = await measure({ ...planOf(GET_1K, url, options), rate }, pid);
      runs.push({ ...measured, contender, workload: PACED, round });
      formatOutcome(round, contender, `at ${rate.toFixed(0)}/s`, measured);
    }
  }
  return { runs, rate };
}

function planOf(
  { method, path, upload, download }: OverheadWorkload,
  url: string,
  { warmup, span }: Pick<OverheadOptions, 'warmup' | 'span'>,
): OverheadLoadPlan {
  return { url, method, path, upload, download, connections: CONNECTIONS, clients: 1, warmup, span };
}

function formatOutcome(
  round: number,
  contender: string,
  what: string,
  { answered, span, cpu, p50, p99, failed }: OverheadMeasurement,
): void {
  const cost = cpu === undefined ? '' : `${cpu.toFixed(0)} µs, `;
  const lost = failed > 0 ? `, ${failed} FAILED` : '';
  console.log(
    `${round}. ${contender}, ${what}: ${cost}${((1000 * answered) / span).toFixed(0)}/s, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms${lost}`,
  );
}

function report({ runs, rate }: Outcome, contenders: readonly OverheadContenderName[], options: OverheadOptions): void {
  const tables: ControlTable[] = [
    ...WORKLOADS.map((workload) => workloadTable(workload, runs, contenders)),
    latencyTable(rate, runs, contenders),
    ...(options.before === undefined ? [] : [pairedTable(runs)]),
    goalTable(runs),
  ];
  for (const table of tables) console.log(`\n${toText(table)}`);
  if (options.json !== undefined) {
    const method = { ...options, rate, connections: CONNECTIONS, node: process.version, processors: cpus()[0]?.model };
    writeFileSync(options.json, `${JSON.stringify({ method, runs }, undefined, 2)}\n`);
  }
  if (options.markdown !== undefined) {
    const about = `${options.rounds} rounds of ${options.span / 1000} s, ${CONNECTIONS} connections; Node ${process.version}; ${cpus().length} × ${cpus()[0]?.model.trim()}.`;
    writeSection(options.markdown, 'overhead', [about, '', ...tables.map(toMarkdown)].join('\n'));
  }
  judge(runs, options);
}

/** Failures count in every run; goals only in long runs. */
function judge(runs: readonly OverheadRun[], { smoke }: OverheadOptions): void {
  const faults = runs
    .filter(({ failed, answered }) => failed > 0 || answered === 0)
    .map(
      ({ contender, workload, failed, answered }) =>
        `${contender}, ${workload}: ${failed} of ${failed + answered} failed`,
    );
  const missed = GOALS.filter((goal) => {
    const ratio = goal.ratio(runs);
    return ratio !== undefined && !isMet(goal, ratio);
  });
  for (const fault of faults) console.error(`FAULT ${fault}`);
  if (faults.length > 0 || (!smoke && missed.length > 0)) process.exitCode = 1;
  else if (smoke) console.log('Smoke run passed; figures of so short a run are not meaningful.');
}

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else await run(options);
} catch (error) {
  console.error(`bench:overhead: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
