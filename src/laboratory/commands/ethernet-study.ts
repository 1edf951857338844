import { drawChart } from '../chart/draw-chart.ts';
import { linearScale } from '../chart/chart-scale.ts';
import type { EthernetRow } from '../ethernet/compare-segments.ts';
import { compareSegments } from '../ethernet/compare-segments.ts';
import { SLOT_BITS } from '../ethernet/ethernet-segment.ts';
import type { Experiment } from '../experiment.ts';
import { mapResult } from '../experiment.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import { formatDelay } from '../../cli/format-delay.ts';
import type { StudySpec } from './study-parser.ts';
import { formatBar, joinLines, formatTable } from './text-table.ts';
import type { StudyReport } from './study-report.ts';

const DEFAULT_STATIONS = [1, 2, 3, 5, 10, 20, 30, 50, 75, 100];
const DEFAULT_FRAME_BYTES = 1518;
const DEFAULT_SECONDS = 10;
const BAR_WIDTH = 24;

/** `tidegate lab ethernet`. */
export function studyEthernet(spec: Extract<StudySpec, { study: 'ethernet' }>, seed: number): Experiment<StudyReport> {
  const {
    stations = DEFAULT_STATIONS,
    frame = DEFAULT_FRAME_BYTES,
    load = Number.POSITIVE_INFINITY,
    seconds = DEFAULT_SECONDS,
  } = spec;
  const backOff = makeBackOff({ strategy: 'ethernet', slot: SLOT_BITS });
  const experiment = compareSegments({ stations, frame: 8 * frame, load, backOff, time: 1000 * seconds, seed });
  const isSaturated = load === Number.POSITIVE_INFINITY;
  const head = `Stations on one CSMA/CD segment of 10 Mb/s, frames of ${frame} bytes; ${
    isSaturated ? 'each always has a frame to send' : `together they offer ${load} of its capacity`
  }.`;
  return mapResult(experiment, (rows) => formatEthernet(rows, head, isSaturated));
}

const SATURATED_NOTE = [
  'dropped: given up after 16 collisions; delay: of delivered frames; predicted: Metcalfe and Boggs (1976), for stations',
  'that know their number and always have a frame. More is the capture effect: the last sender waits least.',
];
const LOADED_NOTE = [
  'dropped: given up after 16 collisions; delay: of delivered frames. A closed loop: a station has its next frame only after a',
  'pause that begins when it has finished the last one, so stations offer less than the load, and less the longer they wait.',
];

function formatEthernet(rows: readonly EthernetRow[], head: string, isSaturated: boolean): StudyReport {
  const percent = (part: number): string => `${(100 * part).toFixed(2)} %`;
  const lines = [
    head,
    '',
    ...formatTable(
      [
        'stations',
        'efficiency',
        ...(isSaturated ? ['predicted'] : []),
        'delay',
        'p99',
        'collisions a frame',
        'dropped',
        '',
      ],
      rows.map((row) => [
        String(row.stations),
        row.efficiency.toFixed(4),
        ...(row.predicted === undefined ? [] : [row.predicted.toFixed(4)]),
        formatIfFinite(row.delay, formatDelay),
        formatIfFinite(row.p99, formatDelay),
        formatIfFinite(row.collisions, (collisions) => collisions.toFixed(3)),
        percent(row.dropped),
        formatBar(row.efficiency, BAR_WIDTH).padEnd(BAR_WIDTH),
      ]),
    ),
    '',
    ...(isSaturated ? SATURATED_NOTE : LOADED_NOTE),
  ];
  const jsonRows = rows.map(({ predicted, delay, p99, collisions, ...row }) => ({
    ...row,
    delay: finiteOrNull(delay),
    p99: finiteOrNull(p99),
    collisions: finiteOrNull(collisions),
    predicted: predicted ?? null,
  }));
  return {
    text: joinLines(lines),
    json: { rows: jsonRows },
    draw: () => drawEthernet(rows, head),
    isEmpty: rows.length === 0,
  };
}

function formatIfFinite(value: number, format: (value: number) => string): string {
  return Number.isFinite(value) ? format(value) : '–';
}

/** JSON has no infinity. */
function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

function drawEthernet(rows: readonly EthernetRow[], head: string): string {
  const line = (name: string, of: (row: EthernetRow) => number, dashed = false) => ({
    name,
    dashed,
    points: rows.map((row) => [row.stations, of(row)] as const),
  });
  return drawChart({
    title: 'Ethernet with truncated binary exponential backoff',
    note: head,
    x: {
      label: 'stations',
      scale: linearScale(
        rows.map(({ stations }) => stations),
        0,
      ),
      format: String,
    },
    y: { label: 'share', scale: linearScale([1]), format: (part) => String(Number(part.toFixed(2))) },
    lines: [
      line('efficiency', (row) => row.efficiency),
      ...(rows.some(({ predicted }) => predicted !== undefined)
        ? [line('predicted', (row) => row.predicted ?? Number.NaN, true)]
        : []),
      line('dropped', (row) => row.dropped),
    ],
  });
}
