import type { OverheadRun } from './runs.ts';
import { cpu, figureOf, PACED, throughput } from './runs.ts';

/** A goal for a ratio of medians within one run of the benchmark. */
export interface OverheadGoal {
  readonly title: string;
  readonly bound: { readonly most: number } | { readonly least: number };
  /** Undefined if one of the two was not measured. */
  readonly ratio: (runs: readonly OverheadRun[]) => number | undefined;
}

type Figure = (run: OverheadRun) => number | undefined;

export const GOALS: readonly OverheadGoal[] = [
  atMost('GET 1 KB: processor time ÷ bare http-proxy', 0.65, of('get-1k', cpu, 'http-proxy')),
  atMost('GET 1 KB: processor time ÷ the floor', 1.25, of('get-1k', cpu, 'floor')),
  atMost('GET 1 KB: processor time ÷ Caddy', 1.05, of('get-1k', cpu, 'caddy')),
  atMost('POST 1 KB: processor time ÷ bare http-proxy', 0.65, of('post-1k', cpu, 'http-proxy')),
  atMost('POST 1 KB: processor time ÷ the floor', 1.45, of('post-1k', cpu, 'floor')),
  atLeast('GET 1 MB: throughput ÷ bare http-proxy', 1.2, of('get-1m', throughput, 'http-proxy')),
  atMost('at 20 % load: added p99 ÷ the floor’s', 1.5, addedP99),
];

export function isMet({ bound }: OverheadGoal, ratio: number): boolean {
  return 'most' in bound ? ratio <= bound.most : ratio >= bound.least;
}

function atMost(title: string, most: number, ratio: OverheadGoal['ratio']): OverheadGoal {
  return { title, bound: { most }, ratio };
}

function atLeast(title: string, least: number, ratio: OverheadGoal['ratio']): OverheadGoal {
  return { title, bound: { least }, ratio };
}

function of(workload: string, figure: Figure, other: OverheadRun['contender']): OverheadGoal['ratio'] {
  return (runs) => {
    const ours = figureOf(runs, 'tidegate', workload, figure);
    const theirs = figureOf(runs, other, workload, figure);
    return ours === undefined || theirs === undefined ? undefined : ours.median / theirs.median;
  };
}

/** Returns the 99th percentile that a proxy adds to direct requests at the same rate. */
function addedP99(runs: readonly OverheadRun[]): number | undefined {
  const p99 = (contender: OverheadRun['contender']): number | undefined =>
    figureOf(runs, contender, PACED, (run) => run.p99)?.median;
  const [direct, ours, floor] = [p99('direct'), p99('tidegate'), p99('floor')];
  if (direct === undefined || ours === undefined || floor === undefined) return undefined;
  return (ours - direct) / (floor - direct);
}
