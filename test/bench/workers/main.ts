// The benefit of a second worker: requests a second of one worker and of two, with upstream and clients on the same
// processors. Both of these are written in C (nginx, wrk), so that they use little CPU time. Two proxies that share nothing
// show the maximum for two workers.
//
//   npm run bench:workers -- --help

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../../setup/find-program.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { ensureBuilt } from '../build.ts';
import { writeSection } from '../control/section.ts';
import { toMarkdown, toText } from '../control/table.ts';
import { Program } from '../program.ts';
import { freePort } from '../../support/free-port.ts';
import { whyNotHeld } from './bandwidth.ts';
import type { LoadGenerator, WorkersRun } from './load.ts';
import { load } from './load.ts';
import type { WorkersBenchOptions } from './options.ts';
import { readOptions, USAGE } from './options.ts';
import type { Listeners, Setup } from './setups.ts';
import { originConfig, startSetups } from './setups.ts';
import { BenchProcesses } from './bench-processes.ts';
import type { Runs } from './tables.ts';
import { compare, tableOf } from './tables.ts';
import { WORKLOADS } from './workloads.ts';

const GOAL = 1.5;
/**
 * Processors that each worker is limited to in the second half, where upstream and clients have the rest. Without the limit,
 * two workers, upstream and clients need more than the machine has.
 */
const SHARE = 0.5;
/** CPU seconds until code is compiled. */
const WARM_UP = 8;

async function run(options: WorkersBenchOptions): Promise<void> {
  ensureBuilt();
  const [nginx, wrk] = [findProgram('nginx'), findProgram('wrk')];
  if (nginx === undefined || wrk === undefined) throw new Error('needs nginx and wrk: apt-get install nginx wrk');
  if (findProgram('openssl') === undefined) throw new Error('needs openssl: apt-get install openssl');
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-workers-'));
  const certificates = makeCertificates();
  const stage = new BenchProcesses(folder);
  try {
    certificates.issue('origin', '-addext', 'subjectAltName=IP:127.0.0.1');
    const listeners: Listeners = { plain: await freePort(), secure: await freePort(), certificates };
    const file = join(folder, 'nginx.conf');
    writeFileSync(file, originConfig(listeners, folder));
    const args = ['-p', folder, '-c', file, '-e', 'stderr'];
    const origin = stage.start(new Program({ command: nginx, args, stopSignal: 'SIGTERM' }));
    await origin.listening(listeners.plain);
    const tables: string[] = [];
    for (const share of sharesToMeasure()) {
      for (const workload of WORKLOADS) {
        const runs = await measure(listeners, share, { workload, wrk, origin, folder }, options);
        const table = tableOf(workload, share, runs, availableParallelism());
        tables.push(toMarkdown(table));
        console.log(`\n${toText(table)}`);
        if (!options.smoke) judge(table.title, runs);
      }
    }
    if (options.smoke) console.log('Smoke run passed; figures of so short a run are not meaningful.');
    if (options.markdown !== undefined) writeSection(options.markdown, 'workers', tables.join('\n'));
  } finally {
    await stage.end();
    certificates.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Processors for each worker; undefined: no limit. */
function sharesToMeasure(): readonly (number | undefined)[] {
  const problem = whyNotHeld();
  if (problem === undefined) return [undefined, SHARE];
  console.log(`Not measured with ${SHARE} processors for each worker: ${problem}`);
  return [undefined];
}

/** Measures all setups in turn, so that other load affects them alike. */
async function measure(
  listeners: Listeners,
  share: number | undefined,
  of: Omit<LoadGenerator, 'seconds'>,
  { rounds, seconds, smoke }: WorkersBenchOptions,
): Promise<Runs> {
  const stage = new BenchProcesses(of.folder);
  try {
    const setups = await startSetups(listeners, of.workload, share, stage);
    const runs = new Map<Setup, WorkersRun[]>(setups.map((setup) => [setup, []]));
    const warmUp = Math.ceil(WARM_UP / (share ?? 1));
    for (const setup of setups) await load(setup, { ...of, seconds: smoke ? 1 : warmUp });
    for (let round = 1; round <= rounds; round += 1) {
      for (const [setup, own] of runs) {
        const one = await load(setup, { ...of, seconds });
        own.push(one);
        console.log(`${round}. ${setup.name}: ${one.rate.toFixed(0)}/s, p99 ${one.p99.toFixed(1)} ms, ${shares(one)}`);
      }
    }
    return runs;
  } finally {
    await stage.end();
  }
}

function shares({ proxy, upstream, clients }: WorkersRun): string {
  return `${proxy.toFixed(0)} + ${upstream.toFixed(0)} + ${clients.toFixed(0)} µs`;
}

function judge(title: string, runs: Runs): void {
  const { ratio } = compare(runs, availableParallelism());
  if (ratio >= GOAL) return;
  console.error(`FAULT ${title}: two workers do ${ratio.toFixed(2)} times what one does; the goal is ${GOAL}`);
  process.exitCode = 1;
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === 'help') console.log(USAGE);
  else await run(options);
} catch (error) {
  console.error(`bench:workers: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
