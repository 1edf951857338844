/** Colours of a terminal, by what they mean. */
import type { Mood } from '../../admin/page/labels.js';

export interface Paint {
  readonly mood: (mood: Mood, text: string) => string;
  readonly quiet: (text: string) => string;
  readonly strong: (text: string) => string;
}

/** For NO_COLOR, and what is no terminal: marks and words say it all. */
export const PLAIN: Paint = { mood: (_, text) => text, quiet: (text) => text, strong: (text) => text };

const RESET = '\x1b[0m';
const MOODS: Readonly<Record<Mood, string>> = { well: '\x1b[32m', wary: '\x1b[33m', trouble: '\x1b[31;1m' };

export const COLOURED: Paint = {
  mood: (mood, text) => `${MOODS[mood]}${text}${RESET}`,
  quiet: (text) => `\x1b[2m${text}${RESET}`,
  strong: (text) => `\x1b[1m${text}${RESET}`,
};

/** A form for each mood, as on the page. */
export const MARKS: Readonly<Record<Mood, string>> = { well: '●', wary: '▲', trouble: '■' };

/** What was named by strangers, without what a terminal would obey. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '�');
}

/** Letters of a text, as a terminal gives each its place. */
export function lengthOf(text: string): number {
  return Array.from(text).length;
}

/** Cut to a width, and told to be cut. */
export function fit(text: string, width: number): string {
  const letters = Array.from(text);
  if (letters.length <= width) return text;
  return width < 1 ? '' : `${letters.slice(0, width - 1).join('')}…`;
}
