import type { OverheadContenderName } from './contenders.ts';
import type { OverheadMeasurement } from './measure.ts';

/** The workload at which latency is measured. */
export const PACED = 'paced';

/** One measurement. `direct` means no proxy. */
export interface OverheadRun extends OverheadMeasurement {
  readonly contender: OverheadContenderName | 'direct';
  readonly workload: string;
  readonly round: number;
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const low = sorted[Math.floor(middle)];
  const high = sorted[Math.ceil(middle)];
  const min = sorted[0];
  const max = sorted.at(-1);
  if (low === undefined || high === undefined || min === undefined || max === undefined) return undefined;
  return { median: (low + high) / 2, min, max };
}

/** Returns a figure over all rounds; undefined if it was not measured. */
export function figureOf(
  runs: readonly OverheadRun[],
  contender: OverheadRun['contender'],
  workload: string,
  figure: (run: OverheadRun) => number | undefined,
): Spread | undefined {
  const those = runs.filter((run) => run.contender === contender && run.workload === workload);
  return spreadOf(those.map(figure).filter((value) => value !== undefined));
}

/** The geometric mean of ratios, and its standard error as a share of it. */
export interface MeanRatio {
  readonly mean: number;
  readonly error: number;
  readonly pairs: number;
}

/**
 * Compares the CPU time of two contenders in each round, where other load affects both alike.
 * Undefined with fewer than two rounds that have both.
 */
export function pairedRatio(
  runs: readonly OverheadRun[],
  [contender, other]: readonly [OverheadRun['contender'], OverheadRun['contender']],
  workload: string,
): MeanRatio | undefined {
  const of = (name: OverheadRun['contender']): Map<number, number> =>
    new Map(
      runs
        .filter((run) => run.contender === name && run.workload === workload)
        .map((run) => [run.round, run.cpu ?? Number.NaN]),
    );
  const others = of(other);
  const logs = [...of(contender)]
    .map(([round, cost]) => Math.log(cost / (others.get(round) ?? Number.NaN)))
    .filter(Number.isFinite);
  const pairs = logs.length;
  if (pairs < 2) return undefined;
  const mean = logs.reduce((sum, log) => sum + log, 0) / pairs;
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (pairs - 1);
  return { mean: Math.exp(mean), error: Math.sqrt(variance / pairs), pairs };
}

export const cpu = (run: OverheadRun): number | undefined => run.cpu;
/** Requests a second. */
export const throughput = (run: OverheadRun): number => (1000 * run.answered) / run.span;
