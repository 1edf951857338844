// What a second worker is worth: requests a second of one worker and of two, with the upstream and the clients beside them on the
// same processors. Both of those are written in C here (nginx, wrk), so that they take little of what there is. Beside them two
// proxies that share nothing: what two workers could do at most.
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
import { freePort, Program } from '../program.ts';
import { whyNotHeld } from './bandwidth.ts';
import type { Load, Run } from './load.ts';
import { load } from './load.ts';
import type { Options } from './options.ts';
import { readOptions, USAGE } from './options.ts';
import type { Listeners, Setup } from './setups.ts';
import { originConfig, startSetups } from './setups.ts';
import { Stage } from './stage.ts';
import type { Runs } from './tables.ts';
import { compare, tableOf } from './tables.ts';
import { WORKLOADS } from './workloads.ts';

const GOAL = 1.5;
/**
 * Processors that each worker is held to in the second half: what a second worker is worth where there is room for it, as the upstream
 * and the clients have the rest. Without, two workers and these want more than the machine has.
 */
const SHARE = 0.5;
/** In seconds of a processor: until code is compiled. */
const WARM_UP = 8;

async function run(options: Options): Promise<void> {
  ensureBuilt();
  const [nginx, wrk] = [findProgram('nginx'), findProgram('wrk')];
  if (nginx === undefined || wrk === undefined) throw new Error('needs nginx and wrk: apt-get install nginx wrk');
  if (findProgram('openssl') === undefined) throw new Error('needs openssl: apt-get install openssl');
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-workers-'));
  const certificates = makeCertificates();
  const stage = new Stage(folder);
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
    if (options.smoke) console.log('Everything works; the figures of so short a run mean nothing.');
    if (options.markdown !== undefined) writeSection(options.markdown, 'workers', tables.join('\n'));
  } finally {
    await stage.end();
    certificates.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Of processors for each worker; undefined: what the machine has. */
function sharesToMeasure(): readonly (number | undefined)[] {
  const problem = whyNotHeld();
  if (problem === undefined) return [undefined, SHARE];
  console.log(`Not measured with ${SHARE} processors for each worker: ${problem}`);
  return [undefined];
}

/** All setups in turn, so that what else the machine does meets them alike. */
async function measure(
  listeners: Listeners,
  share: number | undefined,
  of: Omit<Load, 'seconds'>,
  { rounds, seconds, smoke }: Options,
): Promise<Runs> {
  const stage = new Stage(of.folder);
  try {
    const setups = await startSetups(listeners, of.workload, share, stage);
    const runs = new Map<Setup, Run[]>(setups.map((setup) => [setup, []]));
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

function shares({ proxy, upstream, clients }: Run): string {
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
