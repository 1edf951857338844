/** Distributions of a delay. A strategy without a memory is one of these with a formula for its ends. */
import type { Millis } from '../scalars.ts';
import type { DelaySequence } from './define-strategy.ts';

/** `high` is included only in a draw from whole numbers. */
export type DelayRange = readonly [low: number, high: number];

/** base · growth up to the cap: finite for any growth, `Infinity` included. */
export function scaleCapped(base: Millis, growth: number, cap: Millis): Millis {
  return base === 0 ? 0 : Math.min(cap, base * growth);
}

/** Not random: the delay itself. */
export function constantDelay(delay: (n: number) => Millis): DelaySequence {
  return {
    next: (n, memory) => ({ delay: delay(n), memory }),
    band(n) {
      const fixed = delay(n);
      return { min: fixed, mean: fixed, max: fixed };
    },
  };
}

/** Uniform on the range, then clamped to the cap, so part of the probability may lie on the cap; low ≤ cap. */
export function uniformDelay(range: (n: number) => DelayRange, cap: Millis = Infinity): DelaySequence {
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
export function slottedDelay(range: (n: number) => DelayRange, slot: Millis): DelaySequence {
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
