import type { Millis } from '../scalars.ts';
import { scaleCapped } from './delay-distributions.ts';
import { type DelaySequence, defineStrategy } from './define-strategy.ts';

/** (g(tₙ) − g(tₙ₋₁))·b/1.4, g(t) = 2^t·tanh √(4t), t = n + u: one smooth curve, sampled once in every unit of t. */
export const decorrelatedJitterV2 = defineStrategy({
  summary: "Polly's exponential jitter: smooth, no two clients in step, medians near baseInterval · 2^n",
  formula:
    'min(maxInterval, (g(n + u) − g(n − 1 + u′)) · baseInterval / 1.4), g(t) = 2^t · tanh √(4t), u′ the u before',
  source: 'Polly, RetryHelper.DecorrelatedJitterBackoffV2; George Polevoy in App-vNext/Polly issue 530',
  defaults: { baseInterval: 1000, maxInterval: 20_000 },
  delays: ({ baseInterval, maxInterval }) => decorrelatedV2(baseInterval, maxInterval),
});

/** Brings the medians near b, 2b, 4b … */
const SCALE = 1 / 1.4;

/** From here on 2^t exceeds a double; long before that a delay below the cap is all but impossible. */
const BEYOND_DOUBLE = 1024;

function g(t: number): number {
  return 2 ** t * Math.tanh(Math.sqrt(4 * t));
}

/** `memory` is g(tₙ₋₁); 0 at first, which is g(0). */
function decorrelatedV2(base: Millis, cap: Millis): DelaySequence {
  const capped = (rise: number): Millis => scaleCapped(base, Math.max(0, rise) * SCALE, cap);
  return {
    next(n, memory, random) {
      if (n >= BEYOND_DOUBLE) return { delay: capped(Infinity), memory };
      const reached = g(n + random());
      return { delay: capped(reached - memory), memory: reached };
    },
    band(n) {
      if (n >= BEYOND_DOUBLE) return { min: capped(Infinity), mean: capped(Infinity), max: capped(Infinity) };
      const max = capped(g(n + 1) - (n === 0 ? 0 : g(n - 1)));
      // Sums round: where every sample is at the cap they can pass it by a part in 10¹⁵.
      return { min: 0, mean: Math.min(max, meanRise(n, capped)), max };
    },
    sumRange(count) {
      const drawn = Math.min(count, BEYOND_DOUBLE);
      const rest = (count - drawn) * capped(Infinity);
      return { min: minSum(drawn, capped) + rest, max: maxSum(drawn, cap / SCALE / base, capped) + rest };
    },
  };
}

type Capped = (rise: number) => Millis;

/**
 * The delays add up to Σ capped(xₙ − xₙ₋₁), xₙ = g(tₙ) anywhere from g(n) to g(n + 1). The sum is concave in
 * the xₙ, so it is least where each xₙ is at one of its ends.
 */
function minSum(count: number, capped: Capped): Millis {
  // The least sum so far, for each position on the curve.
  let ends: readonly { readonly at: number; readonly sum: Millis }[] = [{ at: 0, sum: 0 }];
  for (let n = 0; n < count; n += 1) {
    const before = ends;
    ends = [g(n), g(n + 1)].map((at) => ({
      at,
      sum: Math.min(...before.map((from) => from.sum + capped(at - from.at))),
    }));
  }
  return Math.min(...ends.map(({ sum }) => sum));
}

/**
 * The sum is greatest where each delay rises as far as it can below the cap: that adds to this delay as much as it can take from
 * the next, and beyond the cap it adds nothing.
 * @param highest the rise that comes to the cap
 */
function maxSum(count: number, highest: number, capped: Capped): Millis {
  let sum = 0;
  let at = 0;
  for (let n = 0; n < count; n += 1) {
    const to = Math.min(g(n + 1), Math.max(g(n), at + highest));
    sum += capped(to - at);
    at = to;
  }
  return sum;
}

/** Samples of one unit of t. */
const SAMPLES = 256;

/**
 * E[capped(g(n + u) − g(n − 1 + u′))] by the midpoint rule on 256 × 256 points, equally spaced in √t, where g is smooth
 * even at 0. Relative error below 10⁻⁵.
 */
function meanRise(n: number, capped: Capped): Millis {
  const before = n === 0 ? [{ value: 0, weight: 1 }] : sample(n - 1);
  let mean = 0;
  for (const to of sample(n)) {
    for (const from of before) mean += to.weight * from.weight * capped(to.value - from.value);
  }
  return mean;
}

/** g over [n, n + 1), each value with the length of t it stands for; the lengths add up to 1. */
function sample(n: number): { value: number; weight: number }[] {
  const start = Math.sqrt(n);
  const width = (Math.sqrt(n + 1) - start) / SAMPLES;
  return Array.from({ length: SAMPLES }, (_, i) => {
    const root = start + (i + 0.5) * width;
    return { value: g(root * root), weight: 2 * root * width };
  });
}
