/** Numbers and texts formatted for display. */
import type { BlockedPart } from '../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond } from '../core/scalars.ts';

/** `0.4 ms`, `120 ms`, `1.25 s`, `3 min 20 s`. */
export function humanizeDuration(ms: Millis): string {
  if (ms < 10) return `${toFixedTrimmed(ms, 1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${toFixedTrimmed(ms / 1000, 2)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `12.3/s`. */
export function humanizeRate(rate: PerSecond): string {
  return `${Number(rate.toPrecision(3))}/s`;
}

/** `1 request waits`, `3 requests wait`. */
export function pluralize(number: number, one: string, more: string): string {
  return number === 1 ? `1 ${one}` : `${number} ${more}`;
}

/** The blocked part: `one address`, `this client on this path`. */
export function formatBlockedPart(part: BlockedPart, which: 'one' | 'this'): string {
  if (part === 'upstream') return 'the upstream';
  const [whose, path] = part.split('_');
  return path === undefined ? `${which} ${whose}` : `${which} ${whose} on ${which} ${path}`;
}

/** Rounded down to days, hours or minutes: `6 days`, `1 hour`, `12 minutes`. */
export function formatTimeLeft(left: Millis): string {
  const minutes = Math.floor(left / 60_000);
  if (minutes >= 2 * 1440) return pluralize(Math.floor(minutes / 1440), 'day', 'days');
  if (minutes >= 60) return pluralize(Math.floor(minutes / 60), 'hour', 'hours');
  return minutes === 0 ? 'less than a minute' : pluralize(minutes, 'minute', 'minutes');
}

/** The effect of an expired certificate. @param setting the path of its setting, such as `listen.tls.cert` */
export function describeExpiryEffect(setting: string): string {
  return setting.startsWith('listen.')
    ? 'clients that verify it cannot connect'
    : 'the server that it is presented to may refuse connections';
}

/** Seconds for programs, rounded to a tenth of a millisecond. */
export function toSeconds(ms: Millis): number {
  return Math.round(10 * ms) / 10_000;
}

/** Rounded to four digits. Unlimited and unknown values are null, because JSON has no Infinity. */
export function roundOrNull(number: number | undefined): number | null {
  return number === undefined || !Number.isFinite(number) ? null : Number(number.toPrecision(4));
}

function toFixedTrimmed(number: number, digits: number): string {
  return String(Number(number.toFixed(digits)));
}

/** Control and format characters, and separators of lines: a terminal would execute escape sequences, and reorder text. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Replaces what is not printable: clients choose paths, headers and names. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, '�');
}

/** JSON in one line without unprintable characters: each is escaped, so that nothing is lost. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNPRINTABLE, (character) => character.split('').map(escapeUnit).join(''));
}

/** @param unit a UTF-16 code unit */
function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
