import type { ContenderName } from './contenders.ts';
import type { Measured } from './measure.ts';

/** The load at which latency is asked for, as a workload beside the others. */
export const PACED = 'paced';

/** One measurement. `direct` is no proxy at all. */
export interface Run extends Measured {
  readonly contender: ContenderName | 'direct';
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

/** Of all rounds; undefined where it was not measured. */
export function figureOf(
  runs: readonly Run[],
  contender: Run['contender'],
  workload: string,
  figure: (run: Run) => number | undefined,
): Spread | undefined {
  const those = runs.filter((run) => run.contender === contender && run.workload === workload);
  return spreadOf(those.map(figure).filter((value) => value !== undefined));
}

/** Of the ratios of two contenders in each round: what the machine does besides is alike for both. */
export function pairedRatio(
  runs: readonly Run[],
  [contender, other]: readonly [Run['contender'], Run['contender']],
  workload: string,
): Spread | undefined {
  const of = (name: Run['contender']): Map<number, number> =>
    new Map(
      runs
        .filter((run) => run.contender === name && run.workload === workload)
        .map((run) => [run.round, run.cpu ?? Number.NaN]),
    );
  const others = of(other);
  return spreadOf(
    [...of(contender)].map(([round, cost]) => cost / (others.get(round) ?? Number.NaN)).filter(Number.isFinite),
  );
}

export const cpu = (run: Run): number | undefined => run.cpu;
/** Requests a second. */
export const throughput = (run: Run): number => (1000 * run.answered) / run.span;
