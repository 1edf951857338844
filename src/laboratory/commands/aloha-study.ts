import type { ChannelRow } from '../aloha/compare-channels.ts';
import { compareChannels } from '../aloha/compare-channels.ts';
import type { Retransmission } from '../aloha/retransmission.ts';
import { retransmitByStrategy, retransmitByTable, RCP } from '../aloha/retransmission.ts';
import type { ThroughputRow } from '../aloha/aloha-throughput.ts';
import { simulateThroughput } from '../aloha/aloha-throughput.ts';
import { drawChart } from '../chart/draw-chart.ts';
import { linearScale } from '../chart/chart-scale.ts';
import type { Experiment } from '../experiment.ts';
import { mapResult } from '../experiment.ts';
import type { BackOffOptions, StrategyName } from '../../core/backoff/strategies.ts';
import { makeStrategy, describeUnusedOptions } from '../../cli/backoff/strategy-options.ts';
import type { StudySpec } from './study-parser.ts';
import { formatBar, joinLines, formatTable, pluralize } from './text-table.ts';
import type { StudyReport } from './study-report.ts';

/** G of the curves. */
const ATTEMPT_RATES = [
  0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.25, 2.5, 2.75, 3,
];
const DEFAULT_SLOTS = 1_000_000;
const BAR_WIDTH = 36;

/** `tidegate lab aloha`: throughput by offered load. */
export function studyThroughput(
  { slots = DEFAULT_SLOTS }: Extract<StudySpec, { study: 'throughput' }>,
  seed: number,
): Experiment<StudyReport> {
  return mapResult(simulateThroughput({ attempts: ATTEMPT_RATES, slots, seed }), formatThroughput);
}

function formatThroughput(rows: readonly ThroughputRow[]): StudyReport {
  const four = (value: number): string => value.toFixed(4);
  const lines = [
    'Throughput S of packets sent at random times, by offered load G; both in packets per packet time.',
    '',
    ...formatTable(
      ['G', 'pure', 'simulated', 'slotted', 'simulated', ''],
      rows.map((row) => [
        row.attempts.toFixed(2),
        four(row.pure),
        four(row.pureSimulated),
        four(row.slotted),
        four(row.slottedSimulated),
        formatBar(row.slotted, BAR_WIDTH).padEnd(BAR_WIDTH),
      ]),
    ),
    '',
    `pure: G·e^(−2G), at most 1/(2e) = ${(1 / (2 * Math.E)).toFixed(6)} at G = 0.5`,
    `slotted: G·e^(−G), at most 1/e = ${(1 / Math.E).toFixed(6)} at G = 1; bars: slotted`,
  ];
  return { text: joinLines(lines), json: { rows }, draw: () => drawThroughput(rows), isEmpty: rows.length === 0 };
}

function drawThroughput(rows: readonly ThroughputRow[]): string {
  const line = (name: string, of: (row: ThroughputRow) => number, dashed: boolean) => ({
    name,
    dashed,
    points: rows.map((row) => [row.attempts, of(row)] as const),
  });
  return drawChart({
    title: 'ALOHA: throughput by offered load',
    note: 'beyond the maximum, more load means less throughput: retries without a backoff lead there',
    x: {
      label: 'G: packets sent per packet time',
      scale: linearScale(
        rows.map(({ attempts }) => attempts),
        0,
      ),
      format: trimDecimals,
    },
    y: { label: 'S: packets delivered per packet time', scale: linearScale([0.4]), format: trimDecimals },
    lines: [
      line('slotted, simulated', (row) => row.slottedSimulated, false),
      line('pure, simulated', (row) => row.pureSimulated, false),
      line('G·e^(−G)', (row) => row.slotted, true),
      line('G·e^(−2G)', (row) => row.pure, true),
    ],
  });
}

/** `tidegate lab aloha NAME… --n --load`: compares retransmission strategies. @throws RangeError if options are invalid */
export function studyChannel(spec: Extract<StudySpec, { study: 'channel' }>, seed: number): Experiment<StudyReport> {
  const { users, load, slots = DEFAULT_SLOTS, strategies, options } = spec;
  const names: readonly StrategyName[] = strategies.length === 0 ? ['table', 'ethernet', 'full-jitter'] : strategies;
  const retransmissions = names.map((name) => makeRetransmission(name, options));
  const experiment = compareChannels({ users, load, retransmissions, slots, seed });
  const remarks = describeUnusedOptions(names, options);
  return mapResult(experiment, (rows) => ({ ...formatChannel(rows, users, load), remarks }));
}

/** A slot is a millisecond of a strategy; for strategies that count in slots it is one slot. */
function makeRetransmission(name: StrategyName, options: BackOffOptions): Retransmission {
  if (name === 'table') return retransmitByTable(options.table ?? RCP, options.slot);
  return retransmitByStrategy(makeStrategy(name, options, { slot: 1 }));
}

function formatChannel(rows: readonly ChannelRow[], users: number, load: number): StudyReport {
  const lines = [
    `${pluralize(users, 'user')} of a slotted channel that offer ${load} packets a slot; a delay of 1ms is one slot.`,
    '',
    ...formatTable(
      ['strategy', 'S', 'backlog', 'D (slots)', 'given up', ''],
      rows.map((row) => [
        row.strategy,
        row.throughput.toFixed(4),
        row.backlog.toFixed(2),
        Number.isFinite(row.delay) ? row.delay.toFixed(2) : '–',
        String(row.dropped),
        row.collapsed ? 'collapsed' : '',
      ]),
    ),
    '',
    'S: packets delivered per slot, without the first tenth of the time; D: slots from the first try of such a packet to its',
    'delivery. In a collapsed channel, most users have a collided packet, and less than half of the load is delivered.',
  ];
  const jsonRows = rows.map(({ delay, ...row }) => ({ ...row, delay: Number.isFinite(delay) ? delay : null }));
  return {
    text: joinLines(lines),
    json: { rows: jsonRows },
    draw: () => drawChannel(rows, users, load),
    isEmpty: rows.length === 0,
  };
}

function drawChannel(rows: readonly ChannelRow[], users: number, load: number): string {
  const points = rows.flatMap(({ history }) => history);
  return drawChart({
    title: `The backlog of ${pluralize(users, 'user')} at load ${load}`,
    note: 'a stable channel keeps the backlog small; a collapsed one does not recover',
    x: {
      label: 'slots',
      scale: linearScale(
        points.map(([slot]) => slot),
        0,
      ),
      format: thousands,
    },
    y: {
      label: 'users with a collided packet',
      scale: linearScale(points.map(([, backlog]) => backlog)),
      format: trimDecimals,
    },
    lines: rows.map(({ strategy, history }) => ({ name: strategy, points: history })),
  });
}

function trimDecimals(value: number): string {
  return String(Number(value.toFixed(4)));
}

function thousands(value: number): string {
  return value >= 1e6
    ? `${trimDecimals(value / 1e6)}M`
    : value >= 1e3
      ? `${trimDecimals(value / 1e3)}k`
      : String(value);
}
