import type { Millis } from '../../core/scalars.ts';
import type { Tick } from './axis-ticks.ts';
import { countTicks, timeTicks } from './axis-ticks.ts';
import { downsample, lastValue, meanValue } from './downsample.ts';

const WIDTH = 860;
const LEFT = 62;
const RIGHT = 26;
const TOP = 74;
const GAP = 46;
const BOTTOM = 40;

interface Timed {
  readonly at: Millis;
}

export interface PanelCurve<S> {
  readonly name: string;
  /** A class of the style sheet. */
  readonly look: string;
  readonly shape: 'line' | 'steps' | 'area';
  readonly of: (sample: S) => number;
}

export interface Panel<S> {
  readonly title: string;
  readonly height: number;
  readonly curves: readonly PanelCurve<S>[];
}

/** Legible on white and on black; the colours differ in lightness too (Okabe and Ito, 2008). */
const STYLE = `
text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #444 }
.title { font-size: 16px; font-weight: 600; fill: #111 }
.head { font-weight: 600; fill: #222 }
.paper { fill: #fff }
.grid { stroke: #e3e3e3; stroke-width: 1 }
.axis { stroke: #999; stroke-width: 1 }
.warmup { fill: #000; fill-opacity: .05 }
.rate { fill: none; stroke: #0072b2; stroke-width: 1.8; stroke-linejoin: round }
.limit { fill: none; stroke: #222; stroke-width: 1.5; stroke-dasharray: 6 4 }
.accepted { fill: #56b4e9; fill-opacity: .4 }
.queue { fill: #009e73; fill-opacity: .6 }
.waste { fill: #d55e00; fill-opacity: .85 }
.group-0, .group-1, .group-2, .group-3, .group-4 { fill: none; stroke-width: 1.8; stroke-linejoin: round }
.group-0 { stroke: #0072b2 }
.group-1 { stroke: #d55e00 }
.group-2 { stroke: #009e73 }
.group-3 { stroke: #cc79a7 }
.group-4 { stroke: #e69f00 }
@media (prefers-color-scheme: dark) {
  text { fill: #bbb }
  .title { fill: #eee }
  .head { fill: #ddd }
  .paper { fill: #16181c }
  .grid { stroke: #30343a }
  .axis { stroke: #777 }
  .warmup { fill: #fff; fill-opacity: .06 }
  .rate, .group-0 { stroke: #56b4e9 }
  .limit { stroke: #eee }
  .accepted { fill: #0072b2; fill-opacity: .55 }
}
`;

/** The content of a drawing, from top to bottom. */
export interface PanelChart<S> {
  readonly title: string;
  readonly figures: string;
  readonly panels: readonly Panel<S>[];
  readonly series: readonly S[];
  readonly warmup: Millis;
}

/** Draws curves over time as a standalone SVG. */
export function drawPanels<S extends Timed>({ title, figures, panels, series, warmup }: PanelChart<S>): string {
  const end = Math.max(1, series.at(-1)?.at ?? 0);
  const x = (at: Millis): number => LEFT + (at / end) * (WIDTH - LEFT - RIGHT);
  const parts: string[] = [];
  let top = TOP;
  for (const panel of panels) {
    parts.push(drawPanel(panel, series, { top, x, warmup, end }));
    top += panel.height + GAP;
  }
  const bottom = top - GAP;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + BOTTOM}" width="${WIDTH}" height="${bottom + BOTTOM}" role="img">`,
    `<title>${escape(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect class="paper" width="100%" height="100%"/>`,
    `<text class="title" x="${LEFT}" y="26">${escape(title)}</text>`,
    `<text x="${LEFT}" y="45">${escape(figures)}</text>`,
    ...parts,
    ...timeTicks(end).map(
      ({ at, label }) => `<text x="${round(x(at))}" y="${bottom + 18}" text-anchor="middle">${label}</text>`,
    ),
    '</svg>',
    '',
  ].join('\n');
}

interface Frame {
  readonly top: number;
  readonly x: (at: Millis) => number;
  readonly warmup: Millis;
  readonly end: Millis;
}

