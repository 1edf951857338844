import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Report } from './simulation-report.ts';
import { settlingTime } from './simulation-report.ts';

/** What a figure should be. */
export interface Bound {
  readonly is: '>=' | '<=';
  readonly value: number;
}

/** Of a run, by the names of the report. */
export interface Goals extends GroupGoals {
  readonly goodput?: Bound;
  readonly waste?: Bound;
  readonly failures?: Bound;
  readonly refused?: Bound;
  /** Attempts that the upstream answered with 429 or 5xx. */
  readonly wasted?: Bound;
  readonly oscillation?: Bound;
  /** How long after the last change of the upstream the run was settled, in ms. */
  readonly settled?: Bound;
  readonly groups?: Readonly<Record<string, GroupGoals & { readonly served?: Bound; readonly share?: Bound }>>;
}

interface GroupGoals {
  readonly jain?: Bound;
  readonly latency?: { readonly p50?: Bound; readonly p99?: Bound };
}

/** A goal, and what came of it. */
export interface Judged {
  /** Such as `goodput` or `groups.checkout.latency.p99`. */
  readonly goal: string;
  readonly bound: Bound;
  readonly unit: 'number' | 'ms';
  /** Undefined when it never came to be: a run that did not settle. */
  readonly value: number | undefined;
  readonly met: boolean;
}

/** @param changed when the upstream changed for the last time; 0 when it never did */
export function judge(report: Report, goals: Goals, changed: Millis): Judged[] {
  const { series } = report;
  const end = series.at(-1)?.at ?? 0;
  const figures: Figure[] = [
    ...(['goodput', 'waste', 'failures', 'refused', 'oscillation'] as const).map(
      (name): Figure => [name, goals[name], report[name]],
    ),
    ['wasted', goals.wasted, report.counts.wasted],
    ['settled', goals.settled, goals.settled && settlingTime(series, changed, end), 'ms'],
    ...groupFigures('', goals, { ...report, successes: report.counts.successes }),
  ];
  for (const [name, wanted] of Object.entries(goals.groups ?? {})) {
    const group = report.groups.find((each) => each.name === name);
    figures.push(
      [`groups.${name}.served`, wanted.served, group?.served],
      [`groups.${name}.share`, wanted.share, group?.share],
      ...groupFigures(`groups.${name}.`, wanted, group && { ...group, successes: group.served }),
    );
  }
  return figures.flatMap(([goal, bound, value, unit]): Judged[] =>
    bound === undefined ? [] : [{ goal, bound, unit: unit ?? 'number', value, met: isMet(bound, value) }],
  );
}

type Figure = readonly [goal: string, bound: Bound | undefined, value: number | undefined, unit?: 'ms'];

function groupFigures(
  prefix: string,
  goals: GroupGoals,
  figures: (Pick<Report, 'jain' | 'latency'> & { readonly successes: number }) | undefined,
): Figure[] {
  // Of no success there is no latency.
  const latency = figures === undefined || figures.successes === 0 ? undefined : figures.latency;
  return [
    [`${prefix}jain`, goals.jain, figures?.jain],
    [`${prefix}latency.p50`, goals.latency?.p50, latency?.p50, 'ms'],
    [`${prefix}latency.p99`, goals.latency?.p99, latency?.p99, 'ms'],
  ];
}

function isMet({ is, value: wanted }: Bound, value: number | undefined): boolean {
  if (value === undefined) return false;
  return is === '>=' ? value >= wanted : value <= wanted;
}
