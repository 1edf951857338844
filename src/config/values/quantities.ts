/** Durations, rates and sizes as people write them, and as code reckons: milliseconds, requests or bytes a second, bytes. */
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Reading } from './parse-result.ts';
import { misread } from './parse-result.ts';

const DURATION_UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;
const RATE_UNITS = { s: 1, m: 60, h: 3600 } as const;
const SIZE_UNITS = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const;

/** Node fires a timer longer than 2³¹ − 1 ms at once, so nothing may wait longer. */
const LONGEST: Millis = 576 * DURATION_UNITS.h;
const FASTEST: PerSecond = 1e9;

/** Four decimals hold the shortest duration in use exactly, a slot of Ethernet: 0.0512ms. */
const DECIMALS = 4;
const NUMBER = String.raw`\d+(?:\.\d{1,${DECIMALS}})?`;
export const DURATION = new RegExp(`^(${NUMBER})(ms|s|m|h)$`);
export const RATE = new RegExp(`^(${NUMBER})/(s|m|h)$`);
export const SIZE = /^(\d+)(B|KiB|MiB|GiB)$/;
export const BYTE_RATE = /^(\d+)(B|KiB|MiB|GiB)\/s$/;

export const A_DURATION = 'a duration such as 250ms, 2s, 1m or 24h';

/** "250ms", "2s", "1.5m", "24h", or 0. Exact to a ten-thousandth of a millisecond. */
export function readDuration(input: string | number): Reading<Millis> {
  if (input === 0) return { ok: true, value: 0 };
  if (typeof input === 'number') return withoutUnit(input, 'a duration', suggestDuration);
  const [, number, unit] = DURATION.exec(input) ?? [];
  if (number === undefined || !isKey(DURATION_UNITS, unit)) {
    return misread(`expected ${A_DURATION}`, suggestDuration(input));
  }
  const value = Number((Number(number) * DURATION_UNITS[unit]).toFixed(DECIMALS));
  if (value > LONGEST) return misread(`must be at most ${writeDuration(LONGEST)}`);
  return { ok: true, value };
}

/** In the largest unit that divides it: "90s", "1500ms", "24h". */
export function writeDuration(millis: Millis): string {
  if (millis === 0) return '0s';
  if (millis % DURATION_UNITS.h === 0) return `${millis / DURATION_UNITS.h}h`;
  if (millis % DURATION_UNITS.m === 0) return `${millis / DURATION_UNITS.m}m`;
  if (millis % DURATION_UNITS.s === 0) return `${millis / DURATION_UNITS.s}s`;
  return `${millis}ms`;
}

/** "100/s", "20/m", "5000/h" as requests a second. */
export function readRate(input: string | number): Reading<PerSecond> {
  if (typeof input === 'number') return withoutUnit(input, 'a rate', suggestRate);
  const [, number, unit] = RATE.exec(input) ?? [];
  if (number === undefined || !isKey(RATE_UNITS, unit)) {
    return misread('expected a rate such as 100/s, 20/m or 5000/h', suggestRate(input));
  }
  const value = Number(number) / RATE_UNITS[unit];
  if (value === 0) return misread('must be above 0');
  if (value > FASTEST) return misread(`must be at most ${FASTEST}/s`);
  return { ok: true, value };
}

/** In the shortest unit in which four decimals tell it exactly; a rate that has none is rounded. */
export function writeRate(rate: PerSecond): string {
  for (const unit of ['s', 'm', 'h'] as const) {
    const count = Number((rate * RATE_UNITS[unit]).toFixed(DECIMALS));
    if (count / RATE_UNITS[unit] === rate) return `${count}/${unit}`;
  }
  return `${Number(rate.toPrecision(6))}/s`;
}

/** "512B", "64KiB", "8MiB", "1GiB" as bytes, or 0. */
export function readSize(input: string | number): Reading<number> {
  if (input === 0) return { ok: true, value: 0 };
  if (typeof input === 'number') return withoutUnit(input, 'a size', suggestSize);
  const [, number, unit] = SIZE.exec(input) ?? [];
  if (number === undefined || !isKey(SIZE_UNITS, unit)) {
    return misread('expected a size such as 64KiB or 8MiB', suggestSize(input));
  }
  const value = Number(number) * SIZE_UNITS[unit];
  if (!Number.isSafeInteger(value)) return misread('is more than any machine has');
  return { ok: true, value };
}

/** "500B/s", "1MiB/s" as bytes a second, or 0. */
export function readByteRate(input: string | number): Reading<number> {
  if (input === 0) return { ok: true, value: 0 };
  const size = String(input).replace(/\s*(?:\/|per|p)\s*s(?:ec(?:ond)?)?$/i, '');
  if (BYTE_RATE.test(String(input))) return readSize(size);
  const suggestion = suggestSize(size);
  return misread('expected a rate such as 500B/s or 1MiB/s', suggestion === undefined ? undefined : `${suggestion}/s`);
}

/** In the largest unit that divides it: "64KiB", "1000B". */
export function writeSize(bytes: number): string {
  for (const unit of ['GiB', 'MiB', 'KiB'] as const) {
    if (bytes > 0 && bytes % SIZE_UNITS[unit] === 0) return `${bytes / SIZE_UNITS[unit]}${unit}`;
  }
  return `${bytes}B`;
}

/** In the largest unit that divides it: "1KiB/s". */
export function writeByteRate(rate: number): string {
  return `${writeSize(rate)}/s`;
}

function withoutUnit(input: number, what: string, suggest: (text: string) => string | undefined): Reading<never> {
  return input < 0 ? misread(`${what} cannot be negative`) : misread(`${what} needs a unit`, suggest(String(input)));
}

/** What other notations call the units. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
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
  const [number, unit] = splitUnit(text, /^(\d*\.?\d+)\s*([a-z]*)$/i);
  if (unit === '') {
    const both = [`${number}ms`, `${number}s`].flatMap((one) => understood(one, DURATION, readDuration) ?? []);
    return both.length === 0 ? undefined : both.join(' or ');
  }
  return understood(`${number}${OTHER_NAMES[unit] ?? ''}`, DURATION, readDuration);
}

function suggestRate(text: string): string | undefined {
  const [number, unit] = splitUnit(text, /^(\d*\.?\d+)\s*(?:requests|req|r(?=\/))?\s*(?:\/|per)?\s*([a-z]*)$/i);
  return understood(`${number}/${unit === '' ? 's' : (OTHER_NAMES[unit] ?? '')}`, RATE, readRate);
}

function suggestSize(text: string): string | undefined {
  const [number, unit] = splitUnit(text, /^(\d+)\s*([a-z]*)$/i);
  const name = unit === 'm' ? 'MiB' : OTHER_NAMES[unit];
  if (unit !== '') return understood(`${number}${name ?? ''}`, SIZE, readSize);
  const bytes = Number(number);
  return number !== '' && Number.isSafeInteger(bytes) ? writeSize(bytes) : undefined;
}

function splitUnit(text: string, form: RegExp): readonly [number: string, unit: string] {
  // The forms try every place a number may end, which takes long in a long text.
  const [, number = '', unit = ''] = form.exec(text.slice(0, 50).trim()) ?? [];
  return [number.startsWith('.') ? `0${number}` : number, unit.toLowerCase()];
}

/** What cannot be read is no help; nor is what is out of bounds. */
function understood(text: string, form: RegExp, read: (text: string) => Reading<number>): string | undefined {
  return form.test(text) && read(text).ok ? text : undefined;
}

function isKey<T extends object>(table: T, key: PropertyKey | undefined): key is keyof T {
  return key !== undefined && Object.hasOwn(table, key);
}
