import type { Millis } from '../core/scalars.ts';

const HOUR: Millis = 3_600_000;
const YEAR: Millis = 365.25 * 24 * HOUR;

/** Four digits in a suitable unit; seconds up to ten hours, because delays are usually given in seconds. */
export function formatDelay(delay: Millis): string {
  if (delay === 0) return '0';
  if (delay < 1) return `${fourDigits(delay * 1000)}µs`;
  if (delay < 1000) return `${fourDigits(delay)}ms`;
  if (delay < 10 * HOUR) return `${fourDigits(delay / 1000)}s`;
  return delay < YEAR ? `${fourDigits(delay / HOUR)}h` : `${fourDigits(delay / YEAR)}y`;
}

function fourDigits(value: number): string {
  return String(value < 1000 ? Number(value.toPrecision(4)) : Math.round(value));
}
