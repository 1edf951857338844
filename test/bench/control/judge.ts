import type { ControlFigures } from './measure.ts';
import type { Figure, RowGoal, ControlRow } from './rows/row.ts';

/** One figure over the seeds of a row. */
export interface SeedStatistics {
  readonly mean: number;
  /** The worst value over all seeds. */
  readonly worst: number;
}

export interface JudgedFigure {
  readonly goal: RowGoal;
  readonly over: SeedStatistics;
  /** `on average`: met by the mean, but not with every seed. */
  readonly verdict: 'met' | 'on average' | 'missed';
  /** By how much the mean misses the goal; 0 if it does not. */
  readonly by: number;
}

const MORE_IS_BETTER: ReadonlySet<Figure> = new Set(['goodput', 'ofOracle', 'served', 'jain', 'share']);

export function over(figure: Figure, seeds: readonly ControlFigures[]): SeedStatistics | undefined {
  const values = seeds.map((figures) => figures[figure]).filter((value) => value !== undefined);
  if (values.length === 0) return undefined;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { mean, worst: MORE_IS_BETTER.has(figure) ? Math.min(...values) : Math.max(...values) };
}

/** @throws RangeError if a goal names a figure that the row does not have */
export function judge(
  { name, goals }: Pick<ControlRow, 'name' | 'goals'>,
  seeds: readonly ControlFigures[],
): JudgedFigure[] {
  return goals.map((goal) => {
    const { figure } = goal;
    const found = over(figure, seeds);
    if (found === undefined) throw new RangeError(`'${name}' has a goal for ${figure}, and no such figure`);
    const by = miss(goal, found.mean);
    const meetsAll = seeds.every((figures) => miss(goal, figures[figure] ?? Number.NaN) === 0);
    return { goal, over: found, verdict: by > 0 ? 'missed' : meetsAll ? 'met' : 'on average', by };
  });
}

function miss({ min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY }: RowGoal, value: number): number {
  return Math.max(0, min - value, value - max);
}
