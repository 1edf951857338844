/**
 * How often `tidegate lab fit` learns the kind of limit and its numbers, from logs of the practice upstream's models: the table of
 * docs/backoff.md.
 *
 *     npm run bench:fit                 5 seeds of each traffic
 *     npm run bench:fit -- --seeds 20   more
 *     npm run bench:fit -- --smoke      one, at two of the loads
 *
 * It fails if less than 19 of 20 kinds are right.
 */
import { parseArgs } from 'node:util';
import { LIMIT_CASES, runLimitCase, SHARING_CASES } from '../support/laboratory/limit-cases.ts';

const { seeds, smoke } = parseArgs({
  options: { seeds: { type: 'string', default: '5' }, smoke: { type: 'boolean', default: false } },
}).values;
const LOADS = smoke ? [0.8, 1.5] : [0.8, 1.1, 1.5, 3];
/** Beyond the capacity, a service that works on all requests at once ends hardly any: the log does not show its workers. */
const SHARING_LOADS = smoke ? [0.8] : [0.7, 0.8, 0.9];
const SEEDS = smoke ? 1 : Number(seeds);
const GOAL = 19 / 20;

console.log('| upstream | logs | right kind | and sure | right numbers |');
console.log('| --- | --- | --- | --- | --- |');
for (const limitCase of [...LIMIT_CASES, ...SHARING_CASES]) {
  let [logs, right, sure, numbers] = [0, 0, 0, 0];
  for (const load of limitCase.kind === 'sharing' ? SHARING_LOADS : LOADS) {
    for (const arrivals of ['poisson', 'bursty'] as const) {
      for (let seed = 1; seed <= SEEDS; seed += 1) {
        const { identified, isEnough, areNumbersRight } = runLimitCase(limitCase, { load, arrivals, seed });
        if (!isEnough) continue;
        logs += 1;
        if (identified.kind !== limitCase.kind) continue;
        right += 1;
        if (identified.confidence === 'sure') sure += 1;
        if (areNumbersRight) numbers += 1;
      }
    }
  }
  console.log(`| ${limitCase.name} | ${logs} | ${right} | ${sure} | ${numbers} |`);
  if (right < GOAL * logs) process.exitCode = 1;
}
