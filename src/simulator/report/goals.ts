import type { Millis } from '../../core/scalars.ts';
import type { SimulationReport } from './simulation-report.ts';
import { settlingTime } from './simulation-report.ts';

/** The bound of a figure. */
export interface GoalBound {
  readonly is: '>=' | '<=';
  readonly value: number;
}

/** The goals of a run, by the names of the report. */
export interface Goals extends GroupGoals {
  readonly goodput?: GoalBound;
  readonly waste?: GoalBound;
  readonly failures?: GoalBound;
  readonly refused?: GoalBound;
  /** Attempts that the upstream answered with 429 or 5xx. */
  readonly wasted?: GoalBound;
  readonly oscillation?: GoalBound;
  /** The time from the last change of the upstream until the run had settled, in ms. */
  readonly settled?: GoalBound;
  readonly groups?: Readonly<Record<string, GroupGoals & { readonly served?: GoalBound; readonly share?: GoalBound }>>;
}

interface GroupGoals {
  readonly jain?: GoalBound;
  readonly latency?: { readonly p50?: GoalBound; readonly p99?: GoalBound };
}

/** A goal and its result. */
export interface GoalResult {
  /** For example `goodput` or `groups.checkout.latency.p99`. */
  readonly goal: string;
  readonly bound: GoalBound;
  readonly unit: 'number' | 'ms';
  /** Undefined if there is no value: a run that did not settle. */
  readonly value: number | undefined;
  readonly met: boolean;
}

/** @param lastChangeAt when the upstream last changed; 0 if it never did */
export function evaluateGoals(report: SimulationReport, goals: Goals, lastChangeAt: Millis): GoalResult[] {
  const { series } = report;
  const end = series.at(-1)?.at ?? 0;
  const figures: Figure[] = [
    ...(['goodput', 'waste', 'failures', 'refused', 'oscillation'] as const).map(
      (name): Figure => [name, goals[name], report[name]],
    ),
    ['wasted', goals.wasted, report.counts.wasted],
    ['settled', goals.settled, goals.settled && settlingTime(series, lastChangeAt, end), 'ms'],
    ...groupFigures('', goals, { ...report, successes: report.counts.successes }),
  ];
  for (const [name, groupGoals] of Object.entries(goals.groups ?? {})) {
    const group = report.groups.find((each) => each.name === name);
    figures.push(
      [`groups.${name}.served`, groupGoals.served, group?.served],
      [`groups.${name}.share`, groupGoals.share, group?.share],
      ...groupFigures(`groups.${name}.`, groupGoals, group && { ...group, successes: group.served }),
    );
  }
  return figures.flatMap(([goal, bound, value, unit]): GoalResult[] =>
    bound === undefined ? [] : [{ goal, bound, unit: unit ?? 'number', value, met: isMet(bound, value) }],
  );
}

type Figure = readonly [goal: string, bound: GoalBound | undefined, value: number | undefined, unit?: 'ms'];

function groupFigures(
  prefix: string,
  goals: GroupGoals,
  figures: (Pick<SimulationReport, 'jain' | 'latency'> & { readonly successes: number }) | undefined,
): Figure[] {
  // Without a success there is no latency.
  const latency = figures === undefined || figures.successes === 0 ? undefined : figures.latency;
  return [
    [`${prefix}jain`, goals.jain, figures?.jain],
    [`${prefix}latency.p50`, goals.latency?.p50, latency?.p50, 'ms'],
    [`${prefix}latency.p99`, goals.latency?.p99, latency?.p99, 'ms'],
  ];
}

function isMet({ is, value: bound }: GoalBound, value: number | undefined): boolean {
  if (value === undefined) return false;
  return is === '>=' ? value >= bound : value <= bound;
}
