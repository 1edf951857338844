import { formatRate } from '../../config/values/unit-schemas.ts';
import { drawChart } from '../chart/draw-chart.ts';
import { linearScale, logScale } from '../chart/chart-scale.ts';
import type { Experiment } from '../experiment.ts';
import { mapResult } from '../experiment.ts';
import type { HerdRow, HerdSettings } from '../herd/compare-herds.ts';
import { compareHerds, minDrainTime, maxDrainTime } from '../herd/compare-herds.ts';
import { HINT_POLICIES, HINT_SUMMARIES } from '../herd/hint-policy.ts';
import type { StrategyName } from '../../core/backoff/strategies.ts';
import { formatDelay } from '../../cli/format-delay.ts';
import { makeStrategy, describeUnusedOptions } from '../../cli/backoff/strategy-options.ts';
import type { StudySpec } from './study-parser.ts';
import { joinLines, formatTable } from './text-table.ts';
import { StudyError } from './study-error.ts';
import type { StudyReport } from './study-report.ts';

const DEFAULT_CLIENTS = 1000;
const DEFAULT_RATE = 100;
const DEFAULT_BURST = 10;
const DEFAULT_TRIALS = 5;
const DEFAULT_STRATEGIES: readonly StrategyName[] = [
  'fixed',
  'exponential',
  'equal-jitter',
  'full-jitter',
  'decorrelated-jitter',
];

/** The period of a client that retries at once: two network hops, in ms. */
const ROUND_TRIP = 20;
/** Requests in a trial: some minutes of one core. */
const MAX_REQUESTS = 1e9;

/** `tidegate lab thundering-herd`. @throws RangeError if options are invalid, StudyError if it would never end */
export function studyHerd(
  spec: Extract<StudySpec, { study: 'thundering-herd' }>,
  seed: number,
): Experiment<StudyReport> {
  const {
    clients = DEFAULT_CLIENTS,
    rate = DEFAULT_RATE,
    burst = DEFAULT_BURST,
    trials = DEFAULT_TRIALS,
    strategies,
    options,
  } = spec;
  const minDrain = minDrainTime({ clients, rate });
  // On average half of the clients are unserved until the last one is served, and each retries.
  const requests = (clients / 2) * (minDrain / ROUND_TRIP);
  if (requests > MAX_REQUESTS) {
    throw new StudyError(
      `${clients} clients without a backoff would send ${requests.toPrecision(2)} requests at a limit of ${formatRate(rate)}: use fewer clients (--n) or a higher --limit`,
    );
  }
  const names = strategies.length === 0 ? DEFAULT_STRATEGIES : strategies;
  const clientStrategies = [
    { name: 'none', backOff: undefined },
    ...names.map((name) => ({ name, backOff: makeStrategy(name, options) })),
  ];
  const experiment = compareHerds({
    clients,
    rate,
    burst,
    hints: HINT_POLICIES,
    clientStrategies,
    trials,
    seed,
  });
  const head = `${
    clients === 1
      ? 'A client is refused by a limit of'
      : `${clients} clients are refused at the same time by a limit of`
  } ${formatRate(rate)}, and ${clients === 1 ? 'returns' : 'return'}; serving ${clients === 1 ? 'it' : 'them'} takes at least ${formatDelay(minDrain)}.`;
  const remarks = describeUnusedOptions(names, options);
  return mapResult(experiment, (rows) => ({ ...formatHerd(rows, head, { clients, rate }), remarks }));
}

function formatHerd(
  rows: readonly HerdRow[],
  head: string,
  parameters: Pick<HerdSettings, 'clients' | 'rate'>,
): StudyReport {
  const hasUnserved = rows.some(({ drain }) => drain === undefined);
  const lines = [head];
  for (const hint of HINT_POLICIES) {
    const some = rows.filter((row) => row.hint === hint);
    if (some.length === 0) continue;
    lines.push(
      '',
      `Hint of the refusal (${hint}): ${HINT_SUMMARIES[hint]}`,
      ...formatTable(
        [
          'strategy',
          'drained in',
          ...(hasUnserved ? ['last served'] : []),
          'peak',
          'waste',
          'p50',
          'p99',
          ...(hasUnserved ? ['gave up', 'unserved'] : []),
        ],
        some.map((row) => [
          row.strategy,
          row.drain === undefined ? '–' : formatTime(row.drain),
          ...(hasUnserved ? [isServed(row) ? formatTime(row.lastServed) : '–'] : []),
          row.peak.toFixed(0),
          Number.isFinite(row.waste) ? row.waste.toFixed(2) : '–',
          isServed(row) ? formatTime(row.p50) : '–',
          isServed(row) ? formatTime(row.p99) : '–',
          ...(hasUnserved ? [formatMeanCount(row.gaveUp), formatMeanCount(row.unserved)] : []),
        ]),
      ),
    );
  }
  lines.push(
    '',
    'A client waits as long as its strategy or the hint says, whichever is longer. peak: most requests within 100ms;',
    'waste: further refusals per client served; p50, p99: time until a client was served.',
  );
  if (hasUnserved) {
    lines.push(
      `Not drained (–): some clients were not served; p50 and p99 are of the others. gave up: ended by the strategy; unserved: still`,
      `retrying after ${formatDelay(maxDrainTime(parameters))}, when the trial ends.`,
    );
  }
  const jsonRows = rows.map(({ drain, waste, ...row }) => ({
    ...row,
    drain: drain ?? null,
    waste: Number.isFinite(waste) ? waste : null,
  }));
  return {
    text: joinLines(lines),
    json: { rows: jsonRows },
    draw: () => drawHerd(rows, head, minDrainTime(parameters)),
    isEmpty: rows.length === 0,
  };
}

/** Whether there was any. */
function isServed({ lastServed }: HerdRow): boolean {
  return lastServed > 0;
}

function formatTime(time: number): string {
  return formatDelay(Math.round(time));
}

/** Formats a mean of counts: with a digit if it is not whole, so that one in five trials is not 0. */
function formatMeanCount(mean: number): string {
  return Number.isInteger(mean) ? String(mean) : mean.toFixed(1);
}

/** Arrivals over time: with full jitter if it takes part, else with the last strategy named. */
function drawHerd(rows: readonly HerdRow[], head: string, least: number): string {
  const strategy = rows.some((row) => row.strategy === 'full-jitter')
    ? 'full-jitter'
    : (rows.at(-1)?.strategy ?? 'none');
  const shown = rows.filter((row) => row.strategy === strategy);
  // Three times the minimum shows the difference; some go on for much longer.
  const end = 3 * least;
  const lines = shown.map(({ hint, moments }) => ({
    name: hint,
    points: smooth(moments).filter(([at]) => at <= end),
  }));
  return drawChart({
    title: `A thundering herd, by the hint of its refusals; clients use ${strategy}`,
    note: head,
    x: { label: 'time', scale: linearScale([0, end / 1000]), format: (at) => `${at} s` },
    y: {
      label: 'requests per second',
      scale: logScale([1, ...lines.flatMap(({ points }) => points.map(([, y]) => y))]),
      format: String,
    },
    lines: lines.map((line) => ({ ...line, points: line.points.map(([at, y]) => [at / 1000, y] as const) })),
  });
}

/** Requests a second, in windows of a second. */
function smooth(moments: readonly number[]): (readonly [at: number, rate: number])[] {
  const points: (readonly [number, number])[] = [];
  for (let i = 0; i < moments.length; i += 10) {
    points.push([100 * i + 500, moments.slice(i, i + 10).reduce((a, b) => a + b, 0)]);
  }
  return points;
}
