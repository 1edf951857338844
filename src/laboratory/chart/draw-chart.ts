import type { Scale } from './chart-scale.ts';

/** A curve. A gap where a value is not finite. */
export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Shaded behind it. */
  readonly band?: readonly (readonly [x: number, low: number, high: number])[] | undefined;
  /** Computed, where others are measured. */
  readonly dashed?: boolean;
}

export interface Axis {
  readonly label: string;
  readonly scale: Scale;
  readonly format: (value: number) => string;
}

export interface Chart {
  readonly title: string;
  /** A line below the title. */
  readonly note: string;
  readonly x: Axis;
  readonly y: Axis;
  /** Eight have colours of their own; the next eight have them dotted, and eight more broken. */
  readonly lines: readonly Line[];
}

const WIDTH = 860;
const HEIGHT = 430;
const LEFT = 76;
const RIGHT = 200;
const TOP = 72;
const BOTTOM = 56;
/** From one name beside the drawing to the next. */
const KEY = 22;
const COLOURS = 8;
/** Of the first, the second and the third line of a colour. */
const STROKES = ['', ' stroke-dasharray="2 3"', ' stroke-dasharray="10 3 2 3"'];

/** On white and on black alike; colours that differ in lightness too (Okabe and Ito, 2008). */
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

/** A chart as a drawing of its own: SVG. */
export function drawChart({ title, note, x, y, lines }: Chart): string {
  const right = WIDTH - RIGHT;
  // As high as the names need.
  const height = Math.max(HEIGHT, TOP + KEY * lines.length + 8);
  const bottom = height - BOTTOM;
  const across = (value: number): number => round(LEFT + x.scale.place(value) * (right - LEFT));
  const up = (value: number): number => round(bottom - y.scale.place(value) * (bottom - TOP));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escape(title)}</title>`,
    `<style>${STYLE}</style>`,
    '<rect class="paper" width="100%" height="100%"/>',
    `<text class="title" x="${LEFT}" y="26">${escape(title)}</text>`,
    `<text x="${LEFT}" y="46">${escape(note)}</text>`,
    ...y.scale.ticks.map(
      (at) =>
        `<line class="grid" x1="${LEFT}" y1="${up(at)}" x2="${right}" y2="${up(at)}"/>` +
        `<text x="${LEFT - 8}" y="${up(at) + 4}" text-anchor="end">${escape(y.format(at))}</text>`,
    ),
    ...x.scale.ticks.map(
      (at) =>
        `<line class="axis" x1="${across(at)}" y1="${bottom}" x2="${across(at)}" y2="${bottom + 4}"/>` +
        `<text x="${across(at)}" y="${bottom + 18}" text-anchor="middle">${escape(x.format(at))}</text>`,
    ),
    `<line class="axis" x1="${LEFT}" y1="${bottom}" x2="${right}" y2="${bottom}"/>`,
    `<text x="${(LEFT + right) / 2}" y="${height - 14}" text-anchor="middle">${escape(x.label)}</text>`,
    `<text transform="translate(16 ${(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">${escape(y.label)}</text>`,
    ...lines.map((line, index) => drawLine(line, index, across, up)),
    ...lines.map(({ name, dashed }, index) => drawKey(name, lookOf(index, dashed), right + 18, TOP + 8 + KEY * index)),
    '</svg>',
    '',
  ].join('\n');
}

type Place = (value: number) => number;

function drawLine({ points, band = [], dashed = false }: Line, index: number, across: Place, up: Place): string {
  const colour = `c${index % COLOURS}`;
  const parts: string[] = [];
  if (band.length > 0) {
    const there = band.map(([at, , high]) => `${across(at)} ${up(high)}`);
    const back = band.toReversed().map(([at, low]) => `${across(at)} ${up(low)}`);
    parts.push(`<path class="band ${colour}" d="M${[...there, ...back].join('L')}Z"/>`);
  }
  let path = '';
  let isDown = false;
  for (const [at, value] of points) {
    if (Number.isFinite(value)) path += `${isDown ? 'L' : 'M'}${across(at)} ${up(value)}`;
    isDown = Number.isFinite(value);
  }
  parts.push(`<path ${lookOf(index, dashed)} d="${path}"/>`);
  // Few points are marked, so that it is seen where there is a value and where a mere line.
  if (!dashed && points.length <= FEW) {
    for (const [at, value] of points) {
      if (!Number.isFinite(value)) continue;
      parts.push(`<circle class="${colour}" cx="${across(at)}" cy="${up(value)}" r="2.6"/>`);
    }
  }
  return parts.join('\n');
}

const FEW = 20;

function drawKey(name: string, look: string, x: number, y: number): string {
  return `<path ${look} d="M${x} ${y}h22"/><text x="${x + 30}" y="${y + 4}">${escape(name)}</text>`;
}

/** Attributes of a line. */
function lookOf(index: number, dashed = false): string {
  const stroke = STROKES[Math.floor(index / COLOURS) % STROKES.length] ?? '';
  return `class="c${index % COLOURS}${dashed ? ' dashed' : ''}"${stroke}`;
}

function round(value: number): number {
  return Number(value.toFixed(1));
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
