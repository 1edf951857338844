/**
 * Durations, rates and sizes between their written form and their unit in code: milliseconds, requests or bytes per second,
 * bytes.
 */
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { ParseResult } from './parse-result.ts';
import { parseFailure } from './parse-result.ts';

const DURATION_UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;
const RATE_UNITS = { s: 1, m: 60, h: 3600 } as const;
const SIZE_UNITS = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const;

/** Node fires a timer longer than 2³¹ − 1 ms at once: 576 h is the longest whole number of days below that. */
const MAX_DURATION: Millis = 576 * DURATION_UNITS.h;
const MAX_RATE: PerSecond = 1e9;

/** Four decimals hold the shortest duration in use exactly, a slot of Ethernet: 0.0512ms. */
const DECIMALS = 4;
const NUMBER = String.raw`\d+(?:\.\d{1,${DECIMALS}})?`;
export const DURATION_PATTERN = new RegExp(`^(${NUMBER})(ms|s|m|h)$`);
export const RATE_PATTERN = new RegExp(`^(${NUMBER})/(s|m|h)$`);
export const SIZE_PATTERN = /^(\d+)(B|KiB|MiB|GiB)$/;
export const BYTE_RATE_PATTERN = /^(\d+)(B|KiB|MiB|GiB)\/s$/;

export const DURATION_EXPECTED = 'a duration such as 250ms, 2s, 1m or 24h';

/** "250ms", "2s", "1.5m", "24h", or 0. Exact to a ten-thousandth of a millisecond. */
export function parseDuration(input: string | number): ParseResult<Millis> {
  if (input === 0) return { ok: true, value: 0 };
  if (typeof input === 'number') return rejectWithoutUnit(input, 'a duration', suggestDuration);
  const [, number, unit] = DURATION_PATTERN.exec(input) ?? [];
  if (number === undefined || !isKey(DURATION_UNITS, unit)) {
    return parseFailure(`expected ${DURATION_EXPECTED}`, suggestDuration(input));
  }
  const value = Number((Number(number) * DURATION_UNITS[unit]).toFixed(DECIMALS));
  if (value > MAX_DURATION) return parseFailure(`must be at most ${formatDuration(MAX_DURATION)}`);
  return { ok: true, value };
}

/** In the largest unit that divides it: "90s", "1500ms", "24h". */
export function formatDuration(millis: Millis): string {
  if (millis === 0) return '0s';
  if (millis % DURATION_UNITS.h === 0) return `${millis / DURATION_UNITS.h}h`;
  if (millis % DURATION_UNITS.m === 0) return `${millis / DURATION_UNITS.m}m`;
  if (millis % DURATION_UNITS.s === 0) return `${millis / DURATION_UNITS.s}s`;
  return `${millis}ms`;
}

/** "100/s", "20/m", "5000/h" as requests per second. */
export function parseRate(input: string | number): ParseResult<PerSecond> {
  if (typeof input === 'number') return rejectWithoutUnit(input, 'a rate', suggestRate);
  const [, number, unit] = RATE_PATTERN.exec(input) ?? [];
  if (number === undefined || !isKey(RATE_UNITS, unit)) {
    return parseFailure('expected a rate such as 100/s, 20/m or 5000/h', suggestRate(input));
  }
  const value = Number(number) / RATE_UNITS[unit];
  if (value === 0) return parseFailure('must be above 0');
  if (value > MAX_RATE) return parseFailure(`must be at most ${MAX_RATE}/s`);
  return { ok: true, value };
}

/** In the shortest unit in which four decimals are exact; rounded to six digits per second if none is. */
export function formatRate(rate: PerSecond): string {
  for (const unit of ['s', 'm', 'h'] as const) {
    const count = Number((rate * RATE_UNITS[unit]).toFixed(DECIMALS));
    if (count / RATE_UNITS[unit] === rate) return `${count}/${unit}`;
  }
  return `${Number(rate.toPrecision(6))}/s`;
}

/** "512B", "64KiB", "8MiB", "1GiB" as bytes, or 0. */
export function parseSize(input: string | number): ParseResult<number> {
  if (input === 0) return { ok: true, value: 0 };
  if (typeof input === 'number') return rejectWithoutUnit(input, 'a size', suggestSize);
  const [, number, unit] = SIZE_PATTERN.exec(input) ?? [];
  if (number === undefined || !isKey(SIZE_UNITS, unit)) {
    return parseFailure('expected a size such as 64KiB or 8MiB', suggestSize(input));
  }
  const value = Number(number) * SIZE_UNITS[unit];
  if (!Number.isSafeInteger(value)) return parseFailure('is larger than the memory of any machine');
  return { ok: true, value };
}

