/** `tidegate backoff NAME`: the delays of a strategy as a table and a plot. Returns text; prints nothing. */
import type { BackOffOptions, BackOffSpec, BackOffStrategy, Band } from '../../core/backoff/strategies.ts';
import { makeBackOff, strategies, strategyNames } from '../../core/backoff/strategies.ts';
import type { Millis } from '../../core/scalars.ts';
import { formatDelay } from '../format-delay.ts';

export interface BackoffReportOptions {
  /** Rows to show, ≥ 1; undefined: ten, or all there are of a strategy that gives up. */
  readonly attempts?: number | undefined;
  /** Columns of the plot, ≥ 1. */
  readonly plotWidth?: number | undefined;
}

/** The wait after attempt `attempt` (from 1) has failed, in ms. */
export interface BackoffRow extends Band {
  readonly attempt: number;
}

/** The report in both forms: text for a terminal, and the value for `--json`. */
export interface BackoffReport {
  /** Lines, each with a newline. */
  readonly text: string;
  readonly json: { readonly rows: readonly BackoffRow[] };
}

const DEFAULT_ROWS = 10;
export const PLOT_WIDTH = 40;

/** Shows a strategy. @throws BackOffOptionError naming an impossible option. */
export function renderBackoff(
  spec: BackOffSpec,
  { attempts, plotWidth = PLOT_WIDTH }: BackoffReportOptions = {},
): BackoffReport {
  const strategy = makeBackOff(spec);
  const { summary, formula, expectation, source } = strategies[spec.strategy];
  const rows = listRows(strategy, attempts);
  const total = sumBands(strategy, rows);
  const scale = Math.max(...rows.map((row) => row.max));
  const lines = [
    `${strategy.name}: ${summary}`,
    '',
    `  delay    ${formula}`,
    '           n counts retries from 0, u is uniform on [0, 1)',
    ...(expectation === undefined ? [] : [`  mean     ${expectation}`]),
    `  source   ${source}`,
    `  options  ${describeOptions(strategy.options)}`,
    '',
    tableLine('after attempt', 'min', 'mean', 'max'),
    ...rows.map((row) => `${bandLine(String(row.attempt), row)}  ${plotBand(row, scale, plotWidth)}`.trimEnd()),
    bandLine('in all', total),
    '',
    '  █ always   ░ random part   ┃ mean',
    `  ${describeEnd(strategy)}`,
  ];
  return { text: lines.map((line) => `${line}\n`).join(''), json: { rows } };
}

/** Every strategy with a line about it: `tidegate backoff` without a name. */
export function listBackoffs(): string {
  const width = Math.max(...strategyNames.map((name) => name.length));
  return strategyNames.map((name) => `  ${name.padEnd(width)}  ${strategies[name].summary}\n`).join('');
}

/** @param count undefined: ten, or all there are of a strategy that gives up */
export function listRows(strategy: BackOffStrategy, count: number | undefined): BackoffRow[] {
  const rows: BackoffRow[] = [];
  for (let n = 0; n < (count ?? (strategy.retries === Infinity ? DEFAULT_ROWS : strategy.retries)); n += 1) {
    const band = strategy.band(n);
    if (band === undefined) break;
    rows.push({
      attempt: n + 1,
      min: roundToNanosecond(band.min),
      mean: roundToNanosecond(band.mean),
      max: roundToNanosecond(band.max),
    });
  }
  return rows;
}

/** To the nanosecond: 4096.000000000001 is a rounding error of 1.6³. */
function roundToNanosecond(delay: Millis): Millis {
  return Number(delay.toFixed(6));
}

/**
 * The band of the total delay. Means add up whether or not the delays depend on each other; minimum and maximum add up unless
 * the strategy overrides them.
 * @param bands the bands of its first delays
 */
export function sumBands(strategy: BackOffStrategy, bands: readonly Band[]): Band {
  const sum = { min: 0, mean: 0, max: 0 };
  for (const { min, mean, max } of bands) {
    sum.min += min;
    sum.mean += mean;
    sum.max += max;
  }
  return { ...sum, ...strategy.sumRange(bands.length) };
}

function describeEnd(strategy: BackOffStrategy): string {
  if (strategy.retries === Infinity) return "Never gives up: the route's attempts or timeout end it.";
  return `Gives up after attempt ${strategy.retries + 1}, having waited ${formatTotalWait(strategy)}.`;
}

/** The total delay of a strategy until it gives up. */
export function formatTotalWait(strategy: BackOffStrategy): string {
  const { min, mean, max } = sumBands(strategy, listRows(strategy, strategy.retries));
  return min === max ? formatDelay(mean) : `${formatDelay(mean)} on average, at most ${formatDelay(max)}`;
}

const DURATION_OPTIONS: ReadonlySet<string> = new Set(['baseInterval', 'maxInterval', 'jitterInterval', 'slot']);

function describeOptions(options: BackOffOptions): string {
  return Object.entries(options)
    .map(([name, value]) => {
      if (Array.isArray(value)) return `${name} [${value.join(', ')}]`;
      return `${name} ${DURATION_OPTIONS.has(name) ? formatDelay(Number(value)) : String(value)}`;
    })
    .join(', ');
}

function bandLine(label: string, { min, mean, max }: Band): string {
  return tableLine(label, formatDelay(min), formatDelay(mean), formatDelay(max));
}

function tableLine(label: string, ...cells: readonly string[]): string {
  return `  ${label.padStart(13)}${cells.map((cell) => ` ${cell}`.padStart(10)).join('')}`;
}

/** Draws the band as a bar; `scale` fills the width. A delay too short for a column still leaves a mark. */
export function plotBand({ min, mean, max }: Band, scale: Millis, width: number): string {
  if (max === 0) return '';
  const columns = (delay: Millis): number => Math.round((delay / scale) * width);
  const bar = '█'.repeat(columns(min)) + '░'.repeat(columns(max) - columns(min));
  if (bar === '') return '▏';
  if (min === max) return bar;
  const middle = Math.min(columns(mean), bar.length - 1);
  return `${bar.slice(0, middle)}┃${bar.slice(middle + 1)}`;
}
