import type { Scale } from './chart-scale.ts';

/** A curve, with a gap where a value is not finite. */
export interface ChartLine {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Drawn as a shaded area. */
  readonly band?: readonly (readonly [x: number, low: number, high: number])[] | undefined;
  /** Computed instead of measured. */
  readonly dashed?: boolean;
}

export interface ChartAxis {
  readonly label: string;
  readonly scale: Scale;
  readonly format: (value: number) => string;
}

export interface ChartSpec {
  readonly title: string;
  /** A line below the title. */
  readonly note: string;
  readonly x: ChartAxis;
  readonly y: ChartAxis;
  /** Eight have colours of their own; the next eight have them dotted, and eight more broken. */
  readonly lines: readonly ChartLine[];
}

const WIDTH = 860;
const HEIGHT = 430;
const LEFT = 76;
const RIGHT = 200;
const TOP = 72;
const BOTTOM = 56;
/** Distance between labels, in pixels. */
const LEGEND_ROW_HEIGHT = 22;
const COLOURS = 8;
/** Of the first, the second and the third line of a colour. */
const STROKES = ['', ' stroke-dasharray="2 3"', ' stroke-dasharray="10 3 2 3"'];

/** Legible on white and on black; the colours differ in lightness too (Okabe and Ito, 2008). */
const STYLE = `
text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #444 }
.title { font-size: 16px; font-weight: 600; fill: #111 }
.paper { fill: #fff }
.grid { stroke: #e3e3e3 }
.axis { stroke: #999 }
path { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke: var(--c) }
.dashed { stroke-dasharray: 6 4 }
.band { fill: var(--c); fill-opacity: .13; stroke: none }
circle { fill: var(--c) }
.c0 { --c: #0072b2 } .c1 { --c: #d55e00 } .c2 { --c: #009e73 } .c3 { --c: #cc79a7 }
.c4 { --c: #e69f00 } .c5 { --c: #56b4e9 } .c6 { --c: #8a6d3b } .c7 { --c: #555 }
@media (prefers-color-scheme: dark) {
  text { fill: #bbb }
  .title { fill: #eee }
  .paper { fill: #16181c }
  .grid { stroke: #30343a }
  .axis { stroke: #777 }
  .c0 { --c: #4aa3df } .c7 { --c: #aaa }
}
`;

/** Draws a chart as a standalone SVG. */
export function drawChart({ title, note, x, y, lines }: ChartSpec): string {
  const right = WIDTH - RIGHT;
  // As high as the labels need.
  const height = Math.max(HEIGHT, TOP + LEGEND_ROW_HEIGHT * lines.length + 8);
  const bottom = height - BOTTOM;
  const toX = (value: number): number => round(LEFT + x.scale.toFraction(value) * (right - LEFT));
  const toY = (value: number): number => round(bottom - y.scale.toFraction(value) * (bottom - TOP));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escape(title)}</title>`,
    `<style>${STYLE}</style>`,
    '<rect class="paper" width="100%" height="100%"/>',
    `<text class="title" x="${LEFT}" y="26">${escape(title)}</text>`,
    `<text x="${LEFT}" y="46">${escape(note)}</text>`,
    ...y.scale.ticks.map(
      (at) =>
        `<line class="grid" x1="${LEFT}" y1="${toY(at)}" x2="${right}" y2="${toY(at)}"/>` +
        `<text x="${LEFT - 8}" y="${toY(at) + 4}" text-anchor="end">${escape(y.format(at))}</text>`,
    ),
    ...x.scale.ticks.map(
      (at) =>
        `<line class="axis" x1="${toX(at)}" y1="${bottom}" x2="${toX(at)}" y2="${bottom + 4}"/>` +
        `<text x="${toX(at)}" y="${bottom + 18}" text-anchor="middle">${escape(x.format(at))}</text>`,
    ),
    `<line class="axis" x1="${LEFT}" y1="${bottom}" x2="${right}" y2="${bottom}"/>`,
    `<text x="${(LEFT + right) / 2}" y="${height - 14}" text-anchor="middle">${escape(x.label)}</text>`,
    `<text transform="translate(16 ${(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">${escape(y.label)}</text>`,
    ...lines.map((line, index) => drawLine(line, index, toX, toY)),
    ...lines.map(({ name, dashed }, index) =>
      drawLegendEntry(name, lineAttributes(index, dashed), right + 18, TOP + 8 + LEGEND_ROW_HEIGHT * index),
    ),
    '</svg>',
    '',
  ].join('\n');
}

type Projection = (value: number) => number;

function drawLine(
  { points, band = [], dashed = false }: ChartLine,
  index: number,
  toX: Projection,
  toY: Projection,
): string {
  const colour = `c${index % COLOURS}`;
  const parts: string[] = [];
  if (band.length > 0) {
    const there = band.map(([at, , high]) => `${toX(at)} ${toY(high)}`);
    const back = band.toReversed().map(([at, low]) => `${toX(at)} ${toY(low)}`);
    parts.push(`<path class="band ${colour}" d="M${[...there, ...back].join('L')}Z"/>`);
  }
  let path = '';
  let isDown = false;
  for (const [at, value] of points) {
    if (Number.isFinite(value)) path += `${isDown ? 'L' : 'M'}${toX(at)} ${toY(value)}`;
    isDown = Number.isFinite(value);
  }
  parts.push(`<path ${lineAttributes(index, dashed)} d="${path}"/>`);
  // Points are marked where they are few, to tell values from interpolation.
  if (!dashed && points.length <= MAX_MARKED_POINTS) {
    for (const [at, value] of points) {
      if (!Number.isFinite(value)) continue;
      parts.push(`<circle class="${colour}" cx="${toX(at)}" cy="${toY(value)}" r="2.6"/>`);
    }
  }
  return parts.join('\n');
}

const MAX_MARKED_POINTS = 20;

function drawLegendEntry(name: string, attributes: string, x: number, y: number): string {
  return `<path ${attributes} d="M${x} ${y}h22"/><text x="${x + 30}" y="${y + 4}">${escape(name)}</text>`;
}

/** Attributes of a line. */
function lineAttributes(index: number, dashed = false): string {
  const stroke = STROKES[Math.floor(index / COLOURS) % STROKES.length] ?? '';
  return `class="c${index % COLOURS}${dashed ? ' dashed' : ''}"${stroke}`;
}

function round(value: number): number {
  return Number(value.toFixed(1));
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
