/**
 * Measures the adaptive rate and other controllers in virtual time: every row with goals, with seeds that were not used for
 * tuning.
 *
 *     npm run bench:control                                    exits with 1 if a goal is missed
 *     npm run bench:control -- --rows step --controllers tidegate,aimd --seeds 2
 *     npm run bench:control -- --ablations                     Tidegate without one rule at a time
 *     npm run bench:control -- --services                      services that queue, and controllers that learn from latency
 *     npm run bench:control -- --json runs.json --markdown docs/benchmarks.md
 *     npm run bench:control -- --smoke                         takes seconds, and finds gross errors only
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { changeTable, otherChangeTable } from './control/ablation-tables.ts';
import { ABLATIONS } from './control/ablations.ts';
import { BASELINES, SERVICE_CONTROLLERS } from './control/baselines.ts';
import type { Controller } from './control/controllers.ts';
import { OURS } from './control/controllers.ts';
import type { Job } from './control/job.ts';
import type { ControlRow } from './control/rows/row.ts';
import { ROWS, SERVICE_ROWS } from './control/rows.ts';
import { ABOUT_ABLATIONS, ABOUT_SERVICES, INTRODUCTION, writeSection } from './control/section.ts';
import type { Result } from './control/run-all.ts';
import { runAll } from './control/run-all.ts';
import { serviceTables } from './control/service-table.ts';
import { findFaults, SMOKE } from './control/smoke.ts';
import { toMarkdown, toText } from './control/table.ts';
import {
  byRow,
  comparison,
  familiesOf,
  judgeAll,
  keyFigures,
  ofFamily,
  rowTable,
  sayJudged,
} from './control/tables.ts';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '.' },
    controllers: { type: 'string' },
    seeds: { type: 'string' },
    ablations: { type: 'boolean', default: false },
    services: { type: 'boolean', default: false },
    json: { type: 'string' },
    markdown: { type: 'string' },
    smoke: { type: 'boolean', default: false },
  },
});

/** First seed of the evaluation, not used to choose rules or constants. */
const JUDGED_FROM = 801;
/** First seed of the ablations, which decided which rules to keep, and of the services, for which none were chosen yet. */
const ABLATED_FROM = 301;
/** Seeds for other controllers, whose figures differ enough. */
const SEEDS_OF_OTHERS = 2;

/** Rows excluded from ablations: expensive, with little more information than rows of 100/s. */
const DEAR = /1000\/s|300\/s|200 in flight/;

const wanted = new RegExp(values.rows, 'i');
const rows = (values.services ? SERVICE_ROWS : ROWS).filter(
  ({ name, family }) => wanted.test(name) || wanted.test(family),
);
const seeds = Number(values.seeds ?? (values.ablations || values.services ? 3 : 5));

if (rows.length === 0) fail(`--rows: no row or family matches ${wanted}`);
else if (!Number.isInteger(seeds) || seeds < 1) fail(`--seeds: '${values.seeds}' is no number of seeds`);
else if (values.smoke) await smoke();
else if (values.ablations) await ablate();
else if (values.services) await compareServices();
else await compare();

async function smoke(): Promise<void> {
  const faults = findFaults(await runAll(SMOKE, () => undefined));
  for (const fault of faults) console.log(`WRONG: ${fault}`);
  console.log(`${SMOKE.length} short runs, ${faults.length} faults`);
  if (faults.length > 0) process.exitCode = 1;
}

async function ablate(): Promise<void> {
  const areChosen = values.rows !== '.';
  const cheap = rows.filter(({ name, scenario }) => !scenario.shared && (areChosen || !DEAR.test(name)));
  const chosen = choose(ABLATIONS);
  if (chosen === undefined) return;
  const results = await run(jobsOf(cheap, [OURS.name, ...chosen], () => seeds));
  keep(results);
  const tables = [changeTable(cheap, results, chosen), otherChangeTable(cheap, results, chosen)].filter(
    ({ head }) => head.length > 1,
  );
  for (const table of tables) console.log(toText(table));
  if (values.markdown !== undefined) {
    writeSection(values.markdown, 'ablations', [ABOUT_ABLATIONS, ...tables.map(toMarkdown)].join('\n'));
  }
}

