import type { Millis } from '../../../src/core/scalars.ts';
import { TOLERANCE } from './agreement.ts';
import type { SimulationComparison } from './agreement.ts';
import type { GoodputRow } from './row.ts';
import type { KindResult } from './run-kind.ts';

export interface GoodputTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Results by limit and contender. */
export function goodputTable(results: readonly KindResult[], absent: readonly string[]): GoodputTable {
  return {
    title: 'Goodput and waste',
    head: [
      'hidden limit',
      'proxy',
      'goodput',
      'waste',
      'cold waste',
      'refused',
      'failed',
      'p50',
      'p99',
      'goodput ÷ Tidegate’s',
      'waste ÷ Tidegate’s',
    ],
    rows: results.flatMap(({ kind, rows }) => {
      const ours = rows.find(isOurs);
      return [
        ...rows.map((row) => [kind.title, row.contender, ...figures(row), ...ratios(row, ours)]),
        ...absent.map((name) => [kind.title, name, 'not installed', '', '', '', '', '', '', '', '']),
      ];
    }),
  };
}

/** Comparison with the simulator. */
export function agreementTable(results: readonly KindResult[]): GoodputTable {
  const { goodput, waste } = TOLERANCE;
  return {
    title: `Sockets and simulator (mean ± standard deviation of a run); to agree within ${goodput} of goodput and ${waste} of waste`,
    head: [
      'hidden limit',
      'goodput',
      'simulated',
      'apart',
      'agree',
      'waste',
      'simulated',
      'apart',
      'agree',
      'sent late, p99',
    ],
    rows: results.flatMap(({ kind, rows, agreement }) => {
      if (agreement === undefined) return [];
      const late = rows.find(isOurs)?.measurement.lateness ?? 0;
      return [[kind.title, ...apart(agreement.goodput, 3), ...apart(agreement.waste, 4), `${late.toFixed(1)} ms`]];
    }),
  };
}

/** Waste without any success. */
const LOCKED_OUT = '∞';

export function toText({ title, head, rows }: GoodputTable): string {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [title, '', line(head), ...rows.map(line), ''].join('\n');
}

export function toMarkdown({ title, head, rows }: GoodputTable): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [`${title}:`, '', line(head), line(head.map(() => '---')), ...rows.map(line), ''].join('\n');
}

function isOurs({ contender }: GoodputRow): boolean {
  return contender === 'tidegate';
}

function figures({ goodput, waste, coldWaste, refused, failed, measurement }: GoodputRow): string[] {
  const { p50, p99 } = measurement.latency;
  return [
    goodput.toFixed(3),
    Number.isFinite(waste) ? waste.toFixed(4) : LOCKED_OUT,
    coldWaste.toFixed(3),
    formatPercent(refused),
    formatPercent(failed),
    ...[p50, p99].map((time) => (goodput > 0 ? formatMillis(time) : '–')),
  ];
}

function ratios(row: GoodputRow, ours: GoodputRow | undefined): string[] {
  if (ours === undefined || row === ours) return ['', ''];
  const waste = wasteRatio(row, ours);
  return [`${(row.goodput / ours.goodput).toFixed(2)} ×`, waste];
}

function wasteRatio(row: GoodputRow, ours: GoodputRow): string {
  if (!Number.isFinite(row.waste)) return LOCKED_OUT;
  return ours.waste === 0 ? 'Tidegate’s is 0' : `${(row.waste / ours.waste).toFixed(0)} ×`;
}

function apart({ measured, simulated, deviation, difference, agrees }: SimulationComparison, digits: number): string[] {
  const spread = `${simulated.toFixed(digits)} ± ${deviation.toFixed(digits)}`;
  return [measured.toFixed(digits), spread, difference.toFixed(digits), agrees ? 'yes' : 'no'];
}

export function formatPercent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function formatMillis(time: Millis): string {
  return `${time.toFixed(0)} ms`;
}
