/** Terminal colours by meaning. */
import type { Severity } from '../../admin/page/text/labels.js';

export interface TerminalStyle {
  readonly severity: (severity: Severity, text: string) => string;
  readonly muted: (text: string) => string;
  readonly strong: (text: string) => string;
}

/** For NO_COLOR and for output that is not a terminal: marks and words carry the meaning. */
export const PLAIN_STYLE: TerminalStyle = {
  severity: (_, text) => text,
  muted: (text) => text,
  strong: (text) => text,
};

const RESET = '\x1b[0m';
const SEVERITY_COLOURS: Readonly<Record<Severity, string>> = {
  ok: '\x1b[32m',
  warning: '\x1b[33m',
  critical: '\x1b[31;1m',
  muted: '\x1b[2m',
};

export const COLOURED_STYLE: TerminalStyle = {
  severity: (severity, text) => `${SEVERITY_COLOURS[severity]}${text}${RESET}`,
  muted: (text) => `\x1b[2m${text}${RESET}`,
  strong: (text) => `\x1b[1m${text}${RESET}`,
};

/** A shape for each severity, as on the page. */
export const SEVERITY_MARKS: Readonly<Record<Severity, string>> = {
  ok: '●',
  warning: '▲',
  critical: '■',
  muted: '○',
};

/** The number of code points, which is the number of columns for the text shown here. */
export function displayLength(text: string): number {
  return Array.from(text).length;
}

/** Shortens a text to a width; an ellipsis marks the cut. */
export function truncate(text: string, width: number): string {
  const letters = Array.from(text);
  if (letters.length <= width) return text;
  return width < 1 ? '' : `${letters.slice(0, width - 1).join('')}…`;
}

/** Joins parts to lines of at most `width`. The last of `maxLines` is shortened if there are more. */
export function wrap(parts: readonly string[], separator: string, width: number, maxLines: number): readonly string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const joined = last === undefined ? part : `${last}${separator}${part}`;
    if (last !== undefined && displayLength(joined) > width && lines.length < maxLines) lines.push(part);
    else lines.splice(-1, 1, joined);
  }
  return lines.map((line) => truncate(line, width));
}
