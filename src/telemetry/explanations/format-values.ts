/** Numbers as people read them. */
import type { BlockedPart } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';

/** `0.4 ms`, `120 ms`, `1.25 s`, `3 min 20 s`. */
export function tellDuration(ms: Millis): string {
  if (ms < 10) return `${trim(ms, 1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${trim(ms / 1000, 2)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `12.3/s`. */
export function tellRate(rate: PerSecond): string {
  return `${Number(rate.toPrecision(3))}/s`;
}

/** `1 request waits`, `3 requests wait`. */
export function count(number: number, one: string, more: string): string {
  return number === 1 ? `1 ${one}` : `${number} ${more}`;
}

/** What is blocked: `one address`, `this client on this path`. */
export function tellPart(part: BlockedPart, which: 'one' | 'this'): string {
  if (part === 'upstream') return 'the upstream';
  const [whose, path] = part.split('_');
  return path === undefined ? `${which} ${whose}` : `${which} ${whose} on ${which} ${path}`;
}

/** Seconds for programs: to a tenth of a millisecond. */
export function toSeconds(ms: Millis): number {
  return Math.round(10 * ms) / 10_000;
}

/** JSON has no Infinity: what is unlimited or unknown is null. */
export function orNull(number: number | undefined): number | null {
  return number === undefined || !Number.isFinite(number) ? null : Number(number.toPrecision(4));
}

function trim(number: number, digits: number): string {
  return String(Number(number.toFixed(digits)));
}
