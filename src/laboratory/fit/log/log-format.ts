import { suggest } from '../../../config/values/suggest.ts';
import type { Logged } from '../logged-request.ts';
import type { Millis } from '../../../core/exchange/attempt-outcome.ts';
import { readForeign, readOwn } from './parse-tidegate-record.ts';

/** How a log is written. */
export interface LogFormat {
  /** Reads a line, the nth of the log. `aside`: a request that was none to an upstream. */
  readonly parse: (text: string, n: number) => Logged | 'none' | 'aside';
  /** Why a line is no request. */
  readonly explain: (text: string) => string;
  /** Its first line names the columns. */
  readonly hasHead: boolean;
}

/** What a number below this counts, in ms, since 1970; seconds may count from anything. */
const UNITS = [
  [1e11, 1000],
  [1e14, 1],
  [1e17, 1e-3],
  [1e20, 1e-6],
] as const;
/** The year 2200: later nobody has asked for anything. */
const LATEST: Millis = 7_258_118_400_000;
/** No request has taken longer than a day. */
const LONGEST: Millis = 86_400_000;

/**
 * How to read a log, by its first lines: our own (NDJSON, a request a line), or CSV whose first line names `time`, `client` and
 * `status`, and perhaps `method`, `path` and `ms`.
 * @returns what is wrong with the first line, where it cannot be read
 */
export function chooseFormat(first: string, second = ''): LogFormat | { readonly message: string } {
  if (first.startsWith('[')) return { message: "begins a list: an object a line is needed, as jq -c '.[]' makes" };
  if (first.startsWith('{')) return JSON_LINES;
  const names = splitCsv(first).map((name) => name.toLowerCase());
  const missing = NEEDED.filter((name) => !names.includes(name));
  if (missing.length === 0) return csvOf(names);
  // Of a log that was cut out of a longer one, its first line is a part of one.
  if (missing.length === NEEDED.length && second.startsWith('{')) return JSON_LINES;
  return { message: explainHead(first, names, missing) };
}

const NEEDED = ['time', 'client', 'status'];
const WANTED = 'time, client and status, and perhaps method, path and ms';

function explainHead(first: string, names: readonly string[], missing: readonly string[]): string {
  const other = [';', '\t'].find((each) => first.split(each).length > names.length);
  if (names.length < NEEDED.length && other !== undefined) {
    return `its columns are separated by ${other === ';' ? 'semicolons' : 'tabs'}: commas are needed, and a first line that names ${WANTED}`;
  }
  if (names.length === 1 || !names.every((name) => /^[a-z_@"][\w @."-]*$/.test(name))) {
    return `is neither JSON nor names of columns of CSV: put a line above it that names ${WANTED}`;
  }
  const guesses = missing.flatMap((name) => {
    const near = suggest(name, names);
    return near === undefined ? [] : [` (${name}: is it ${near}?)`];
  });
  return `names no column ${missing.join(', none ')} among ${names.slice(0, 10).join(', ')}${guesses.join('')}: columns are ${WANTED}`;
}

function csvOf(names: readonly string[]): LogFormat {
  const columns = [...NEEDED, 'method', 'path', 'ms'].map((column) => names.indexOf(column));
  const parse: LogFormat['parse'] = (text, line) => {
    const cells = splitCsv(text);
    const [time, client, status, method, path, ms] = columns.map((column) => cells[column]);
    const at = readTime(time);
    if (at === undefined || status === undefined || !STATUS.test(status)) return 'none';
    const took = readTook(readNumber(ms));
    return {
      line,
      at,
      client: client ?? '',
      ...readForeign(Number(status), took),
      upstream: '',
      method: method ?? 'GET',
      path: path ?? '/',
      took,
    };
  };
  const explain: LogFormat['explain'] = (text) => {
    const cells = splitCsv(text);
    const [time, , status] = columns.map((column) => cells[column]);
    const told = saying('time', time);
    if (readTime(time) === undefined) return `${told}: a time is ISO 8601, or a number of seconds or milliseconds`;
    return `${saying('status', status)}: a status is a number of three digits, 0 where there was no answer`;
  };
  return { parse, explain, hasHead: true };
}

const STATUS = /^\d{1,3}$/;

function saying(name: string, value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text === '' ? `has no ${name}` : `has '${text.slice(0, 40)}' for its ${name}`;
}

function explainJson(text: string): string {
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    return 'is not JSON by itself: an object a line is needed, as jq -c . makes them';
  }
  if (!isRecord(record)) return 'is no JSON object';
  const { time, status } = record;
  const told = readTime(time) === undefined ? saying('time', time) : saying('status', status);
  return `${told}: a request has a time and a status`;
}

function parseJson(text: string, line: number): Logged | 'none' | 'aside' {
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    return 'none';
  }
  if (!isRecord(record)) return 'none';
  const { time, client, status, method, path, ms, outcome, upstream } = record;
  const ended = readTime(time);
  if (ended === undefined || typeof status !== 'number') return 'none';
  const took = typeof ms === 'number' ? readTook(ms) : undefined;
  const own = typeof outcome === 'string' ? readOwn(record, status, took ?? 0) : readForeign(status, took);
  if (own === 'aside') return own;
  return {
    line,
    // Our log is written at the end of a request.
    at: ended - (took ?? 0),
    client: typeof client === 'string' ? client : '',
    ...own,
    upstream: typeof upstream === 'string' ? upstream : '',
    method: typeof method === 'string' ? method : 'GET',
    path: typeof path === 'string' ? path : '/',
    took,
  };
}

const JSON_LINES: LogFormat = { parse: parseJson, explain: explainJson, hasHead: false };

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readTime(told: unknown): Millis | undefined {
  const number = typeof told === 'number' ? told : typeof told === 'string' ? readNumber(told) : undefined;
  const [, unit] = UNITS.find(([below]) => number !== undefined && number < below) ?? [];
  const date = typeof told === 'string' ? Date.parse(told) : Number.NaN;
  const time = number === undefined ? date : unit === undefined ? Number.NaN : unit * number;
  return time >= 0 && time < LATEST ? time : undefined;
}

function readTook(ms: number | undefined): Millis | undefined {
  return ms !== undefined && ms <= LONGEST ? ms : undefined;
}

function readNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** Commas within quotes are text, and so are doubled quotes (RFC 4180); a line break is not. */
function splitCsv(line: string): string[] {
  if (!line.includes('"')) return line.split(',').map((cell) => cell.trim());
  return [...line.matchAll(/(?:^|,)(?:\s*"((?:[^"]|"")*)"\s*|([^,]*))/g)].map(([, quoted, plain = '']) =>
    quoted === undefined ? plain.trim() : quoted.replaceAll('""', '"'),
  );
}
