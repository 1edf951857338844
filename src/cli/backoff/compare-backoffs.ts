/** `tidegate backoff NAME NAME …`: strategies side by side. Returns text; prints nothing. */
import type { BackOffStrategy } from '../../core/backoff/strategies.ts';
import type { BackoffRow } from './backoff-report.ts';
import { listRows, PLOT_WIDTH, plotBand, sumBands, formatTotalWait } from './backoff-report.ts';
import { formatDelay } from '../format-delay.ts';
import { plotSparklines } from './plot-sparklines.ts';

export interface BackoffComparison {
  /** Lines, each with a newline. */
  readonly text: string;
  readonly json: Readonly<Record<string, { readonly rows: readonly BackoffRow[] }>>;
}

const TOTAL_LABEL = 'in all';
const LABEL_WIDTH = 15;

/**
 * Prints mean delays in columns and a plot: bars on one scale, or a line per strategy if there are too many bars.
 * @param strategies with different names
 * @param attempts rows to show, ≥ 1; undefined: the default of the longest strategy
 * @param width columns of the terminal; strategies that do not fit continue below
 */
export function compareBackoffs(
  strategies: readonly BackOffStrategy[],
  attempts: number | undefined,
  width: number,
): BackoffComparison {
  const count = attempts ?? Math.max(...strategies.map((strategy) => listRows(strategy, undefined).length));
  const shown = strategies.map((strategy) => ({ strategy, rows: listRows(strategy, count) }));
  const lines = ['The mean wait after each attempt', ''];
  for (const some of chunk(shown, width - LABEL_WIDTH)) lines.push(...formatMeans(some), '');
  lines.push(...plot(shown, width), '');
  for (const strategy of strategies) {
    if (strategy.retries === Infinity) continue;
    lines.push(
      `  ${strategy.name} gives up after attempt ${strategy.retries + 1}, having waited ${formatTotalWait(strategy)}.`,
    );
  }
  return {
    text: lines.map((line) => `${line.trimEnd()}\n`).join(''),
    json: Object.fromEntries(shown.map(({ strategy, rows }) => [strategy.name, { rows }])),
  };
}

/** Bars that fit on a screen below the tables. */
const MAX_BARS = 32;

function plot(shown: readonly ShownStrategy[], width: number): string[] {
  const attempts = Math.max(...shown.map(({ rows }) => rows.length));
  if (attempts * shown.length <= MAX_BARS) return plotBars(shown, attempts);
  const few = Math.floor(MAX_BARS / shown.length);
  return [
    ...plotSparklines(
      shown.map(({ strategy, rows }) => ({ name: strategy.name, delays: rows.map(({ mean }) => mean) })),
      width,
    ),
    ...(few === 0 ? [] : ['', `  --attempts ${few} shows bars, with the random range of each wait.`]),
  ];
}

/** Attempt by attempt, on one scale. */
function plotBars(shown: readonly ShownStrategy[], attempts: number): string[] {
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
  return [...lines, '', '  █ always   ░ random part   ┃ mean'];
}

interface ShownStrategy {
  readonly strategy: BackOffStrategy;
  readonly rows: readonly BackoffRow[];
}

function formatMeans(shown: readonly ShownStrategy[]): string[] {
  const count = Math.max(...shown.map(({ rows }) => rows.length));
  const line = (label: string, cells: readonly string[]): string =>
    `  ${label.padStart(LABEL_WIDTH - 2)}${cells.map((cell, i) => cell.padStart(columnWidth(shown[i]))).join('')}`;
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
      TOTAL_LABEL,
      shown.map(({ strategy, rows }) => formatDelay(sumBands(strategy, rows).mean)),
    ),
    line(
      'at most',
      shown.map(({ strategy, rows }) => formatDelay(sumBands(strategy, rows).max)),
    ),
  ];
}

function columnWidth(shown: ShownStrategy | undefined): number {
  return 2 + Math.max(8, shown?.strategy.name.length ?? 0);
}

/** Splits the strategies into groups that fit the width, at least one in each. */
function chunk(shown: readonly ShownStrategy[], width: number): ShownStrategy[][] {
  const chunks: ShownStrategy[][] = [];
  let left = 0;
  for (const each of shown) {
    const needed = columnWidth(each);
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
