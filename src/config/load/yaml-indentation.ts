/** Finds the line that is indented wrongly, and the indentation that was probably meant. */

export interface IndentationMistake {
  /** Of the first character of the line that is indented wrongly. */
  readonly offset: number;
  /** Such as "4 spaces, as in line 3"; two if they are equally near. */
  readonly suggestion: string;
}

interface Level {
  /** Spaces before the key. */
  readonly indent: number;
  /** Counted from 1. */
  readonly line: number;
}

const ENTRY = /^( *)((?:- +)*)[^\s#][^:#]*:(?:\s|$)/;

/** A line whose indentation is that of no key above it. @param offset within the line, or a comment before it */
export function findUnalignedLine(text: string, offset: number): IndentationMistake | undefined {
  let end = endOfLine(text, offset);
  while (end < text.length && /^\s*(?:#|$)/.test(text.slice(text.lastIndexOf('\n', end - 1) + 1, end))) {
    end = endOfLine(text, end + 1);
  }
  const lines = text.slice(0, end).split('\n');
  const last = lines.pop() ?? '';
  const [, spaces, dashes] = ENTRY.exec(last) ?? [];
  if (spaces === undefined || dashes !== '') return undefined;
  const levels = openLevels(lines);
  const nearest = Math.min(...levels.map(({ indent }) => Math.abs(indent - spaces.length)));
  if (nearest === 0 || levels.length === 0) return undefined;
  const near = levels.filter(({ indent }) => Math.abs(indent - spaces.length) === nearest);
  return { offset: end - last.length + spaces.length, suggestion: describeLevels(near) };
}

/** The line after a key with a value, if it is indented further than that key. @param offset within the value */
export function findLineBelowValue(text: string, offset: number): IndentationMistake | undefined {
  const end = endOfLine(text, offset);
  const start = end + 1;
  const [, spaces] = ENTRY.exec(text.slice(start, endOfLine(text, start))) ?? [];
  const [level] = openLevels(text.slice(0, end).split('\n')).slice(-1);
  if (spaces === undefined || level === undefined || spaces.length <= level.indent) return undefined;
  return { offset: start + spaces.length, suggestion: describeLevels([level]) };
}

/** The keys to which a following line may be a sibling, outermost first. */
function openLevels(lines: readonly string[]): Level[] {
  const levels: Level[] = [];
  for (const [i, line] of lines.entries()) {
    const [, spaces, dashes] = ENTRY.exec(line) ?? [];
    if (spaces === undefined || dashes === undefined) continue;
    while ((levels.at(-1)?.indent ?? -1) >= spaces.length) levels.pop();
    levels.push({ indent: spaces.length + dashes.length, line: i + 1 });
  }
  return levels;
}

function describeLevels(levels: readonly Level[]): string {
  return levels.map(({ indent, line }) => `${describeIndent(indent)}, as in line ${line}`).join(', or ');
}

function describeIndent(indent: number): string {
  if (indent === 0) return 'no space';
  return indent === 1 ? '1 space' : `${indent} spaces`;
}

function endOfLine(text: string, offset: number): number {
  const end = text.indexOf('\n', offset);
  return end < 0 ? text.length : end;
}
