/** `tidegate backoff NAME NAME …`: strategies side by side. Text from options; nothing is printed here. */
import type { BackOffStrategy } from '../../core/backoff/strategies.ts';
import type { BackoffRow } from './backoff-report.ts';
import { listRows, PLOT_WIDTH, plotBand, sumBands, tellSum } from './backoff-report.ts';
import { formatDelay } from '../format-delay.ts';
import { plotHeights } from './plot-sparklines.ts';

export interface Comparison {
  /** Lines, each ended by a newline. */
  readonly text: string;
  readonly json: Readonly<Record<string, { readonly rows: readonly BackoffRow[] }>>;
}

const ALL = 'in all';
const BEFORE = 15;

/**
 * Means in columns, then a plot: bars on one scale, attempt by attempt, or a line for each where those are too many.
 * @param strategies with different names
 * @param attempts rows to show, ≥ 1; undefined: as many as the longest has by itself
 * @param width columns of the terminal: strategies that do not fit beside the others come below
 */
export function compareBackoffs(
  strategies: readonly BackOffStrategy[],
  attempts: number | undefined,
  width: number,
): Comparison {
  const count = attempts ?? Math.max(...strategies.map((strategy) => listRows(strategy, undefined).length));
  const shown = strategies.map((strategy) => ({ strategy, rows: listRows(strategy, count) }));
  const lines = ['The mean wait after each attempt', ''];
  for (const some of chunk(shown, width - BEFORE)) lines.push(...tableOf(some), '');
  lines.push(...plot(shown, width), '');
  for (const strategy of strategies) {
    if (strategy.retries === Infinity) continue;
    lines.push(
      `  ${strategy.name} gives up after attempt ${strategy.retries + 1}, having waited ${tellSum(strategy)}.`,
    );
  }
  return {
    text: lines.map((line) => `${line.trimEnd()}\n`).join(''),
    json: Object.fromEntries(shown.map(({ strategy, rows }) => [strategy.name, { rows }])),
  };
}

/** Bars that still fit on a screen, tables above them. */
const MOST_BARS = 32;

function plot(shown: readonly Shown[], width: number): string[] {
  const attempts = Math.max(...shown.map(({ rows }) => rows.length));
  if (attempts * shown.length <= MOST_BARS) return plotBars(shown, attempts);
  const few = Math.floor(MOST_BARS / shown.length);
  return [
    ...plotHeights(
      shown.map(({ strategy, rows }) => ({ name: strategy.name, delays: rows.map(({ mean }) => mean) })),
      width,
    ),
    ...(few === 0 ? [] : ['', `  --attempts ${few} shows bars, with what chance makes of each wait.`]),
  ];
}

/** Attempt by attempt, on one scale. */
function plotBars(shown: readonly Shown[], attempts: number): string[] {
  const scale = Math.max(...shown.flatMap(({ rows }) => rows.map(({ max }) => max)));
  const label = Math.max(...shown.map(({ strategy }) => strategy.name.length));
  const lines: string[] = [];
  for (let index = 0; index < attempts; index += 1) {
    for (const [place, { strategy, rows }] of shown.entries()) {
      const number = place === 0 ? String(index + 1) : '';
      const row = rows[index];
      const bar = row === undefined ? 'given up' : plotBand(row, scale, PLOT_WIDTH);
      lines.push(`  ${number.padStart(3)}  ${strategy.name.padEnd(label)}  ${bar}`);
    }
  }
  return [...lines, '', '  █ waited always   ░ as chance has it   ┃ mean'];
}

interface Shown {
  readonly strategy: BackOffStrategy;
  readonly rows: readonly BackoffRow[];
}

function tableOf(shown: readonly Shown[]): string[] {
  const count = Math.max(...shown.map(({ rows }) => rows.length));
  const line = (label: string, cells: readonly string[]): string =>
    `  ${label.padStart(BEFORE - 2)}${cells.map((cell, i) => cell.padStart(columnOf(shown[i]))).join('')}`;
  return [
    line(
      'after attempt',
      shown.map(({ strategy }) => strategy.name),
    ),
    ...Array.from({ length: count }, (_, i) =>
      line(
        String(i + 1),
        shown.map(({ rows }) => (rows[i] === undefined ? '–' : formatDelay(rows[i].mean))),
      ),
    ),
    line(
      ALL,
      shown.map(({ strategy, rows }) => formatDelay(sumBands(strategy, rows).mean)),
    ),
    line(
      'at most',
      shown.map(({ strategy, rows }) => formatDelay(sumBands(strategy, rows).max)),
    ),
  ];
}

function columnOf(shown: Shown | undefined): number {
  return 2 + Math.max(8, shown?.strategy.name.length ?? 0);
}

/** As many in each as fit, one at least. */
function chunk(shown: readonly Shown[], width: number): Shown[][] {
  const chunks: Shown[][] = [];
  let left = 0;
  for (const each of shown) {
    const needed = columnOf(each);
    const last = chunks.at(-1);
    if (last === undefined || needed > left) {
      chunks.push([each]);
      left = width - needed;
    } else {
      last.push(each);
      left -= needed;
    }
  }
  return chunks;
}
