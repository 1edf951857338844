import type { Explanation } from './build-explanation.ts';

/** Text is wrapped to no less than this width. */
const MIN_WIDTH = 50;
/** The longest name of a step. */
const STEP_NAME_WIDTH = 'answered'.length;

/** An explanation as text: one line per step, with aligned times, wrapped to `width` where possible. */
export function renderExplanation(explanation: Explanation, width = 80): string {
  const { id, at, client, route, upstream, method, path, status, outcome, traceId, steps } = explanation;
  const times = steps.map((step) => step.at.toFixed(3));
  const digits = Math.max(...times.map(({ length }) => length));
  const indent = digits + ' s  '.length + STEP_NAME_WIDTH + 2;
  const room = Math.max(MIN_WIDTH, width) - indent;
  const lines = [
    `${id}: ${method === '' ? '(unreadable)' : `${method} ${path}`} → ${status === 0 ? 'no response' : status} (${outcome})`,
    `arrived ${at}, route ${route}${upstream === '' ? '' : `, upstream ${upstream}`}`,
  ];
  if (client.key !== '') lines.push(`client ${client.key}, identified by ${client.identifiedBy ?? 'nothing'}`);
  if (traceId !== null) lines.push(`trace ${traceId}`);
  lines.push('');
  for (const [i, { what, text }] of steps.entries()) {
    const [first = '', ...more] = wrap(text, room);
    lines.push(`${(times[i] ?? '').padStart(digits)} s  ${what.padEnd(STEP_NAME_WIDTH)}  ${first}`);
    for (const rest of more) lines.push(`${' '.repeat(indent)}${rest}`);
  }
  return lines.map((line) => `${line.replace(CONTROLS, '?')}\n`).join('');
}

/** Paths come from clients and may contain terminal escapes. */
// oxlint-disable-next-line no-control-regex -- matches control characters
const CONTROLS = /[\0-\x1f\x7f-\x9f]/g;

/** A space between words, but not between a number and its unit. */
const BREAKABLE_SPACE = / (?!(?:ms|s|min|%)(?!\w))/;

/** Wraps at spaces; a word longer than the width gets a line of its own. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(BREAKABLE_SPACE)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
