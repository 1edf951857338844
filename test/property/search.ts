// Runs the property tests with other seeds than `npm test`:
//
//   node test/property/search.ts [RUNS] [FILE…]
//
// Prints each seed that makes a test fail, and how to repeat that run. The exit code is 1 if one does. A run takes about 20 s.

import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';

const USAGE = 'Usage: npm run test:properties -- [RUNS] [FILE…]; RUNS is a whole number of at least 1, 20 by default';
const DEFAULT_FILES = ['test/property', 'test/slow/backoff.test.ts', 'test/slow/presets.test.ts'];

/** Returns the number of runs that fail. */
function search(runs: number, files: readonly string[]): number {
  let failed = 0;
  for (let run = 1; run <= runs; run += 1) {
    const seed = String(randomInt(2 ** 31));
    const { status, stdout, stderr } = spawnSync('npx', ['vitest', 'run', ...files], {
      env: { ...process.env, TIDEGATE_SEED: seed },
      encoding: 'utf8',
    });
    console.log(`run ${run} of ${runs}, seed ${seed}: ${status === 0 ? 'passed' : 'failed'}`);
    if (status === 0) continue;
    failed += 1;
    console.log(`${stdout}${stderr}\nTo repeat: TIDEGATE_SEED=${seed} npx vitest run ${files.join(' ')}`);
  }
  console.log(`${failed} of ${runs} runs failed`);
  return failed;
}

const [runs = '20', ...files] = process.argv.slice(2);
if (/^[1-9]\d{0,5}$/.test(runs)) {
  process.exitCode = search(Number(runs), files.length > 0 ? files : DEFAULT_FILES) > 0 ? 1 : 0;
} else {
  console.error(USAGE);
  process.exitCode = 2;
}
