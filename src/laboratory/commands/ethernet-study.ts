import { drawChart } from '../chart/draw-chart.ts';
import { linearScale } from '../chart/chart-scale.ts';
import type { EthernetRow } from '../ethernet/compare-segments.ts';
import { compareSegments } from '../ethernet/compare-segments.ts';
import { SLOT } from '../ethernet/ethernet-segment.ts';
import type { Experiment } from '../experiment.ts';
import { retell } from '../experiment.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import { formatDelay } from '../../cli/format-delay.ts';
import type { StudySpec } from './lab-arguments.ts';
import { bar, joinLines, layTable } from './text-table.ts';
import type { Told } from './study-report.ts';

const STATIONS = [1, 2, 3, 5, 10, 20, 30, 50, 75, 100];
const FRAME = 1518;
const SECONDS = 10;
const BAR = 24;

/** `tidegate lab ethernet`. */
export function studyEthernet(spec: Extract<StudySpec, { study: 'ethernet' }>, seed: number): Experiment<Told> {
  const { stations = STATIONS, frame = FRAME, load = Number.POSITIVE_INFINITY, seconds = SECONDS } = spec;
  const backOff = makeBackOff({ strategy: 'ethernet', slot: SLOT });
  const experiment = compareSegments({ stations, frame: 8 * frame, load, backOff, time: 1000 * seconds, seed });
  const isSaturated = load === Number.POSITIVE_INFINITY;
  const head = `Stations on one CSMA/CD segment of 10 Mb/s, frames of ${frame} bytes; ${
    isSaturated
      ? 'each always has one to send'
      : `together they would send ${load} of what it carries, were frames sent in no time`
  }.`;
  return retell(experiment, (rows) => tell(rows, head, isSaturated));
}

const SATURATED = [
  'dropped: given up after 16 collisions; delay: of frames that arrive; predicted: Metcalfe and Boggs (1976), of stations',
  'that know how many they are and always have a frame. Above it is capture: who has just sent waits least.',
];
const LOADED = [
  'dropped: given up after 16 collisions; delay: of frames that arrive. A closed loop: a station has its next frame only after a',
  'pause that begins when it is done with the last, so that they offer less than the load, and the less the longer they wait.',
];

function tell(rows: readonly EthernetRow[], head: string, isSaturated: boolean): Told {
  const percent = (part: number): string => `${(100 * part).toFixed(2)} %`;
  const lines = [
    head,
    '',
    ...layTable(
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
        ifAny(row.delay, formatDelay),
        ifAny(row.p99, formatDelay),
        ifAny(row.collisions, (collisions) => collisions.toFixed(3)),
        percent(row.dropped),
        bar(row.efficiency, BAR).padEnd(BAR),
      ]),
    ),
    '',
    ...(isSaturated ? SATURATED : LOADED),
  ];
  const told = rows.map(({ predicted, delay, p99, collisions, ...row }) => ({
    ...row,
    delay: ifFinite(delay),
    p99: ifFinite(p99),
    collisions: ifFinite(collisions),
    predicted: predicted ?? null,
  }));
  return { text: joinLines(lines), json: { rows: told }, draw: () => draw(rows, head), isEmpty: rows.length === 0 };
}

function ifAny(value: number, tellIt: (value: number) => string): string {
  return Number.isFinite(value) ? tellIt(value) : '–';
}

/** JSON has no infinity. */
function ifFinite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

function draw(rows: readonly EthernetRow[], head: string): string {
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
    y: { label: 'a part of 1', scale: linearScale([1]), format: (part) => String(Number(part.toFixed(2))) },
    lines: [
      line('efficiency', (row) => row.efficiency),
      ...(rows.some(({ predicted }) => predicted !== undefined)
        ? [line('predicted', (row) => row.predicted ?? Number.NaN, true)]
        : []),
      line('dropped', (row) => row.dropped),
    ],
  });
}
