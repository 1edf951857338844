/**
 * Draws what each rule of the adaptive rate is for: a scenario of the library with the rule, and without it.
 *
 *     npm run draw:control                       writes docs/control/*.svg
 *     npm run draw:control -- --only reopen      some of them
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { compileScenario } from '../../src/simulator/scenario-file/compile-scenario.ts';
import type { ScenarioConfig } from '../../src/simulator/scenario-file/scenario-schema.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import type { Panel } from '../../src/simulator/report/draw-panels.ts';
import { drawPanels } from '../../src/simulator/report/draw-panels.ts';
import { groupPanels } from '../../src/simulator/report/group-panels.ts';
import type { Report, Sample } from '../../src/simulator/report/simulation-report.ts';
import { runScenario } from '../../src/simulator/run-scenario.ts';
import { loadLibrary } from '../support/library.ts';
import { ABLATIONS } from './control/ablations.ts';
import type { Controller } from './control/controllers.ts';
import { OURS } from './control/controllers.ts';

interface Drawn {
  /** Of the drawing and of the rule. */
  readonly rule: string;
  readonly scenario: string;
  /** The ablation that takes it out; or another scenario, in which there is nothing for it to go by. */
  readonly without: string | { readonly scenario: string; readonly name: string };
  /** What tells the difference: how much is accepted, or who is served. */
  readonly shows?: 'rate' | 'groups';
  readonly title: string;
  readonly changes?: (config: ScenarioConfig) => Partial<ScenarioConfig>;
}

const DRAWN: readonly Drawn[] = [
  {
    rule: 'is-same-epoch',
    scenario: 'window-counting-refusals',
    without: 'every 429 cuts',
    title: 'One cut per epoch',
  },
  {
    rule: 'cut-first',
    scenario: 'token-bucket',
    without: 'first cut to a half',
    title: 'The first 429: what was accepted is the limit',
    changes: () => ({ duration: 30_000, warmup: 0 }),
  },
  { rule: 'cut-again', scenario: 'step-down', without: 'small cuts only', title: 'A limit that falls to 40 %' },
  {
    rule: 'ceiling',
    scenario: 'token-bucket',
    without: 'no memory of the ceiling',
    title: 'Where the limit was felt is remembered',
  },
  {
    rule: 'hear-noise',
    scenario: 'loud-noise',
    without: 'every rejection is felt',
    title: 'One in twenty is rejected at any rate',
  },
  {
    rule: 'plan-growth',
    scenario: 'step-up-10x',
    without: 'K of 10 s',
    title: 'K goes by the rate, and is short while the ceiling is a guess',
  },
  {
    rule: 'cost',
    scenario: 'blackout',
    without: 'no cost',
    title: 'Where each 429 costs thirty seconds, probe rarely',
  },
  {
    rule: 'rate-on-curve',
    scenario: 'step-up-10x',
    without: 'straight growth',
    title: 'Flat where the limit was felt, steep away from it',
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
    scenario: 'window-counting-refusals',
    without: 'no blackouts',
    title: 'Where refused requests count too, only silence helps',
  },
  {
    rule: 'probe-interval',
    scenario: 'window-counting-refusals',
    without: 'probes every second',
    title: 'Probes come soon at first, then ever more rarely',
  },
  {
    rule: 'reopen',
    scenario: 'fixed-window-10s',
    without: 'a half after a blackout',
    title: 'How long a blackout was says where the limit is',
  },
  {
    rule: 'moved',
    scenario: 'shared-quota',
    without: 'no moved limit',
    title: 'Somebody else uses up the limit, two seconds of every thirty',
  },
  { rule: 'watch-places', scenario: 'concurrency', without: 'no places', title: 'Twenty requests at a time' },
  {
    rule: 'quota',
    scenario: 'minute-window-hints',
    without: { scenario: 'minute-window', name: 'nothing is told' },
    title: 'What is left, told in RateLimit headers, is believed',
  },
  {
    rule: 'initial-rate',
    scenario: 'known-limit',
    without: { scenario: 'token-bucket', name: 'nothing is known' },
    title: 'A limit that is known is used at once',
    changes: () => ({ duration: 60_000, warmup: 0 }),
  },
  {
    rule: 'fair-queue',
    scenario: 'abuser',
    without: 'one queue for all',
    shows: 'groups',
    title: 'One client sends a hundred times what others send',
  },
  {
    rule: 'weights',
    scenario: 'weights-4-to-1',
    without: 'one queue for all',
    shows: 'groups',
    title: 'Four to one, as their weights are',
  },
  {
    rule: 'admission',
    scenario: 'token-bucket',
    without: 'no queue',
    title: 'Who would wait too long is refused at once; who would not, waits',
  },
  {
    rule: 'promise',
    scenario: 'priorities',
    without: 'no promise',
    title: 'Who comes back in the second it was told is let in',
  },
  {
    rule: 'allowance',
    scenario: 'abuser',
    without: 'no allowance',
    shows: 'groups',
    title: 'Who asks for far more than its share is given less of a turn',
  },
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

function draw({ scenario, without, shows = 'rate', title, changes = () => ({}) }: Drawn): string {
  const written = loadLibrary(scenario);
  const config = { ...written, ...changes(written) };
  const ours = run(OURS, scenario, config);
  const other =
    typeof without === 'string'
      ? run(ablationOf(without), scenario, config)
      : run(OURS, without.scenario, { ...loadLibrary(without.scenario), ...changes(written) });
  const series = ours.series.map(
    (sample, i): Pair => ({ at: sample.at, ours: sample, without: other.series[i] ?? sample }),
  );
  const panelsOf = shows === 'rate' ? ratePanels : sharePanels;
  const nameOfOther = typeof without === 'string' ? without : without.name;
  return drawPanels({
    title,
    figures: `scenario ${scenario}, seed ${ours.seed}`,
    panels: [
      ...panelsOf('as it is', ours, (pair) => pair.ours),
      ...panelsOf(nameOfOther, other, (pair) => pair.without),
    ],
    series,
    warmup: config.warmup,
  });
}

function ablationOf(wanted: string): Controller {
  const ablation = ABLATIONS.find(({ name }) => name === wanted);
  if (ablation === undefined) throw new Error(`no ablation is called '${wanted}'`);
  return ablation;
}

function run(controller: Controller, name: string, config: ScenarioConfig): Report {
  const compiled = compileScenario(name, config);
  const scenario = controller.adapt?.(compiled) ?? compiled;
  const { makeStore } = controller.forRun?.(scenario) ?? controller;
  return runScenario({
    scenario,
    seed: config.seed,
    makeStore: (_, random, listen) => makeStore(scenario, random, listen),
  });
}

function ratePanels(name: string, { goodput, waste }: Report, of: (pair: Pair) => Sample): Panel<Pair>[] {
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

function sharePanels(name: string, { groups }: Report, of: (pair: Pair) => Sample): Panel<Pair>[] {
  const figures = groups.map(({ name: group, latency }) => `${group} p99 ${Math.round(latency.p99)} ms`).join(', ');
  return groupPanels(groups).map(({ height, curves }) => ({
    title: `${name}: ${figures}`,
    height,
    curves: curves.map((curve) => ({ ...curve, of: (pair) => curve.of(of(pair)) })),
  }));
}
