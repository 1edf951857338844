import type { Millis, Random } from '../exchange/attempt-outcome.ts';
import { MAX_HINT } from './hint-numbers.ts';

/**
 * A Retry-After of our own: whole seconds, rounded up or down at random so that the mean over many clients is `delay`,
 * and they do not all come back in the same second. Within [1, 300]: shorter than a second cannot be said, and nobody
 * is told more than an upstream would be believed. Draws once from `random`, whatever the delay.
 */
export function formatRetryAfter(delay: Millis, random: Random): string {
  const u = random();
  // Written so that NaN, too, comes out as 1.
  const seconds = delay > 1000 ? Math.min(delay, MAX_HINT) / 1000 : 1;
  const whole = Math.floor(seconds);
  return String(u < seconds - whole ? whole + 1 : whole);
}