function drawPanel<S extends Timed>(
  { title, height, curves }: Panel<S>,
  series: readonly S[],
  { top, x, warmup, end }: Frame,
): string {
  const coarse = downsample(series, 4, 360);
  const fine = downsample(series, 1, 720);
  // A limit changes in steps: a mean over an interval would be wrong.
  const drawn = curves.map((curve) => ({
    ...curve,
    points: (curve.shape === 'area' ? coarse : fine).map(
      (each) => [x(each.from), x(each.at), (curve.shape === 'steps' ? lastValue : meanValue)(each, curve.of)] as const,
    ),
  }));
  const values = drawn.flatMap(({ points }) => points.map(([, , value]) => value).filter(Number.isFinite));
  const ticks = countTicks(values.reduce((a, b) => Math.max(a, b), 0));
  const ceiling = ticks.at(-1)?.at ?? 1;
  const y = (value: number): number => top + height - (value / ceiling) * height;
  const present = drawn.filter(({ points }) => points.some(([, , value]) => Number.isFinite(value)));
  return [
    warmup > 0
      ? `<rect class="warmup" x="${LEFT}" y="${top}" width="${round(x(warmup) - LEFT)}" height="${height}"/>`
      : '',
    warmup > end / 8 && height > 100
      ? `<text x="${round(x(warmup) - 8)}" y="${top + 16}" text-anchor="end">warm-up, not counted</text>`
      : '',
    ...drawGrid(ticks, timeTicks(end), { top, height, x, y }),
    ...present.map(
      ({ look, shape, points }) =>
        `<path class="${look}" d="${shape === 'area' ? areaPath(points, y) : linePath(points, y, shape)}"/>`,
    ),
    `<line class="axis" x1="${LEFT}" y1="${top + height}" x2="${WIDTH - RIGHT}" y2="${top + height}"/>`,
    `<text class="head" x="${LEFT}" y="${top - 10}">${escape(title)}</text>`,
    ...drawLegend(present, top - 10),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

function drawGrid(
  ticks: readonly Tick[],
  times: readonly Tick[],
  { top, height, x, y }: Pick<Frame, 'top' | 'x'> & { readonly height: number; readonly y: (value: number) => number },
): string[] {
  return [
    ...ticks.map(
      ({ at, label }) =>
        `<line class="grid" x1="${LEFT}" y1="${round(y(at))}" x2="${WIDTH - RIGHT}" y2="${round(y(at))}"/>` +
        `<text x="${LEFT - 8}" y="${round(y(at) + 4)}" text-anchor="end">${label}</text>`,
    ),
    ...times.map(
      ({ at }) =>
        `<line class="axis" x1="${round(x(at))}" y1="${top + height}" x2="${round(x(at))}" y2="${top + height + 4}"/>`,
    ),
  ];
}

/** From right to left, so that they end at the edge. */
function drawLegend(curves: readonly Pick<PanelCurve<never>, 'name' | 'look' | 'shape'>[], baseline: number): string[] {
  let right = WIDTH - RIGHT;
  return curves.toReversed().map(({ name, look, shape }) => {
    const left = right - 6.4 * name.length - 26;
    const swatch =
      shape === 'area'
        ? `<rect class="${look}" x="${round(left)}" y="${baseline - 9}" width="18" height="10"/>`
        : `<line class="${look}" x1="${round(left)}" y1="${baseline - 4}" x2="${round(left + 18)}" y2="${baseline - 4}"/>`;
    const text = `<text x="${round(right)}" y="${baseline}" text-anchor="end">${escape(name)}</text>`;
    right = left - 16;
    return swatch + text;
  });
}

type Points = readonly (readonly [from: number, to: number, value: number])[];

/** Leaves a gap where there is no value. */
function linePath(points: Points, y: (value: number) => number, shape: 'line' | 'steps'): string {
  let path = '';
  let isDown = false;
  for (const [from, to, value] of points) {
    if (!Number.isFinite(value)) {
      isDown = false;
      continue;
    }
    const height = round(y(value));
    if (shape === 'line') path += `${isDown ? 'L' : 'M'}${round(to)} ${height}`;
    else path += isDown ? `V${height}H${round(to)}` : `M${round(from)} ${height}H${round(to)}`;
    isDown = true;
  }
  return path;
}

function areaPath(points: Points, y: (value: number) => number): string {
  const [first] = points;
  const last = points.at(-1);
  if (first === undefined || last === undefined) return '';
  const steps = points.map(([, to, value]) => `V${round(y(value))}H${round(to)}`);
  return `M${round(first[0])} ${round(y(0))}${steps.join('')}V${round(y(0))}Z`;
}

function round(value: number): number {
  return Number(value.toFixed(1));
}

function escape(text: string): string {
  // XML 1.0 allows no control characters, not even as references.
  const plain = text.replaceAll(/\p{Cc}/gu, ' ');
  return plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
