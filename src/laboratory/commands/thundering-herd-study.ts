import { writeRate } from '../../config/values/unit-schemas.ts';
import { drawChart } from '../chart/draw-chart.ts';
import { linearScale, logScale } from '../chart/chart-scale.ts';
import type { Experiment } from '../experiment.ts';
import { retell } from '../experiment.ts';
import type { HerdRow, HerdSettings } from '../herd/compare-herds.ts';
import { compareHerds, leastDrain, mostDrain } from '../herd/compare-herds.ts';
import { HINT_POLICIES, HINT_SUMMARIES } from '../herd/hint-policy.ts';
import type { StrategyName } from '../../core/backoff/strategies.ts';
import { formatDelay } from '../../cli/format-delay.ts';
import { makeStrategy, tellUnread } from '../../cli/backoff/strategy-options.ts';
import type { StudySpec } from './lab-arguments.ts';
import { joinLines, layTable } from './text-table.ts';
import { StudyError } from './study-error.ts';
import type { Told } from './study-report.ts';

const CLIENTS = 1000;
const RATE = 100;
const BURST = 10;
const TRIALS = 5;
const STRATEGIES: readonly StrategyName[] = [
  'fixed',
  'exponential',
  'equal-jitter',
  'full-jitter',
  'decorrelated-jitter',
];

/** Of a client that tries again at once: two hops of the network. */
const TURN = 20;
/** In a trial: some minutes of one core. */
const MOST_REQUESTS = 1e9;

/** `tidegate lab thundering-herd`. @throws RangeError where options do not fit, StudyError where it would never end */
export function studyHerd(spec: Extract<StudySpec, { study: 'thundering-herd' }>, seed: number): Experiment<Told> {
  const { clients = CLIENTS, rate = RATE, burst = BURST, trials = TRIALS, strategies, options } = spec;
  const least = leastDrain({ clients, rate });
  // Half of them are left on average until the last is served, each asking again and again.
  const requests = (clients / 2) * (least / TURN);
  if (requests > MOST_REQUESTS) {
    throw new StudyError(
      `${clients} clients without a backoff would ask ${requests.toPrecision(2)} times at a limit of ${writeRate(rate)}: fewer clients (--n), or a higher --limit`,
    );
  }
  const names = strategies.length === 0 ? STRATEGIES : strategies;
  const contestants = [
    { name: 'none', backOff: undefined },
    ...names.map((name) => ({ name, backOff: makeStrategy(name, options) })),
  ];
  const experiment = compareHerds({ clients, rate, burst, hints: HINT_POLICIES, contestants, trials, seed });
  const head = `${
    clients === 1 ? 'A client is refused by a limit of' : `${clients} clients are refused at once by a limit of`
  } ${writeRate(rate)}, and ${clients === 1 ? 'comes' : 'come'} back; ${formatDelay(least)} would do.`;
  const remarks = tellUnread(names, options);
  return retell(experiment, (rows) => ({ ...tell(rows, head, { clients, rate }), remarks }));
}

function tell(rows: readonly HerdRow[], head: string, world: Pick<HerdSettings, 'clients' | 'rate'>): Told {
  const isLeft = rows.some(({ drain }) => drain === undefined);
  const lines = [head];
  for (const hint of HINT_POLICIES) {
    const some = rows.filter((row) => row.hint === hint);
    if (some.length === 0) continue;
    lines.push(
      '',
      `The refusal says ${HINT_SUMMARIES[hint]} (${hint}):`,
      ...layTable(
        [
          'strategy',
          'drained in',
          ...(isLeft ? ['last served'] : []),
          'peak',
          'waste',
          'p50',
          'p99',
          ...(isLeft ? ['gave up', 'unserved'] : []),
        ],
        some.map((row) => [
          row.strategy,
          row.drain === undefined ? '–' : tellTime(row.drain),
          ...(isLeft ? [isServed(row) ? tellTime(row.lastServed) : '–'] : []),
          row.peak.toFixed(0),
          Number.isFinite(row.waste) ? row.waste.toFixed(2) : '–',
          isServed(row) ? tellTime(row.p50) : '–',
          isServed(row) ? tellTime(row.p99) : '–',
          ...(isLeft ? [tellCount(row.gaveUp), tellCount(row.unserved)] : []),
        ]),
      ),
    );
  }
  lines.push(
    '',
    'A client waits for its own strategy and for what it was told, whichever is longer. peak: most requests within 100ms;',
    'waste: refusals after the first, a client served; p50, p99: until a client was served.',
  );
  if (isLeft) {
    lines.push(
      `Not drained: not all were served, and p50 and p99 are of those who were. gave up: by its own strategy; unserved: still`,
      `trying after ${formatDelay(mostDrain(world))}, when nobody waits for them any longer.`,
    );
  }
  const told = rows.map(({ drain, waste, ...row }) => ({
    ...row,
    drain: drain ?? null,
    waste: Number.isFinite(waste) ? waste : null,
  }));
  return {
    text: joinLines(lines),
    json: { rows: told },
    draw: () => draw(rows, head, leastDrain(world)),
    isEmpty: rows.length === 0,
  };
}

/** Whether anybody was. */
function isServed({ lastServed }: HerdRow): boolean {
  return lastServed > 0;
}

function tellTime(time: number): string {
  return formatDelay(Math.round(time));
}

/** A mean of counts: with a digit where it is none, so that one in five trials is not 0. */
function tellCount(mean: number): string {
  return Number.isInteger(mean) ? String(mean) : mean.toFixed(1);
}

/** What arrives over time: with full jitter where it takes part, else with the strategy that was named last. */
function draw(rows: readonly HerdRow[], head: string, least: number): string {
  const strategy = rows.some((row) => row.strategy === 'full-jitter')
    ? 'full-jitter'
    : (rows.at(-1)?.strategy ?? 'none');
  const shown = rows.filter((row) => row.strategy === strategy);
  // Three times what is needed shows the difference; some go on for much longer.
  const end = 3 * least;
  const lines = shown.map(({ hint, moments }) => ({
    name: hint,
    points: smooth(moments).filter(([at]) => at <= end),
  }));
  return drawChart({
    title: `A thundering herd by what its refusals say; clients with ${strategy}`,
    note: head,
    x: { label: 'time', scale: linearScale([0, end / 1000]), format: (at) => `${at} s` },
    y: {
      label: 'requests a second',
      scale: logScale([1, ...lines.flatMap(({ points }) => points.map(([, y]) => y))]),
      format: String,
    },
    lines: lines.map((line) => ({ ...line, points: line.points.map(([at, y]) => [at / 1000, y] as const) })),
  });
}

/** Requests a second, over a second each. */
function smooth(moments: readonly number[]): (readonly [at: number, rate: number])[] {
  const points: (readonly [number, number])[] = [];
  for (let i = 0; i < moments.length; i += 10) {
    points.push([100 * i + 500, moments.slice(i, i + 10).reduce((a, b) => a + b, 0)]);
  }
  return points;
}
