import type { GoalBound, GoalResult } from '../simulator/report/goals.ts';
import { downsample, lastValue, meanValue } from '../simulator/report/downsample.ts';
import type {
  ReportCounts,
  GroupReport,
  LatencyQuantiles,
  SimulationReport,
  ReportSample,
} from '../simulator/report/simulation-report.ts';
import type { Millis } from '../core/scalars.ts';

export interface SimulationReportView {
  readonly title: string | undefined;
  readonly report: SimulationReport;
  readonly goals: readonly GoalResult[];
}

const MIN_WIDTH = 40;
const MAX_WIDTH = 120;
const ROWS = 10;

/**
 * A report for a terminal: headline figures, groups, goals, and a plot of the rate against the limit.
 * @param width columns of the terminal
 * @returns lines, each with a newline
 */
export function renderSimulationReport({ title, report, goals }: SimulationReportView, width: number): string {
  const { scenario, seed, span, counts } = report;
  const columns = Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, width));
  const lines = [
    title === undefined ? scenario : `${scenario}: ${title}`,
    `${formatTime(span)} counted, seed ${seed}`,
    '',
    ...formatCells(headline(report), columns),
    '',
    ...formatCells(listCounts(counts), columns),
    '',
    ...(report.groups.length > 1 ? [...formatGroups(report.groups), ''] : []),
    ...formatQuotaRefusals(report.groups),
    ...(goals.length > 0 ? [...goals.map(formatGoal), ''] : []),
    ...plot(report.series, columns),
  ];
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

type Cell = readonly [name: string, value: string];

function headline(report: SimulationReport): Cell[] {
  const { goodput, waste, refused, failures, latency, upstreamWait, jain, oscillation } = report;
  return [
    ['goodput', formatNumber(goodput)],
    ['waste', formatNumber(waste)],
    ['refused', formatNumber(refused)],
    ['failures', formatNumber(failures)],
    ['added p50', formatTime(latency.p50)],
    ['added p99', formatTime(latency.p99)],
    ['Jain', formatNumber(jain)],
    ['oscillation', formatNumber(oscillation)],
    ...(upstreamWait.p99 > 0 ? waitCells(upstreamWait) : []),
  ];
}

/** The wait at an upstream with workers. */
function waitCells({ p50, p99 }: LatencyQuantiles): Cell[] {
  return [
    ['waited p50', formatTime(p50)],
    ['waited p99', formatTime(p99)],
  ];
}

function listCounts({ offered, successes, refused, failed, sends, wasted, abandoned }: ReportCounts): Cell[] {
  return [
    ['requests', String(offered)],
    ['successes', String(successes)],
    ['refusals', String(refused)],
    ['failed', String(failed)],
    ['sends', String(sends)],
    ['429 or 5xx', String(wasted)],
    ...(abandoned > 0 ? [['abandoned', String(abandoned)] as const] : []),
  ];
}

/** As many cells per line as fit. */
function formatCells(cells: readonly Cell[], columns: number): string[] {
  const each = 26;
  const perLine = Math.max(1, Math.min(4, Math.floor((columns - 2) / each)));
  const lines: string[] = [];
  for (let start = 0; start < cells.length; start += perLine) {
    const row = cells.slice(start, start + perLine);
    lines.push(`  ${row.map(([name, value]) => `${name.padEnd(12)}${value}`.padEnd(each)).join('')}`);
  }
  return lines;
}

function formatGroups(groups: readonly GroupReport[]): string[] {
  const rows = groups.map(({ name, offered, served, share, latency, jain }) => [
    name,
    String(offered),
    formatNumber(served),
    formatNumber(share),
    formatTime(latency.p50),
    formatTime(latency.p99),
    formatNumber(jain),
  ]);
  const all = [['group', 'offered', 'served', 'share', 'p50', 'p99', 'Jain'], ...rows];
  const widths = (all[0] ?? []).map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) => {
    const cells = row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)));
    return `  ${cells.join('  ')}`;
  });
}

/** Of groups that have used up a quota; no lines if none has. */
function formatQuotaRefusals(groups: readonly GroupReport[]): string[] {
  const lines = groups
    .filter(({ refusedByQuota }) => refusedByQuota > 0)
    .map(
      ({ name, refusedByQuota, mostRefused }) =>
        `  ${name}: ${refusedByQuota} beyond a quota (one client: ${mostRefused})`,
    );
  return lines.length === 0 ? [] : [...lines, ''];
}

function formatGoal({ goal, bound, unit, value, met }: GoalResult): string {
  const format = unit === 'ms' ? formatTime : formatNumber;
  const actual = value === undefined ? 'never' : format(value);
  return `  ${met ? 'met   ' : 'MISSED'}  ${goal} ${formatBound(bound, format)}: ${actual}`;
}

function formatBound({ is, value }: GoalBound, format: (value: number) => string): string {
  return `${is} ${format(value)}`;
}

/** Up to four significant decimals. */
function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '∞';
  return Number.isInteger(value) ? String(value) : value.toFixed(value < 0.1 ? 4 : 3);
}

function formatTime(ms: Millis): string {
  if (ms === 0) return '0';
  if (ms < 10) return `${Number(ms.toFixed(1))}ms`;
  return ms < 1000 ? `${Math.round(ms)}ms` : `${Number((ms / 1000).toFixed(2))}s`;
}

const EIGHTHS = ' ▁▂▃▄▅▆▇█';

/** The rate as bars, the limit as a line. Where there is no rate limit, the bars show what was sent. */
function plot(series: readonly ReportSample[], columns: number): string[] {
  const last = series.at(-1);
  if (last === undefined) return [];
  const points = downsample(series, 1, columns - 12).map((each) => ({
    rate: meanValue(each, ({ rate, sent }) => (Number.isFinite(rate) ? rate : sent)),
    limit: lastValue(each, ({ limit }) => limit),
  }));
  const values = points.flatMap(({ rate, limit }) => [rate, limit]).filter(Number.isFinite);
  const top = roundUpAxis(1.05 * Math.max(...values, 1));
  const lines = Array.from({ length: ROWS }, (_, row) => {
    const floor = (top * (ROWS - 1 - row)) / ROWS;
    const step = top / ROWS;
    const cells = points.map(({ rate, limit }) => {
      if (limit >= floor && limit < floor + step) return '─';
      const eighths = Math.round(Math.max(0, Math.min(1, (rate - floor) / step)) * 8);
      return EIGHTHS[eighths] ?? ' ';
    });
    const label = row % 3 === 0 ? `${Math.round(top - row * step)}/s` : '';
    return `${label.padStart(9)} ┤${cells.join('')}`;
  });
  const end = formatTime(last.at);
  return [
    ...lines,
    `${' '.repeat(10)}└${'─'.repeat(points.length)}`,
    `${' '.repeat(11)}0${end.padStart(points.length - 1)}`,
    `${' '.repeat(11)}█ rate (sent, while open)   ─ limit`,
  ];
}

/** The next round number ≥ `value`, so that ten rows have readable labels. */
function roundUpAxis(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 1.5, 2, 3, 5, 7.5]) if (factor * power >= value) return factor * power;
  return 10 * power;
}
