/**
 * Draws what each rule of the adaptive rate is for: a scenario of the library with the rule, and without it.
 *
 *     npm run draw:control                       writes docs/control/*.svg
 *     npm run draw:control -- --only reopen      some of them
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { compileScenario } from '../../src/compile-scenario.ts';
import type { ScenarioConfig } from '../../src/config/scenario-schema.ts';
import type { Millis } from '../../src/policy/types.ts';
import type { Panel } from '../../src/sim/report/draw-panels.ts';
import { drawPanels } from '../../src/sim/report/draw-panels.ts';
import type { Report, Sample } from '../../src/sim/report/report.ts';
import { runScenario } from '../../src/sim/run.ts';
import { loadLibrary } from '../support/library.ts';
import { ABLATIONS } from './control/ablations.ts';
import type { Controller } from './control/controllers.ts';
import { OURS } from './control/controllers.ts';

interface Drawn {
  /** Of the drawing and of the rule. */
  readonly rule: string;
  readonly scenario: string;
  /** The ablation that takes it out. */
  readonly without: string;
  readonly title: string;
  readonly changes?: Partial<ScenarioConfig>;
}

const DRAWN: readonly Drawn[] = [
  {
    rule: 'is-same-epoch',
    scenario: 'token-bucket',
    without: 'every 429 cuts',
    title: 'One cut per epoch',
    changes: { duration: 60_000, warmup: 0 },
  },
  {
    rule: 'cut-first',
    scenario: 'gcra',
    without: 'first cut to a half',
    title: 'The first 429: what was accepted is the limit',
    changes: { duration: 30_000, warmup: 0 },
  },
  { rule: 'cut-again', scenario: 'step-down', without: 'small cuts only', title: 'A limit that falls to 40 %' },
  {
    rule: 'ceiling',
    scenario: 'sliding-window',
    without: 'no memory of the ceiling',
    title: 'Where the limit was felt is remembered',
    changes: { duration: 120_000, warmup: 0 },
  },
  {
    rule: 'hear-noise',
    scenario: 'noise',
    without: 'every rejection is felt',
    title: 'One in a hundred is rejected at any rate',
  },
  {
    rule: 'plan-growth',
    scenario: 'token-bucket',
    without: 'K of 10 s',
    title: 'K goes by the rate, and by what a probe loses',
    changes: { duration: 120_000, warmup: 0 },
  },
  {
    rule: 'cost',
    scenario: 'blackout',
    without: 'no cost',
    title: 'Where each 429 costs thirty seconds, probe rarely',
  },
  {
    rule: 'rate-on-curve',
    scenario: 'token-bucket',
    without: 'straight growth',
    title: 'Flat where the limit was felt',
    changes: { duration: 120_000, warmup: 0 },
  },
  {
    rule: 'is-stale',
    scenario: 'deep-dip',
    without: 'a stale ceiling is kept',
    title: 'A limit that fell far, and comes back',
  },
  {
    rule: 'is-application-limited',
    scenario: 'application-limited',
    without: 'growth while nobody asks',
    title: 'An idle hour proves nothing',
  },
  {
    rule: 'is-blackout',
    scenario: 'fixed-window-10s',
    without: 'no blackouts',
    title: 'A window of ten seconds: when nothing passes, ask with one probe at a time',
  },
  {
    rule: 'probe-interval',
    scenario: 'outage',
    without: 'probes every second',
    title: 'Ten seconds without an upstream',
  },
  {
    rule: 'reopen',
    scenario: 'fixed-window-10s',
    without: 'a half after a blackout',
    title: 'How long a blackout was says where the limit is',
  },
  { rule: 'watch-places', scenario: 'concurrency', without: 'no places', title: 'Twenty requests at a time' },
];

/** Both runs at one time. */
interface Pair {
  readonly at: Millis;
  readonly ours: Sample;
  readonly without: Sample;
}

const { values } = parseArgs({
  options: { only: { type: 'string', default: '.' }, out: { type: 'string', default: 'docs/control' } },
});
const wanted = new RegExp(values.only);

for (const drawn of DRAWN.filter(({ rule }) => wanted.test(rule))) {
  const file = `${values.out}/${drawn.rule}.svg`;
  writeFileSync(file, draw(drawn));
  console.log(file);
}

function draw({ scenario, without, title, changes = {} }: Drawn): string {
  const config = { ...loadLibrary(scenario), ...changes };
  const ablation = ABLATIONS.find(({ name }) => name === without);
  if (ablation === undefined) throw new Error(`no ablation is called '${without}'`);
  const ours = run(OURS, scenario, config);
  const other = run(ablation, scenario, config);
  const series = ours.series.map(
    (sample, i): Pair => ({ at: sample.at, ours: sample, without: other.series[i] ?? sample }),
  );
  return drawPanels({
    title,
    figures: `scenario ${scenario}, seed ${ours.seed}`,
    panels: [...panelsOf('as it is', ours, (pair) => pair.ours), ...panelsOf(without, other, (pair) => pair.without)],
    series,
    warmup: config.warmup,
  });
}

function run(controller: Controller, name: string, config: ScenarioConfig): Report {
  const scenario = compileScenario(name, config);
  const { makeStore } = controller.forRun?.(scenario) ?? controller;
  return runScenario({
    scenario,
    seed: config.seed,
    makeStore: (_, random, listen) => makeStore(scenario, random, listen),
  });
}

function panelsOf(name: string, { goodput, waste }: Report, of: (pair: Pair) => Sample): Panel<Pair>[] {
  return [
    {
      title: `${name}: goodput ${goodput.toFixed(3)}, waste ${waste.toFixed(4)}`,
      height: 130,
      curves: [
        { name: 'accepted a second', look: 'accepted', shape: 'area', of: (pair) => of(pair).accepted },
        { name: 'limit', look: 'limit', shape: 'steps', of: (pair) => of(pair).limit },
        { name: 'rate', look: 'rate', shape: 'line', of: (pair) => of(pair).rate },
      ],
    },
    {
      title: '',
      height: 44,
      curves: [{ name: 'wasted a second', look: 'waste', shape: 'area', of: (pair) => of(pair).wasted }],
    },
  ];
}
