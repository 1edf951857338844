import { suggest } from '../../../config/values/suggest.ts';
import type { LoggedRequest } from '../logged-request.ts';
import type { Millis } from '../../../core/scalars.ts';
import { toLoggedRequest } from './access-record.ts';
import { ALB, isAlb } from './alb-format.ts';
import { readCaddyJson } from './caddy-format.ts';
import { ENVOY_TEXT, isEnvoyText, readEnvoyJson } from './envoy-format.ts';
import { isNginx, NGINX } from './nginx-format.ts';
import { parseGenericRecord, parseTidegateRecord } from './parse-tidegate-record.ts';

/** A log format. */
export interface LogFormat {
  /** Parses the nth line of the log. `aside`: a request that was not meant for an upstream. */
  readonly parse: (text: string, n: number) => LoggedRequest | 'none' | 'aside';
  /** Why a line is not a request. */
  readonly describeProblem: (text: string) => string;
  /** Whether the first line names the columns. */
  readonly hasHeader: boolean;
}

/** The unit of a number below `below`, in ms since 1970; seconds may have any origin. */
const TIME_UNITS = [
  [1e11, 1000],
  [1e14, 1],
  [1e17, 1e-3],
  [1e20, 1e-6],
] as const;
/** The year 2200: a later time is not plausible. */
const MAX_TIME: Millis = 7_258_118_400_000;
/** A day: a longer request is not plausible. */
const MAX_DURATION: Millis = 86_400_000;

const TEXT_FORMATS = [
  { format: NGINX, matches: isNginx },
  { format: ENVOY_TEXT, matches: isEnvoyText },
  { format: ALB, matches: isAlb },
];

/**
 * Detects the format of a log from its first lines: JSON, a request a line (Tidegate's own, Envoy's or Caddy's), an access log of nginx,
 * Envoy or ALB, or CSV whose first line names `time`, `client` and `status`, and perhaps `method`, `path` and `ms`.
 * @returns the error of the first line, if no format fits
 */
export function chooseLogFormat(first: string, second = ''): LogFormat | { readonly message: string } {
  if (first.startsWith('{')) return JSON_LINES;
  // The first line of an excerpt may be incomplete.
  const access = TEXT_FORMATS.find(({ matches }) => matches(first) || matches(second));
  if (access !== undefined) return access.format;
  if (first.startsWith('[')) {
    return { message: "begins an array, but a log has one JSON object per line: convert it with jq -c '.[]'" };
  }
  const names = splitCsv(first).map((name) => name.toLowerCase());
  const missing = REQUIRED_COLUMNS.filter((name) => !names.includes(name));
  if (missing.length === 0) return makeCsvFormat(names);
  if (missing.length === REQUIRED_COLUMNS.length && second.startsWith('{')) return JSON_LINES;
  return { message: describeHeaderProblem(first, names, missing) };
}

const REQUIRED_COLUMNS = ['time', 'client', 'status'];
const EXPECTED_COLUMNS = 'time, client and status, and optionally method, path and ms';
const ACCESS_LOGS = 'an access log of nginx (combined), Envoy (default or JSON), Caddy (JSON) or ALB';

function describeHeaderProblem(first: string, names: readonly string[], missing: readonly string[]): string {
  const other = [';', '\t'].find((each) => first.split(each).length > names.length);
  if (names.length < REQUIRED_COLUMNS.length && other !== undefined) {
    return `its columns are separated by ${other === ';' ? 'semicolons' : 'tabs'}: use commas, and a first line that names ${EXPECTED_COLUMNS}`;
  }
  if (names.length === 1 || !names.every((name) => /^[a-z_@"][\w @."-]*$/.test(name))) {
    return `is neither JSON nor a CSV header: add a first line that names ${EXPECTED_COLUMNS}; or use ${ACCESS_LOGS}`;
  }
  const guesses = missing.flatMap((name) => {
    const near = suggest(name, names);
    return near === undefined ? [] : [` (is ${name} the column ${near}?)`];
  });
  return `has the columns ${names.slice(0, 10).join(', ')}, without ${missing.join(' and ')}${guesses.join('')}: expected ${EXPECTED_COLUMNS}`;
}

