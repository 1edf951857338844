// Runs the tests many times, on a quiet machine and beside busy loops, because a test that fails once in twenty runs teaches
// people to ignore a red one:
//
//   npm run test:stress                                  all tests, 20 times, then 5 times beside two busy loops
//   npm run test:stress -- --runs 3 --busy 2 -- test/integration/limits
//
// Prints a line for each run, then each test that failed, with the runs and its first error. A skipped test counts as failed. The
// exit code is 1 if one did. No test is repeated.

import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { RunSeries } from './options.ts';
import { parseOptions, USAGE } from './options.ts';
import type { RunResult } from './run-result.ts';
import { readRunResult } from './run-result.ts';

const ERROR_LINES = 6;
/** It ends if this process is killed. */
const BUSY_LOOP = 'const parent = process.ppid; while (process.ppid === parent);';

async function runOnce(vitestArgs: readonly string[]): Promise<RunResult> {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-stress-'));
  const report = join(folder, 'report.json');
  try {
    const vitest = spawn('npx', ['vitest', 'run', '--reporter=json', `--outputFile=${report}`, ...vitestArgs], {
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    const [exitCode] = (await once(vitest, 'exit')) as [number | null];
    return readRunResult(existsSync(report) ? readFileSync(report, 'utf8') : undefined, exitCode);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function startBusyLoops(count: number): readonly ChildProcess[] {
  return Array.from({ length: count }, () => spawn(process.execPath, ['--eval', BUSY_LOOP], { stdio: 'ignore' }));
}

/** Failed tests by name, each with the runs in which it failed and its first error. */
type Failures = Map<string, { readonly runs: string[]; readonly error: string }>;

async function runSeries({ runs, busyLoops }: RunSeries, vitestArgs: readonly string[], failures: Failures) {
  const loops = startBusyLoops(busyLoops);
  try {
    for (let run = 1; run <= runs; run += 1) {
      const startedAt = performance.now();
      const { passed, skipped, failures: failed } = await runOnce(vitestArgs);
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      const load = busyLoops === 0 ? 'quiet' : `beside ${busyLoops}`;
      console.log(
        `${load.padEnd(9)}  run ${String(run).padStart(2)} of ${runs}  ${String(seconds).padStart(5)} s  ${String(passed).padStart(6)} passed  ${String(failed.length).padStart(3)} failed  ${skipped} skipped`,
      );
      const label = `${load} ${run}`;
      if (skipped > 0) record(failures, label, 'skipped tests', `${skipped}`);
      for (const { name, error } of failed) record(failures, label, relative('', name), error);
    }
  } finally {
    for (const loop of loops) loop.kill('SIGKILL');
  }
}

function record(failures: Failures, run: string, name: string, error: string): void {
  const known = failures.get(name);
  if (known === undefined) failures.set(name, { runs: [run], error });
  else known.runs.push(run);
}

const options = parseOptions(process.argv.slice(2));
if (options === undefined) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  const failures: Failures = new Map();
  for (const series of options.series) await runSeries(series, options.vitestArgs, failures);
  for (const [name, { runs, error }] of failures) {
    console.log(`\n${name}\n  failed in: ${runs.join(', ')}`);
    for (const line of error.split('\n').slice(0, ERROR_LINES)) console.log(`  ${line}`);
  }
  console.log(failures.size === 0 ? '\nno test failed' : `\n${failures.size} tests failed`);
  process.exitCode = failures.size === 0 ? 0 : 1;
}
