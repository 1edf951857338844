// What a proxy costs: processor time a request, throughput, latency. Tidegate with every default feature on, beside other
// proxies and the least that a proxy in Node can be, in turn, over and over. docs/performance.md says how to read it.
//
//   npm run bench:overhead -- --help

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeSection } from '../control/section.ts';
import type { Table } from '../control/table.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { Program } from '../program.ts';
import type { ContenderName, Standing } from './contenders.ts';
import { pinned, programOf, stand, versionOf } from './contenders.ts';
import { GOALS, isMet } from './goals.ts';
import type { Measured } from './measure.ts';
import { measure } from './measure.ts';
import type { Options } from './options.ts';
import { parseOptions, USAGE } from './options.ts';
import type { LoadPlan } from './plan.ts';
import type { Run } from './runs.ts';
import { figureOf, PACED, throughput } from './runs.ts';
import { goalTable, latencyTable, pairedTable, workloadTable } from './tables.ts';
import type { Workload } from './workloads.ts';
import { CONNECTIONS, WORKLOADS } from './workloads.ts';

/** Of what the floor can do. */
const LOAD = 0.2;
/** Each is asked for so long before anything counts. Until V8 has compiled what is hot, its threads share the one processor. */
const COMPILED: Readonly<Record<string, number>> = { 'get-1k': 10_000, 'post-1k': 5000, 'get-1m': 2000 };
const [GET_1K] = WORKLOADS;

async function run(options: Options): Promise<void> {
  const { before } = options;
  const present = options.contenders.filter((name) => versionOf(name, before) !== undefined);
  const absent = options.contenders.filter((name) => name !== 'before' && !present.includes(name));
  if (absent.length > 0) console.log(`Not installed, and so not compared with: ${absent.join(', ')}.`);
  console.log(present.map((name) => `${name}: ${versionOf(name, before)}`).join('\n'));

  const folder = mkdtempSync(join(tmpdir(), 'tidegate-overhead-'));
  const [command, args] = pinned(0, process.execPath, [programOf('upstream')]);
  const upstream = new Program({ command, args, stopSignal: 'SIGKILL' });
  const standing = new Map<ContenderName, Standing>();
  try {
    const url = await upstream.printed(/listening on (http:\S+)/);
    for (const name of present) {
      const setting = { upstream: url, folder: mkdtempSync(join(folder, `${name}-`)), before };
      standing.set(name, await stand(name, setting));
    }
    report(await measureAll(options, standing, url), present, options);
  } finally {
    for (const { stop } of standing.values()) await stop();
    await upstream.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Outcome {
  readonly runs: readonly Run[];
  /** Requests a second at which latency was measured. */
  readonly rate: number;
}

/** In rounds, so that what the machine does besides hits all alike. */
async function measureAll(
  options: Options,
  standing: ReadonlyMap<ContenderName, Standing>,
  upstream: string,
): Promise<Outcome> {
  const runs: Run[] = [];
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
        tell(round, contender, workload.title, measured);
      }
    }
    const base = standing.has('floor') ? 'floor' : 'tidegate';
    rate ||= LOAD * (figureOf(runs, base, 'get-1k', throughput)?.median ?? 1000);
    if (GET_1K === undefined) continue;
    for (const [contender, { url, pid }] of [['direct', { url: upstream, pid: undefined }] as const, ...standing]) {
      const measured = await measure({ ...planOf(GET_1K, url, options), rate }, pid);
      runs.push({ ...measured, contender, workload: PACED, round });
      tell(round, contender, `at ${rate.toFixed(0)}/s`, measured);
    }
  }
  return { runs, rate };
}

function planOf(
  { method, path, upload, download }: Workload,
  url: string,
  { warmup, span }: Pick<Options, 'warmup' | 'span'>,
): LoadPlan {
  return { url, method, path, upload, download, connections: CONNECTIONS, clients: 1, warmup, span };
}

function tell(
  round: number,
  contender: string,
  what: string,
  { answered, span, cpu, p50, p99, failed }: Measured,
): void {
  const cost = cpu === undefined ? '' : `${cpu.toFixed(0)} µs, `;
  const lost = failed > 0 ? `, ${failed} FAILED` : '';
  console.log(
    `${round}. ${contender}, ${what}: ${cost}${((1000 * answered) / span).toFixed(0)}/s, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms${lost}`,
  );
}

function report({ runs, rate }: Outcome, contenders: readonly ContenderName[], options: Options): void {
  const tables: Table[] = [
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

/** What fails is wrong at any speed; a short run says nothing of goals. */
function judge(runs: readonly Run[], { smoke }: Options): void {
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
  else if (smoke) console.log('Everything works; the figures of so short a run mean nothing.');
}

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else await run(options);
} catch (error) {
  console.error(`bench:overhead: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