function makeCsvFormat(names: readonly string[]): LogFormat {
  const columns = [...REQUIRED_COLUMNS, 'method', 'path', 'ms'].map((column) => names.indexOf(column));
  const parse: LogFormat['parse'] = (text, line) => {
    const cells = splitCsv(text);
    const [time, client, status, method, path, ms] = columns.map((column) => cells[column]);
    const at = parseTime(time);
    if (at === undefined || status === undefined || !STATUS.test(status)) return 'none';
    const took = checkDuration(parseNumber(ms));
    return {
      line,
      at,
      client: client ?? '',
      ...parseGenericRecord(Number(status), took),
      upstream: '',
      method: method ?? 'GET',
      path: path ?? '/',
      took,
    };
  };
  const describeProblem: LogFormat['describeProblem'] = (text) => {
    const cells = splitCsv(text);
    const [time, , status] = columns.map((column) => cells[column]);
    const description = describeField('time', time);
    if (parseTime(time) === undefined) {
      return `${description}: expected ISO 8601, or a number of seconds or milliseconds`;
    }
    return `${describeField('status', status)}: expected a number of three digits, or 0 if there was no response`;
  };
  return { parse, describeProblem, hasHeader: true };
}

const STATUS = /^\d{1,3}$/;

function describeField(name: string, value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text === '' ? `has no ${name}` : `has the ${name} '${text.slice(0, 40)}'`;
}

function describeJsonProblem(text: string): string {
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    return 'is not a complete JSON value: a log has one object per line; convert it with jq -c .';
  }
  if (!isRecord(record)) return 'is not a JSON object';
  const { time, status } = record;
  const description = parseTime(time) === undefined ? describeField('time', time) : describeField('status', status);
  return `${description}: each request needs a time and a status`;
}

function parseJsonLine(text: string, line: number): LoggedRequest | 'none' | 'aside' {
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    return 'none';
  }
  if (!isRecord(record)) return 'none';
  const access = 'time' in record ? undefined : (readEnvoyJson(record) ?? readCaddyJson(record));
  if (access !== undefined) return toLoggedRequest(access, line);
  const { time, client, status, method, path, ms, outcome, upstream } = record;
  const ended = parseTime(time);
  if (ended === undefined || typeof status !== 'number') return 'none';
  const took = typeof ms === 'number' ? checkDuration(ms) : undefined;
  const outcomeFields =
    typeof outcome === 'string' ? parseTidegateRecord(record, status, took ?? 0) : parseGenericRecord(status, took);
  if (outcomeFields === 'aside') return outcomeFields;
  return {
    line,
    // Tidegate writes its line at the end of a request.
    at: ended - (took ?? 0),
    client: typeof client === 'string' ? client : '',
    ...outcomeFields,
    upstream: typeof upstream === 'string' ? upstream : '',
    method: typeof method === 'string' ? method : 'GET',
    path: typeof path === 'string' ? path : '/',
    took,
  };
}

const JSON_LINES: LogFormat = { parse: parseJsonLine, describeProblem: describeJsonProblem, hasHeader: false };

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseTime(value: unknown): Millis | undefined {
  const number = typeof value === 'number' ? value : typeof value === 'string' ? parseNumber(value) : undefined;
  const [, unit] = TIME_UNITS.find(([below]) => number !== undefined && number < below) ?? [];
  const date = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  const time = number === undefined ? date : unit === undefined ? Number.NaN : unit * number;
  return time >= 0 && time < MAX_TIME ? time : undefined;
}

function checkDuration(ms: number | undefined): Millis | undefined {
  return ms !== undefined && ms <= MAX_DURATION ? ms : undefined;
}

function parseNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** Commas and doubled quotes within quotes are text (RFC 4180); line breaks in fields are not supported. */
function splitCsv(line: string): string[] {
  if (!line.includes('"')) return line.split(',').map((cell) => cell.trim());
  return [...line.matchAll(/(?:^|,)(?:\s*"((?:[^"]|"")*)"\s*|([^,]*))/g)].map(([, quoted, plain = '']) =>
    quoted === undefined ? plain.trim() : quoted.replaceAll('""', '"'),
  );
}
