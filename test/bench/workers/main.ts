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
import type { Load, Run } from './load.ts';
import { load } from './load.ts';
import type { Options } from './options.ts';
import { readOptions, USAGE } from './options.ts';
import type { Listeners, Setup } from './setups.ts';
import { originConfig, startSetups } from './setups.ts';
import type { Runs } from './tables.ts';
import { compare, tableOf } from './tables.ts';
import { WORKLOADS } from './workloads.ts';

const GOAL = 1.5;
/** In seconds: until code is compiled. */
const WARM_UP = 8;

async function run(options: Options): Promise<void> {
  ensureBuilt();
  const [nginx, wrk] = [findProgram('nginx'), findProgram('wrk')];
  if (nginx === undefined || wrk === undefined) throw new Error('needs nginx and wrk: apt-get install nginx wrk');
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-workers-'));
  const certificates = makeCertificates();
  certificates.issue('origin', '-addext', 'subjectAltName=IP:127.0.0.1');
  const programs: Program[] = [];
  const start = (program: Program): Program => {
    programs.push(program);
    return program;
  };
  try {
    const listeners: Listeners = { plain: await freePort(), secure: await freePort(), certificates };
    const file = join(folder, 'nginx.conf');
    writeFileSync(file, originConfig(listeners, folder));
    const args = ['-p', folder, '-c', file, '-e', 'stderr'];
    const origin = start(new Program({ command: nginx, args, stopSignal: 'SIGTERM' }));
    await origin.listening(listeners.plain);
    const tables: string[] = [];
    for (const workload of WORKLOADS) {
      const setups = await startSetups(listeners, workload, folder, start);
      const runs = await measure(setups, { workload, wrk, origin, folder }, options);
      const table = tableOf(workload, runs, availableParallelism());
      tables.push(toMarkdown(table));
      console.log(`\n${toText(table)}`);
      judge(runs, options);
    }
    if (options.markdown !== undefined) writeSection(options.markdown, 'workers', tables.join('\n'));
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
    certificates.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** All setups in turn, so that what else the machine does meets them alike. */
async function measure(
  setups: readonly Setup[],
  of: Omit<Load, 'seconds'>,
  { rounds, seconds, smoke }: Options,
): Promise<Runs> {
  const runs = new Map<Setup, Run[]>(setups.map((setup) => [setup, []]));
  for (const setup of setups) await load(setup, { ...of, seconds: smoke ? 1 : WARM_UP });
  for (let round = 1; round <= rounds; round += 1) {
    for (const [setup, own] of runs) {
      const one = await load(setup, { ...of, seconds });
      own.push(one);
      console.log(`${round}. ${setup.name}: ${one.rate.toFixed(0)}/s, p99 ${one.p99.toFixed(1)} ms, ${shares(one)}`);
    }
  }
  return runs;
}

function shares({ proxy, upstream, clients }: Run): string {
  return `${proxy.toFixed(0)} + ${upstream.toFixed(0)} + ${clients.toFixed(0)} µs`;
}

function judge(runs: Runs, { smoke }: Options): void {
  const { ratio } = compare(runs, availableParallelism());
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
