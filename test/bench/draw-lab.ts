/**
 * Draws the figures of docs/backoff.md with the commands given there: `node test/bench/draw-lab.ts`. A test compares the
 * drawings of single strategies; those of studies change only with their models.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { drawBackoffs } from '../../src/cli/backoff/draw-backoffs.ts';
import { makeBackOff, strategyNames } from '../../src/core/backoff/strategies.ts';

const FOLDER = 'docs/backoff';
mkdirSync(FOLDER, { recursive: true });
for (const strategy of strategyNames) {
  writeFileSync(`${FOLDER}/${strategy}.svg`, drawBackoffs([makeBackOff({ strategy })], undefined));
}

const STUDIES = {
  'side-by-side': 'backoff exponential full-jitter equal-jitter decorrelated-jitter',
  contention: 'lab contention',
  throughput: 'lab aloha',
  chain: 'lab aloha --n 400 --k 100 --load 0.34',
  channel: 'lab aloha table ethernet full-jitter fixed --base 10ms --n 400 --load 0.34 --slots 100000',
  segment: 'lab ethernet',
  herd: 'lab thundering-herd',
};
for (const [name, line] of Object.entries(STUDIES)) {
  console.log(line);
  execFileSync(process.execPath, ['src/main.ts', ...line.split(' '), '--svg', `${FOLDER}/${name}.svg`], {
    stdio: 'ignore',
  });
}