/** "500B/s", "1MiB/s" as bytes per second, or 0. */
export function parseByteRate(input: string | number): ParseResult<number> {
  if (input === 0) return { ok: true, value: 0 };
  const size = String(input).replace(/(?<!\s)\s*(?:\/|per|p)\s*s(?:ec(?:ond)?)?$/i, '');
  if (BYTE_RATE_PATTERN.test(String(input))) return parseSize(size);
  const suggestion = suggestSize(size);
  return parseFailure(
    'expected a rate such as 500B/s or 1MiB/s',
    suggestion === undefined ? undefined : `${suggestion}/s`,
  );
}

/** In the largest unit that divides it: "64KiB", "1000B". */
export function formatSize(bytes: number): string {
  for (const unit of ['GiB', 'MiB', 'KiB'] as const) {
    if (bytes > 0 && bytes % SIZE_UNITS[unit] === 0) return `${bytes / SIZE_UNITS[unit]}${unit}`;
  }
  return `${bytes}B`;
}

/** In the largest unit that divides it: "1KiB/s". */
export function formatByteRate(rate: number): string {
  return `${formatSize(rate)}/s`;
}

function rejectWithoutUnit(
  input: number,
  what: string,
  suggest: (text: string) => string | undefined,
): ParseResult<never> {
  return input < 0
    ? parseFailure(`${what} cannot be negative`)
    : parseFailure(`${what} needs a unit`, suggest(String(input)));
}

/** Other spellings of the units, for suggestions. */
const UNIT_ALIASES: Readonly<Record<string, string>> = {
  ms: 'ms',
  msec: 'ms',
  msecs: 'ms',
  millis: 'ms',
  millisecond: 'ms',
  milliseconds: 'ms',
  s: 's',
  sec: 's',
  secs: 's',
  second: 's',
  seconds: 's',
  rps: 's',
  m: 'm',
  min: 'm',
  mins: 'm',
  minute: 'm',
  minutes: 'm',
  rpm: 'm',
  h: 'h',
  hr: 'h',
  hrs: 'h',
  hour: 'h',
  hours: 'h',
  b: 'B',
  byte: 'B',
  bytes: 'B',
  k: 'KiB',
  kb: 'KiB',
  kib: 'KiB',
  mb: 'MiB',
  mib: 'MiB',
  g: 'GiB',
  gb: 'GiB',
  gib: 'GiB',
};

function suggestDuration(text: string): string | undefined {
  const [number, unit] = splitUnit(text, /^(\d+(?:\.\d+)?|\.\d+)\s*([a-z]*)$/i);
  if (unit === '') {
    const both = [`${number}ms`, `${number}s`].flatMap(
      (one) => validSuggestion(one, DURATION_PATTERN, parseDuration) ?? [],
    );
    return both.length === 0 ? undefined : both.join(' or ');
  }
  return validSuggestion(`${number}${UNIT_ALIASES[unit] ?? ''}`, DURATION_PATTERN, parseDuration);
}

function suggestRate(text: string): string | undefined {
  const [number, unit] = splitUnit(
    text,
    /^(\d+(?:\.\d+)?|\.\d+)\s*(?:(?:requests|req|r(?=\/))\s*)?(?:(?:\/|per)\s*)?([a-z]*)$/i,
  );
  return validSuggestion(`${number}/${unit === '' ? 's' : (UNIT_ALIASES[unit] ?? '')}`, RATE_PATTERN, parseRate);
}

function suggestSize(text: string): string | undefined {
  const [number, unit] = splitUnit(text, /^(\d+)\s*([a-z]*)$/i);
  const name = unit === 'm' ? 'MiB' : UNIT_ALIASES[unit];
  if (unit !== '') return validSuggestion(`${number}${name ?? ''}`, SIZE_PATTERN, parseSize);
  const bytes = Number(number);
  return number !== '' && Number.isSafeInteger(bytes) ? formatSize(bytes) : undefined;
}

function splitUnit(text: string, form: RegExp): readonly [number: string, unit: string] {
  const [, number = '', unit = ''] = form.exec(text.slice(0, 50).trim()) ?? [];
  return [number.startsWith('.') ? `0${number}` : number, unit.toLowerCase()];
}

/** The suggestion, if it would be accepted. */
function validSuggestion(text: string, form: RegExp, read: (text: string) => ParseResult<number>): string | undefined {
  return form.test(text) && read(text).ok ? text : undefined;
}

function isKey<T extends object>(table: T, key: PropertyKey | undefined): key is keyof T {
  return key !== undefined && Object.hasOwn(table, key);
}
