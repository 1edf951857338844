/** Log lines for people: one line each, with the fields that matter first. */
import { printable } from '../format-values.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Written first, or the same on all lines of a terminal. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(['level', 'time', 'msg', 'instance', 'err']);
const REQUEST_FIELDS: ReadonlySet<string> = new Set(['method', 'path', 'status', 'outcome', 'reason', 'cause', 'ms']);
/** Left out of the line of a request while they have the value of most requests. */
const ORDINARY_VALUES: Readonly<Record<string, unknown>> = { route: '/', attempts: 1, queuedMs: 0, sleptMs: 0 };

const RESET = '\x1b[0m';
const DIM = '\x1b[2m';
const LEVEL_COLOURS: Readonly<Record<string, string>> = { warn: '\x1b[33m', error: '\x1b[31m', fatal: '\x1b[31;1m' };

/**
 * Formats a JSON log line for a terminal. A text of several lines, such as a stack trace or a list of mistakes, follows indented.
 * A line that is not JSON stays as it is.
 */
export function formatTextLine(json: string, useColour: boolean): string {
  const fields = parse(json);
  if (fields === undefined) return json;
  const level = textOf(fields['level']);
  const message = fields['msg'] === 'request' ? formatRequest(fields) : textOf(fields['msg']);
  const [first = '', ...more] = message.split('\n');
  const pairs: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    if (SHOWN_ELSEWHERE.has(name) || (fields['msg'] === 'request' && isShownOrOrdinary(name, value))) continue;
    if (typeof value === 'string' && value.includes('\n')) more.push(`${name}:`, ...value.split('\n'));
    else pairs.push(`${name}=${formatValue(value)}`);
  }
  more.push(...formatError(fields['err']));
  const paint = (colour: string | undefined, text: string): string =>
    useColour && colour !== undefined && text !== '' ? `${colour}${text}${RESET}` : text;
  // `2026-01-02T03:04:05.678Z`: the day is known on a terminal.
  const time = paint(DIM, printable(textOf(fields['time']).slice(11)));
  const head = `${time} ${paint(LEVEL_COLOURS[level], printable(level.toUpperCase().padEnd(5)))} ${printable(first)}`;
  const tail = pairs.length === 0 ? '' : `  ${paint(DIM, printable(pairs.join(' ')))}`;
  return [head + tail, ...more.map((line) => `    ${printable(line)}`)].map((line) => `${line}\n`).join('');
}

/** `GET /v1/charges → 200 forwarded, 12.3 ms`. */
function formatRequest(fields: Fields): string {
  const { method, path, status, outcome, reason, cause, ms } = fields;
  const why = [reason, cause].filter((part) => part !== undefined && part !== outcome).map(textOf);
  const request = method === '' ? '(unreadable)' : `${textOf(method)} ${textOf(path)}`;
  const response = status === 0 ? 'no response' : textOf(status);
  return `${request} → ${response} ${textOf(outcome)}${why.length === 0 ? '' : ` (${why.join(', ')})`}, ${textOf(ms)} ms`;
}

function isShownOrOrdinary(name: string, value: unknown): boolean {
  return REQUEST_FIELDS.has(name) || (Object.hasOwn(ORDINARY_VALUES, name) && ORDINARY_VALUES[name] === value);
}

/** The stack of an error, as pino serializes it. */
function formatError(error: unknown): string[] {
  if (error === undefined) return [];
  const stack = typeof error === 'object' && error !== null && 'stack' in error ? error.stack : undefined;
  return (typeof stack === 'string' ? stack : textOf(error)).split('\n');
}

const NEEDS_NO_QUOTES = /^[\w./:@*+-]+$/;

function formatValue(value: unknown): string {
  return typeof value === 'string' && NEEDS_NO_QUOTES.test(value) ? value : JSON.stringify(value);
}

function textOf(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function parse(json: string): Fields | undefined {
  try {
    const fields: unknown = JSON.parse(json);
    return typeof fields === 'object' && fields !== null && !Array.isArray(fields) ? { ...fields } : undefined;
  } catch {
    return undefined;
  }
}
