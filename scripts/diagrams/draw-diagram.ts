/** Draws boxes and arrows as SVG, in light and dark colours. */

/** `end`: a result or a store; `rejection`: an error or a refusal. */
export interface Box {
  readonly look: 'box' | 'end' | 'rejection';
  readonly at: readonly [x: number, y: number, width: number, height: number];
  /** Bold, unless it is the only line. */
  readonly name: string;
  readonly notes?: readonly string[];
}

export interface Diagram {
  readonly title: string;
  /** For those who cannot see the drawing. */
  readonly description: string;
  readonly height: number;
  readonly boxes: readonly Box[];
  /** Paths of SVG (`M0 0H10`), with a head at their end. */
  readonly arrows: readonly string[];
  /** Dashed paths with a head at both ends. */
  readonly exchanges?: readonly string[];
  readonly labels: readonly Label[];
  /** A dashed frame around boxes. */
  readonly frame?: readonly [x: number, y: number, width: number, height: number];
}

export interface Label {
  readonly text: string;
  readonly at: readonly [x: number, y: number];
  readonly anchor?: 'start' | 'middle';
  readonly look?: 'small' | 'name';
}

const WIDTH = 860;
const LINE_HEIGHT = 20;
/** From the middle of a line to its baseline. */
const BASELINE = 5;

const STYLE = `.box { fill: #eef4fb; stroke: #3b6ea5; stroke-width: 1.5 }
.end { fill: #f3f7ee; stroke: #5d8a3a; stroke-width: 1.5 }
.rejection { fill: #fdf3ea; stroke: #b86b21; stroke-width: 1.5 }
.frame { fill: none; stroke: #a0aec0; stroke-width: 1.5; stroke-dasharray: 6 5 }
.arrow { fill: none; stroke: #4a5568; stroke-width: 1.5; marker-end: url(#a) }
.exchange { fill: none; stroke: #5d8a3a; stroke-width: 1.5; stroke-dasharray: 5 4; marker-start: url(#b); marker-end: url(#b) }
#a { fill: #4a5568 }
#b { fill: #5d8a3a }
text { fill: #1a202c }
.small { font-size: 12px; fill: #4a5568 }
.name { font-weight: 600 }
@media (prefers-color-scheme: dark) {
  .box { fill: #16283c; stroke: #7fb2e5 }
  .end { fill: #1d2a15; stroke: #9ccc76 }
  .rejection { fill: #33220f; stroke: #e5a566 }
  .arrow { stroke: #a0aec0 }
  .exchange { stroke: #9ccc76 }
  #a { fill: #a0aec0 }
  #b { fill: #9ccc76 }
  text { fill: #edf2f7 }
  .small { fill: #a0aec0 }
}`;

export function drawDiagram(diagram: Diagram): string {
  const { title, description, height, boxes, arrows, exchanges = [], labels, frame } = diagram;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="14" role="img" aria-labelledby="t d">`,
    `<title id="t">${escapeText(title)}</title>`,
    `<desc id="d">${escapeText(description)}</desc>`,
    `<style>\n${STYLE}\n</style>`,
    `<defs>${drawHead('a', 'auto')}${drawHead('b', 'auto-start-reverse')}</defs>`,
    ...(frame === undefined ? [] : [drawRect('frame', frame)]),
    ...boxes.flatMap(drawBox),
    ...arrows.map((path) => `<path class="arrow" d="${path}"/>`),
    ...exchanges.map((path) => `<path class="exchange" d="${path}"/>`),
    ...labels.map(drawLabel),
    '</svg>',
  ];
  return `${lines.join('\n')}\n`;
}

function drawHead(id: string, orient: string): string {
  return `<marker id="${id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="${orient}"><path d="M0 0 8 4 0 8z"/></marker>`;
}

function drawBox({ look, at, name, notes = [] }: Box): string[] {
  const [x, y, width, height] = at;
  const middle = x + width / 2;
  const first = y + height / 2 - (notes.length * LINE_HEIGHT) / 2 + BASELINE;
  const heading = notes.length === 0 ? '' : ' class="name"';
  return [
    drawRect(look, at),
    `<text${heading} x="${middle}" y="${first}" text-anchor="middle">${escapeText(name)}</text>`,
    ...notes.map((text, i) => drawLabel({ text, at: [middle, first + (i + 1) * LINE_HEIGHT] })),
  ];
}

function drawRect(look: string, [x, y, width, height]: Box['at']): string {
  return `<rect class="${look}" x="${x}" y="${y}" width="${width}" height="${height}" rx="8"/>`;
}

function drawLabel({ text, at: [x, y], anchor = 'middle', look = 'small' }: Label): string {
  return `<text class="${look}" x="${x}" y="${y}" text-anchor="${anchor}">${escapeText(text)}</text>`;
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
