import { drawChart } from '../chart/draw-chart.ts';
import { linearScale } from '../chart/chart-scale.ts';
import type { ContentionRow, Contestant } from '../contention/compare-contention.ts';
import { compareContenders } from '../contention/compare-contention.ts';
import type { Experiment } from '../experiment.ts';
import { retell } from '../experiment.ts';
import type { BackOffOptions, StrategyName } from '../../core/backoff/strategies.ts';
import { formatDelay } from '../../cli/format-delay.ts';
import { makeStrategy, tellUnread } from '../../cli/backoff/strategy-options.ts';
import type { StudySpec } from './lab-arguments.ts';
import { bar, joinLines, layTable, plural } from './text-table.ts';
import type { Told } from './study-report.ts';

const SIZES = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
const TRIALS = 100;
const BAR = 30;

/** The five of the essay: its base is 5 ms, and its first backoff twice that, but where it is decorrelated. */
const FIVE: readonly StrategyName[] = ['exponential', 'equal-jitter', 'full-jitter', 'decorrelated-jitter'];
const ESSAY = { baseInterval: 10, maxInterval: 2000 };
const ESSAY_DECORRELATED = { ...ESSAY, baseInterval: 5 };

/** `tidegate lab contention`. @throws RangeError where options do not fit */
export function studyContention(spec: Extract<StudySpec, { study: 'contention' }>, seed: number): Experiment<Told> {
  const { sizes = SIZES, trials = TRIALS, strategies, options } = spec;
  const names = strategies.length === 0 ? FIVE : strategies;
  const contestants = [{ name: 'none', backOff: undefined }, ...names.map((name) => contestant(name, options))];
  const remarks = tellUnread(names, options);
  return retell(compareContenders({ sizes, contestants, trials, seed }), (rows) => ({ ...tell(rows), remarks }));
}

function contestant(name: StrategyName, options: BackOffOptions): Contestant {
  const essay = name === 'decorrelated-jitter' ? ESSAY_DECORRELATED : ESSAY;
  return { name, backOff: makeStrategy(name, options, essay) };
}

function tell(rows: readonly ContentionRow[]): Told {
  const sizes = [...new Set(rows.map(({ n }) => n))];
  const gaveUp = rows.some((row) => row.gaveUp !== undefined);
  const lines = ['Clients contend for one row: each reads it, writes it, and tries again when another was faster.', ''];
  for (const n of sizes) {
    const some = rows.filter((row) => row.n === n);
    const most = Math.max(...some.map(({ calls }) => calls));
    lines.push(
      ...layTable(
        [plural(n, 'client'), 'calls', 'time', ...(gaveUp ? ['gave up'] : []), ''],
        some.map((row) => [
          row.strategy,
          row.calls.toFixed(1),
          formatDelay(Math.round(row.millis)),
          ...(gaveUp ? [(row.gaveUp ?? 0).toFixed(1)] : []),
          bar(row.calls / most, BAR).padEnd(BAR),
        ]),
      ),
      '',
    );
  }
  lines.push('calls: writes that reached the server; time: until the last client is done; bars: calls');
  return { text: joinLines(lines), json: { rows }, draw: () => draw(rows), isEmpty: rows.length === 0 };
}

function draw(rows: readonly ContentionRow[]): string {
  const names = [...new Set(rows.map(({ strategy }) => strategy))];
  return drawChart({
    title: 'Calls that contending clients need together',
    note: 'optimistic concurrency on one row; the fewer calls, the less work the server does in vain',
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
