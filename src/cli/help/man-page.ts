import type { CommandDescription } from './command-description.ts';
import { COMMAND_DESCRIPTIONS, PROGRAM_SUMMARY } from './command-descriptions.ts';
import { formatOption } from './help-text.ts';

/** Variables that several commands read; those of single options are named with them. */
const VARIABLES: readonly (readonly [name: string, text: string])[] = [
  ['TIDEGATE_CONFIG', 'configuration file of serve and doctor'],
  ['TIDEGATE_UPSTREAM', 'the only upstream, or a replacement for that of the file'],
  ['TIDEGATE_LISTEN', 'address for clients'],
  ['TIDEGATE_ADMIN', 'address of the admin port'],
  ['TIDEGATE_ADMIN_TOKEN', 'admin token of the commands that use a running Tidegate'],
  ['TIDEGATE_REDIS_URL', 'state.url, with state.store: redis'],
  ['NO_COLOR', 'disables colours'],
];

/** The help of all commands as a man page, in the macros of man(7). */
export function manPage(version: string): string {
  return [
    `.TH TIDEGATE 1 "" "Tidegate ${version}" "User Commands"`,
    '.SH NAME',
    `tidegate \\- ${roff(PROGRAM_SUMMARY)}`,
    '.SH SYNOPSIS',
    '.B tidegate',
    roff('[COMMAND] [OPTIONS]'),
    '.SH COMMANDS',
    ...Object.entries(COMMAND_DESCRIPTIONS).flatMap(formatCommand),
    '.SH ENVIRONMENT',
    ...VARIABLES.flatMap(([name, text]) => entry(name, text)),
    '.SH EXIT STATUS',
    ...entry('0', 'success'),
    ...entry('1', 'a problem that can be fixed; the message says how'),
    ...entry('2', 'an invalid command line; of diff also a file that cannot be read'),
    '',
  ].join('\n');
}

function formatCommand([name, description]: readonly [string, CommandDescription]): string[] {
  const { usage, summary, options = [], notes = [] } = description;
  const [firstLetter = '', ...more] = summary;
  return [
    `.SS ${roff(name)}`,
    '.nf',
    ...usage.map((form) => `\\fBtidegate\\fR ${roff(form)}`),
    '.fi',
    '.PP',
    roff(`${firstLetter.toUpperCase()}${more.join('')}.`),
    ...options.flatMap((option) => entry(formatOption(option), option.text)),
    ...notes.flatMap((note) => (note.startsWith(' ') ? ['.nf', roff(note), '.fi'] : ['.PP', roff(note)])),
  ];
}

function entry(term: string, text: string): string[] {
  return ['.TP', `.B ${roff(term)}`, roff(text)];
}

/** Escapes a line: no character of it is a request or an escape of roff, and a dash stays one that can be searched and copied. */
function roff(text: string): string {
  const escaped = text
    .replaceAll('\\', String.raw`\e`)
    .replaceAll('-', String.raw`\-`)
    .replaceAll(/[^\0-\x7f]/g, (letter) => `\\[u${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`);
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}
