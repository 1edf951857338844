import type { Explanation } from './build-explanation.ts';

/** So narrow a terminal is not wrapped for. */
const NARROWEST = 50;
/** Of the longest word for a step. */
const WORD = 'answered'.length;

/** An explanation for people: a line for each step, times below each other, no wider than `width` where that can be. */
export function renderExplanation(explanation: Explanation, width = 80): string {
  const { id, at, client, route, upstream, method, path, status, outcome, traceId, steps } = explanation;
  const times = steps.map((step) => step.at.toFixed(3));
  const digits = Math.max(...times.map(({ length }) => length));
  const indent = digits + ' s  '.length + WORD + 2;
  const room = Math.max(NARROWEST, width) - indent;
  const lines = [
    `${id}: ${method === '' ? '(unreadable)' : `${method} ${path}`} → ${status === 0 ? 'no answer' : status} (${outcome})`,
    `arrived ${at}, route ${route}${upstream === '' ? '' : `, upstream ${upstream}`}`,
  ];
  if (client.key !== '') lines.push(`client ${client.key}, told apart by ${client.identifiedBy ?? 'nothing'}`);
  if (traceId !== null) lines.push(`trace ${traceId}`);
  lines.push('');
  for (const [i, { what, text }] of steps.entries()) {
    const [first = '', ...more] = wrap(text, room);
    lines.push(`${(times[i] ?? '').padStart(digits)} s  ${what.padEnd(WORD)}  ${first}`);
    for (const rest of more) lines.push(`${' '.repeat(indent)}${rest}`);
  }
  return lines.map((line) => `${line.replace(CONTROLS, '?')}\n`).join('');
}

/** Paths come from clients, and terminals obey some characters. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROLS = /[\0-\x1f\x7f-\x9f]/g;

/** Between words, but not between a number and its unit. */
const BREAK = / (?!(?:ms|s|min|%)(?!\w))/;

/** A word that is longer than the line has one of its own. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(BREAK)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
