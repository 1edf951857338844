import type { GoodputTable } from '../tables.ts';
import { formatMillis, formatPercent } from '../tables.ts';
import type { ServiceContenderName } from './service-contenders.ts';
import { HAVE_GOALS, labelOf } from './service-contenders.ts';
import { formatFigure, formatGoal, isGoalMet } from './service-goals.ts';
import type { ServiceResult } from './run-service.ts';
import type { ServiceKind } from './service-kinds.ts';
import type { ServiceRow } from './service-row.ts';

/** Results by service and contender. */
export function serviceTable(results: readonly ServiceResult[], absent: readonly ServiceContenderName[]): GoodputTable {
  const head = [
    'service',
    'proxy',
    'goodput',
    'wait at the service, p50',
    'p99',
    'abandoned',
    'refused',
    'failed',
    'latency, p50',
    'p99',
  ];
  return {
    title: 'Services that queue',
    head,
    rows: results.flatMap(({ kind, rows }) => [
      ...rows.map((row) => [kind.title, labelOf(row.contender, kind), ...formatRow(row)]),
      ...absent.map((name) => [kind.title, labelOf(name, kind), 'not installed', ...head.slice(3).map(() => '')]),
    ]),
  };
}

/** The goals of Tidegate with `learnFromLatency`, and whether it meets them. */
export function serviceGoalTable(results: readonly ServiceResult[]): GoodputTable {
  return {
    title: 'Goals of Tidegate with `learnFromLatency`',
    head: ['service', 'proxy', 'goal', 'measured', 'met', 'sent late, p99'],
    rows: results.flatMap(({ kind, rows }) =>
      rows
        .filter(hasGoals)
        .flatMap((row) =>
          kind.goals.map((goal) => [
            kind.title,
            labelOf(row.contender, kind),
            formatGoal(goal),
            formatFigure(goal.figure, row[goal.figure]),
            isGoalMet(goal, row) ? 'yes' : 'no',
            formatMillis(row.measurement.lateness),
          ]),
        ),
    ),
  };
}

/** One line about a finished run, for a terminal. */
export function describeServiceRow(kind: ServiceKind, row: ServiceRow): string {
  const figures = [
    `goodput ${formatFigure('goodput', row.goodput)}`,
    `wait p99 ${formatFigure('waitP99', row.waitP99)}`,
    `abandoned ${formatFigure('abandoned', row.abandoned)}`,
  ];
  const late = `sent ${row.measurement.lateness.toFixed(1)} ms late at p99`;
  return `${kind.title}: ${labelOf(row.contender, kind)}: ${figures.join(', ')}, ${late}`;
}

/** Returns a line for each goal that is missed. */
export function missedGoals(results: readonly ServiceResult[]): string[] {
  return results.flatMap(({ kind, rows }) =>
    rows
      .filter(hasGoals)
      .flatMap((row) =>
        kind.goals
          .filter((goal) => !isGoalMet(goal, row))
          .map(
            (goal) =>
              `${kind.name}, ${row.contender}: ${formatFigure(goal.figure, row[goal.figure])} misses ${formatGoal(goal)}`,
          ),
      ),
  );
}

function hasGoals({ contender }: ServiceRow): boolean {
  return HAVE_GOALS.includes(contender);
}

function formatRow(row: ServiceRow): string[] {
  const { p50, p99 } = row.measurement.latency;
  return [
    formatFigure('goodput', row.goodput),
    Number.isNaN(row.waitP50) ? '–' : formatMillis(row.waitP50),
    formatFigure('waitP99', row.waitP99),
    formatFigure('abandoned', row.abandoned),
    formatPercent(row.refused),
    formatPercent(row.failed),
    ...[p50, p99].map((time) => (row.goodput > 0 ? formatMillis(time) : '–')),
  ];
}
