import { drawChart } from '../chart/draw-chart.ts';
import { linearScale } from '../chart/chart-scale.ts';
import type { ContentionRow, ClientStrategy } from '../contention/compare-contention.ts';
import { compareContention } from '../contention/compare-contention.ts';
import type { Experiment } from '../experiment.ts';
import { mapResult } from '../experiment.ts';
import type { BackOffOptions, StrategyName } from '../../core/backoff/strategies.ts';
import { formatDelay } from '../../cli/format-delay.ts';
import { makeStrategy, describeUnusedOptions } from '../../cli/backoff/strategy-options.ts';
import type { StudySpec } from './study-parser.ts';
import { formatBar, joinLines, formatTable, pluralize } from './text-table.ts';
import type { StudyReport } from './study-report.ts';

const DEFAULT_SIZES = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
const DEFAULT_TRIALS = 100;
const BAR_WIDTH = 30;

/** The five strategies of Brooker's article: base 5 ms, first backoff twice that except for decorrelated jitter. */
const ESSAY_STRATEGIES: readonly StrategyName[] = ['exponential', 'equal-jitter', 'full-jitter', 'decorrelated-jitter'];
const ESSAY_OPTIONS = { baseInterval: 10, maxInterval: 2000 };
const ESSAY_DECORRELATED_OPTIONS = { ...ESSAY_OPTIONS, baseInterval: 5 };

/** `tidegate lab contention`. @throws RangeError if options are invalid */
export function studyContention(
  spec: Extract<StudySpec, { study: 'contention' }>,
  seed: number,
): Experiment<StudyReport> {
  const { sizes = DEFAULT_SIZES, trials = DEFAULT_TRIALS, strategies, options } = spec;
  const names = strategies.length === 0 ? ESSAY_STRATEGIES : strategies;
  const clientStrategies = [
    { name: 'none', backOff: undefined },
    ...names.map((name) => makeClientStrategy(name, options)),
  ];
  const remarks = describeUnusedOptions(names, options);
  return mapResult(compareContention({ sizes, clientStrategies, trials, seed }), (rows) => ({
    ...formatContention(rows),
    remarks,
  }));
}

function makeClientStrategy(name: StrategyName, options: BackOffOptions): ClientStrategy {
  const essay = name === 'decorrelated-jitter' ? ESSAY_DECORRELATED_OPTIONS : ESSAY_OPTIONS;
  return { name, backOff: makeStrategy(name, options, essay) };
}

function formatContention(rows: readonly ContentionRow[]): StudyReport {
  const sizes = [...new Set(rows.map(({ n }) => n))];
  const gaveUp = rows.some((row) => row.gaveUp !== undefined);
  const lines = ['Clients update one row: each reads it, writes it, and retries if another client wrote first.', ''];
  for (const n of sizes) {
    const some = rows.filter((row) => row.n === n);
    const most = Math.max(...some.map(({ calls }) => calls));
    lines.push(
      ...formatTable(
        [pluralize(n, 'client'), 'calls', 'time', ...(gaveUp ? ['gave up'] : []), ''],
        some.map((row) => [
          row.strategy,
          row.calls.toFixed(1),
          formatDelay(Math.round(row.millis)),
          ...(gaveUp ? [(row.gaveUp ?? 0).toFixed(1)] : []),
          formatBar(row.calls / most, BAR_WIDTH).padEnd(BAR_WIDTH),
        ]),
      ),
      '',
    );
  }
  lines.push('calls: writes that reached the server; time: until the last client has succeeded; bars: calls');
  return { text: joinLines(lines), json: { rows }, draw: () => drawContention(rows), isEmpty: rows.length === 0 };
}

function drawContention(rows: readonly ContentionRow[]): string {
  const names = [...new Set(rows.map(({ strategy }) => strategy))];
  return drawChart({
    title: 'Calls of all contending clients',
    note: 'optimistic concurrency on one row; fewer calls mean less wasted work on the server',
    x: {
      label: 'clients',
      scale: linearScale(
        rows.map(({ n }) => n),
        0,
      ),
      format: String,
    },
    y: { label: 'calls', scale: linearScale(rows.map(({ calls }) => calls)), format: String },
    lines: names.map((name) => ({
      name,
      points: rows.filter(({ strategy }) => strategy === name).map(({ n, calls }) => [n, calls]),
    })),
  });
}
