import type { Millis, Random } from '../scalars.ts';
import { MAX_HINTED_DELAY } from './hint-numbers.ts';

/**
 * Formats the proxy's own Retry-After: whole seconds, rounded up or down at random, so that the mean over many clients is
 * `delay` and they do not all come back in the same second. Within [1, 300]: the field cannot express less than a second,
 * and the proxy asks for no longer wait than it accepts from an upstream. Draws once from `random`, whatever the delay.
 */
export function formatRetryAfter(delay: Millis, random: Random): string {
  const u = random();
  // The comparison is written so that NaN also yields 1.
  const seconds = delay > 1000 ? Math.min(delay, MAX_HINTED_DELAY) / 1000 : 1;
  const whole = Math.floor(seconds);
  return String(u < seconds - whole ? whole + 1 : whole);
}
