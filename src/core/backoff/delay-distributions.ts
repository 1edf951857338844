/** The ways chance enters a delay. A strategy without a memory is one of these and a formula for its ends. */
import type { Millis } from '../exchange/attempt-outcome.ts';
import type { Delays } from './define-strategy.ts';

/** From the first to the second, both included where drawn from whole numbers. */
export type Range = readonly [low: number, high: number];

/** base · growth up to the cap: finite for any growth, `Infinity` included. */
export function scaled(base: Millis, growth: number, cap: Millis): Millis {
  return base === 0 ? 0 : Math.min(cap, base * growth);
}

/** No chance: the delay itself. */
export function exactly(delay: (n: number) => Millis): Delays {
  return {
    next: (n, memory) => ({ delay: delay(n), memory }),
    band(n) {
      const always = delay(n);
      return { min: always, mean: always, max: always };
    },
  };
}

/** Uniform on the range, then clamped to the cap, so that part of the chance may gather on the cap; low ≤ cap. */
export function uniform(range: (n: number) => Range, cap: Millis = Infinity): Delays {
  return {
    next(n, memory, random) {
      const [low, high] = range(n);
      return { delay: Math.min(low + random() * (high - low), cap), memory };
    },
    band(n) {
      const [low, high] = range(n);
      return { min: low, mean: meanClamped(low, high, cap), max: Math.min(high, cap) };
    },
  };
}

/** Uniform on the whole numbers of the range, in units of `slot`. */
export function slots(range: (n: number) => Range, slot: Millis): Delays {
  return {
    next(n, memory, random) {
      const [first, last] = range(n);
      return { delay: (first + Math.floor(random() * (last - first + 1))) * slot, memory };
    },
    band(n) {
      const [first, last] = range(n);
      return { min: first * slot, mean: ((first + last) / 2) * slot, max: last * slot };
    },
  };
}

/** E[min(cap, X)], X uniform on [low, high], low ≤ cap. */
function meanClamped(low: number, high: number, cap: number): number {
  if (high <= cap) return low + (high - low) / 2;
  return cap - ((cap - low) / (high - low)) * ((cap - low) / 2);
}