async function compare(): Promise<void> {
  const names = choose([OURS, ...BASELINES]);
  if (names === undefined) return;
  const seedsFor = (name: string): number =>
    name === OURS.name || values.seeds !== undefined ? seeds : SEEDS_OF_OTHERS;
  const results = await run(jobsOf(rows, names, seedsFor));
  keep(results);
  const compared =
    names.length > 1
      ? [comparison(rows, results, names), keyFigures(rows, results, names)].filter((table) => table.rows.length > 0)
      : [];
  const ours = byRow(rows, results, OURS.name);
  const tables = familiesOf([...ours.keys()]).map((family) => rowTable(family, ofFamily(ours, family)));
  for (const table of [...tables, ...compared]) console.log(toText(table));
  const verdicts = judgeAll(ours);
  for (const { name, judged } of verdicts) {
    const { verdict } = judged;
    if (verdict !== 'met') console.log(`${verdict === 'missed' ? 'MISSED' : 'close'}: ${name}: ${sayJudged(judged)}`);
  }
  const missed = verdicts.filter(({ judged }) => judged.verdict === 'missed');
  const onAverage = verdicts.filter(({ judged }) => judged.verdict === 'on average');
  const summary = `${verdicts.length} goals: ${missed.length} missed, ${onAverage.length} met on average but not with every seed`;
  console.log(summary);
  if (values.markdown !== undefined) {
    const whole = { ...rowTable('Every row of Tidegate', ours), note: `${summary}.` };
    writeSection(values.markdown, 'control', [INTRODUCTION, ...[...compared, whole].map(toMarkdown)].join('\n'));
  }
  if (missed.length > 0) process.exitCode = 1;
}

async function compareServices(): Promise<void> {
  const names = choose(SERVICE_CONTROLLERS);
  if (names === undefined) return;
  const results = await run(jobsOf(rows, names, () => seeds));
  keep(results);
  const tables = serviceTables(rows, results, names);
  for (const table of tables) console.log(toText(table));
  if (values.markdown !== undefined) {
    const shown = tables.filter((_, i) => i % 2 === 0); // the others are for tuning
    writeSection(values.markdown, 'services', [ABOUT_SERVICES, ...shown.map(toMarkdown)].join('\n'));
  }
}

/** Returns the selected names, by default all; undefined if one is unknown. */
function choose(controllers: readonly Controller[]): readonly string[] | undefined {
  const all = controllers.map(({ name }) => name);
  const chosen = values.controllers?.split(',') ?? all;
  const unknown = chosen.find((name) => !all.includes(name));
  if (unknown !== undefined) fail(`--controllers: '${unknown}' is none of\n  ${all.join('\n  ')}`);
  return unknown === undefined ? chosen : undefined;
}

function jobsOf(of: readonly ControlRow[], controllers: readonly string[], seedsFor: (name: string) => number): Job[] {
  return controllers.flatMap((controller) =>
    of.flatMap(({ name }) =>
      Array.from({ length: seedsFor(controller) }, (_, i) => ({
        row: name,
        controller,
        seed: (values.ablations || values.services ? ABLATED_FROM : JUDGED_FROM) + i,
        short: false,
      })),
    ),
  );
}

/** Writes results as JSON, where non-finite numbers become null. */
function keep(results: readonly Result[]): void {
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, undefined, 1)}\n`);
}

function run(jobs: readonly Job[]): Promise<Result[]> {
  const isWatched = process.stderr.isTTY;
  return runAll(jobs, (done) => {
    if (isWatched) process.stderr.write(done === jobs.length ? '\r\x1B[K' : `\r${done} of ${jobs.length} runs`);
  });
}

function fail(message: string): void {
  console.error(message);
  process.exitCode = 2;
}
