/** Draws a bundled scenario with one rule of the adaptive rate and without it. */
import { compileScenario } from '../../../src/simulator/scenario-file/compile-scenario.ts';
import type { ScenarioConfig } from '../../../src/simulator/scenario-file/scenario-schema.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { Panel } from '../../../src/simulator/report/draw-panels.ts';
import { drawPanels } from '../../../src/simulator/report/draw-panels.ts';
import { groupPanels } from '../../../src/simulator/report/group-panels.ts';
import type { SimulationReport, ReportSample } from '../../../src/simulator/report/simulation-report.ts';
import { runScenario } from '../../../src/simulator/run-scenario.ts';
import { loadLibraryScenario } from '../../support/core/scenario-library.ts';
import { ABLATIONS } from './ablations.ts';
import type { Controller } from './controllers.ts';
import { OURS } from './controllers.ts';
import type { DrawnRule } from './drawn-rules.ts';

/** Samples of both runs at one time. */
interface Pair {
  readonly at: Millis;
  readonly ours: ReportSample;
  readonly without: ReportSample;
}

/** Returns the drawing as SVG. It depends only on the sources. */
export function drawRule({ scenario, without, shows = 'rate', title, changes = () => ({}) }: DrawnRule): string {
  const written = loadLibraryScenario(scenario);
  const config = { ...written, ...changes(written) };
  const ours = run(OURS, scenario, config);
  const other =
    typeof without === 'string'
      ? run(ablationOf(without), scenario, config)
      : run(OURS, without.scenario, { ...loadLibraryScenario(without.scenario), ...changes(written) });
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

function run(controller: Controller, name: string, config: ScenarioConfig): SimulationReport {
  const compiled = compileScenario(name, config);
  const scenario = controller.adapt?.(compiled) ?? compiled;
  const { makeStore } = controller.forRun?.(scenario) ?? controller;
  return runScenario({
    scenario,
    seed: config.seed,
    makeStore: (_, random, listen) => makeStore(scenario, random, listen),
  });
}

function ratePanels(
  name: string,
  { goodput, waste }: SimulationReport,
  of: (pair: Pair) => ReportSample,
): Panel<Pair>[] {
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

function sharePanels(name: string, { groups }: SimulationReport, of: (pair: Pair) => ReportSample): Panel<Pair>[] {
  const figures = groups.map(({ name: group, latency }) => `${group} p99 ${Math.round(latency.p99)} ms`).join(', ');
  return groupPanels(groups).map(({ height, curves }) => ({
    title: `${name}: ${figures}`,
    height,
    curves: curves.map((curve) => ({ ...curve, of: (pair) => curve.of(of(pair)) })),
  }));
}
