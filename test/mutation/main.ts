// Mutation testing: changes one expression of the decisions that money depends on at a time, and runs the unit and property
// tests of that topic, which must fail.
//
//   node test/mutation/main.ts [GROUP | --sample]
//
// Prints the mutation score of each group; the exit code is 1 if one is below 90 %. coverage/mutation/ has the reports, and
// what the next run need not repeat: it compares sources and test files. After a change in test/support, delete that folder.
// A run that is interrupted continues where it was. The smallest group takes 15 s, the largest (breaker, hints) half an hour.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LogLevel } from '@stryker-mutator/api/core';
import { Stryker } from '@stryker-mutator/core';
import type { MutationGroup } from './groups.ts';
import { GROUPS, SAMPLE } from './groups.ts';
import { formatReport, formatScore, scoreOf } from './report.ts';

/** In percent. The rest are mutants that change nothing, see equivalent.md, and those not worth a test. */
const LEAST_SCORE = 90;
/** Ignored by git. */
const FOLDER = 'coverage/mutation';

const GROUP_NAMES = Object.keys(GROUPS) as (keyof typeof GROUPS)[];

function chooseGroups(args: readonly string[]): readonly (readonly [name: string, group: MutationGroup])[] {
  const [wanted] = args;
  if (wanted === '--sample') return [['sample', SAMPLE]];
  const names = wanted === undefined ? GROUP_NAMES : GROUP_NAMES.filter((name) => name === wanted);
  if (names.length === 0 || args.length > 1) {
    console.error(`Usage: npm run test:mutation -- [--sample | ${GROUP_NAMES.join(' | ')}]`);
    process.exit(2);
  }
  return names.map((name) => [name, GROUPS[name]]);
}

/** Returns the score, in percent. */
async function testGroup(name: string, { mutate, tests }: MutationGroup): Promise<number> {
  process.env['TIDEGATE_MUTATION_TESTS'] = JSON.stringify(tests);
  const stryker = new Stryker({
    mutate: [...mutate],
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner', './test/mutation/ignore-error-texts.ts'],
    vitest: { configFile: 'test/mutation/vitest.config.ts' },
    coverageAnalysis: 'perTest',
    ignorers: ['error-texts'],
    incremental: true,
    incrementalFile: join(FOLDER, `${name}.incremental.json`),
    reporters: ['json', 'progress-append-only'],
    jsonReporter: { fileName: join(FOLDER, `${name}.json`) },
    thresholds: { high: 100, low: LEAST_SCORE, break: null }, // all groups run before the exit code is set
    concurrency: 1,
    tempDirName: join(FOLDER, 'sandbox'),
    cleanTempDir: 'always',
    // Other checks may write them while Stryker copies the project.
    ignorePatterns: ['dist', 'docs/.vitepress/cache', 'docs/.vitepress/dist'],
    // Stryker reads it with the API of TypeScript 6. In the sandbox it holds as it is.
    tsconfigFile: 'none',
    // A machine with other work must not count as a mutant that runs forever. Most of those are found by their count of hits.
    timeoutMS: 30_000,
    // Constants are mutated too, and for each of them all tests of the group run: that it takes long is known.
    warnings: { slow: false, unknownOptions: true, preprocessorErrors: true, unserializableOptions: true },
    allowEmpty: false,
    logLevel: 'warn' as LogLevel,
  });
  const mutants = await stryker.runMutationTest();
  writeFileSync(join(FOLDER, `${name}.txt`), formatReport(name, mutants));
  console.log(formatScore(name, mutants));
  return scoreOf(mutants);
}

mkdirSync(FOLDER, { recursive: true });
for (const [name, group] of chooseGroups(process.argv.slice(2))) {
  // One after the other: each takes the processors, and names its tests in the environment.
  const score = await testGroup(name, group);
  // Negated, so that no score at all (no mutants) fails too.
  if (!(score >= LEAST_SCORE)) process.exitCode = 1;
}
