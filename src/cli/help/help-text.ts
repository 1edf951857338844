import type { CommandName } from '../command-names.ts';
import type { CommandDescription, OptionDescription } from './command-description.ts';
import { COMMAND_DESCRIPTIONS, PROGRAM_SUMMARY } from './command-descriptions.ts';

/** Columns of the help. */
const WIDTH = 120;

/** The text of `tidegate help`, or of `tidegate help COMMAND`. */
export function helpText(topic?: CommandName): string {
  return topic === undefined ? formatOverview() : formatCommand(COMMAND_DESCRIPTIONS[topic]);
}

/** `--config FILE`. */
export function formatOption({ name, placeholder }: OptionDescription): string {
  return placeholder === undefined ? `--${name}` : `--${name} ${placeholder}`;
}

function formatOverview(): string {
  const rows = Object.entries(COMMAND_DESCRIPTIONS).map(
    ([name, { operand, summary }]) => [operand === undefined ? name : `${name} ${operand}`, summary] as const,
  );
  return [
    ...wrap(`Tidegate: ${PROGRAM_SUMMARY}.`, WIDTH - 30),
    '',
    'usage: tidegate [COMMAND] [OPTIONS]',
    '',
    ...formatRows(rows),
    '',
    'Quick start: tidegate --upstream https://api.example.com',
    '',
  ].join('\n');
}

function formatCommand({ usage, options = [], notes = [] }: CommandDescription): string {
  const forms = usage.map((form, i) => `${i === 0 ? 'usage: ' : '       '}tidegate ${form}`);
  const rows = options.map((each) => [formatOption(each), each.text] as const);
  const paragraphs = notes.flatMap((note) => (note.startsWith(' ') ? [note] : wrap(note, WIDTH)));
  const sections = [forms, formatRows(rows), paragraphs].filter((lines) => lines.length > 0);
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

/** Two columns; a long second one continues on further lines. */
function formatRows(rows: readonly (readonly [label: string, text: string])[]): string[] {
  const indent = Math.max(0, ...rows.map(([label]) => label.length)) + 5;
  return rows.flatMap(([label, text]) => {
    const [first = '', ...more] = wrap(text, WIDTH - indent);
    return [`  ${label.padEnd(indent - 2)}${first}`, ...more.map((line) => `${' '.repeat(indent)}${line}`)];
  });
}

/** Breaks a text into lines of at most `width` characters, between words. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
