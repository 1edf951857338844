import type { Hints } from '../hints/hints.ts';
import type { Millis, Random } from '../scalars.ts';

/** The delay that the upstream asks for; undefined if it asks for none. An exhausted quota asks to wait for its reset. */
export function hintedDelay({ retryAfterMs, quota }: Hints): Millis | undefined {
  if (retryAfterMs !== undefined && retryAfterMs > 0) return retryAfterMs;
  if (quota?.remaining === 0 && quota.resetIn !== undefined && quota.resetIn > 0) return quota.resetIn;
  return undefined;
}

/** Spreads requests that got the same hint: adds up to a tenth of it, at most a second, and never subtracts. */
export function jitterAboveHint(hinted: Millis, random: Random): Millis {
  return hinted + random() * Math.min(hinted / 10, 1000);
}
