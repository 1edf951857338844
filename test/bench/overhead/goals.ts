import type { Run } from './runs.ts';
import { cpu, figureOf, PACED, throughput } from './runs.ts';

/** A ratio of medians of one run of the benchmark. */
export interface Goal {
  readonly title: string;
  readonly bound: { readonly most: number } | { readonly least: number };
  /** Undefined where one of the two was not measured. */
  readonly ratio: (runs: readonly Run[]) => number | undefined;
}

type Figure = (run: Run) => number | undefined;

export const GOALS: readonly Goal[] = [
  atMost('GET 1 KB: processor time ÷ bare http-proxy', 0.65, of('get-1k', cpu, 'http-proxy')),
  atMost('GET 1 KB: processor time ÷ the floor', 1.25, of('get-1k', cpu, 'floor')),
  atMost('GET 1 KB: processor time ÷ Caddy', 1.05, of('get-1k', cpu, 'caddy')),
  atMost('POST 1 KB: processor time ÷ bare http-proxy', 0.65, of('post-1k', cpu, 'http-proxy')),
  atMost('POST 1 KB: processor time ÷ the floor', 1.45, of('post-1k', cpu, 'floor')),
  atLeast('GET 1 MB: throughput ÷ bare http-proxy', 1.2, of('get-1m', throughput, 'http-proxy')),
  atMost('at 20 % load: added p99 ÷ the floor’s', 1.5, addedP99),
];

export function isMet({ bound }: Goal, ratio: number): boolean {
  return 'most' in bound ? ratio <= bound.most : ratio >= bound.least;
}

function atMost(title: string, most: number, ratio: Goal['ratio']): Goal {
  return { title, bound: { most }, ratio };
}

function atLeast(title: string, least: number, ratio: Goal['ratio']): Goal {
  return { title, bound: { least }, ratio };
}

function of(workload: string, figure: Figure, other: Run['contender']): Goal['ratio'] {
  return (runs) => {
    const ours = figureOf(runs, 'tidegate', workload, figure);
    const theirs = figureOf(runs, other, workload, figure);
    return ours === undefined || theirs === undefined ? undefined : ours.median / theirs.median;
  };
}

/** What a proxy adds to the 99th percentile of an upstream that is asked without one, at the same rate. */
function addedP99(runs: readonly Run[]): number | undefined {
  const p99 = (contender: Run['contender']): number | undefined =>
    figureOf(runs, contender, PACED, (run) => run.p99)?.median;
  const [direct, ours, floor] = [p99('direct'), p99('tidegate'), p99('floor')];
  if (direct === undefined || ours === undefined || floor === undefined) return undefined;
  return (ours - direct) / (floor - direct);
}
