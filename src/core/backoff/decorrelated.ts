import type { Millis } from '../scalars.ts';
import { scaleCapped } from './delay-distributions.ts';
import { type DelaySequence, defineStrategy } from './define-strategy.ts';

/** s = min(cap, U(b, 3s)), s starting at b: each delay depends on the one before, not on the number of retries. */
export const decorrelatedJitter = defineStrategy({
  summary: 'from baseInterval to three times the delay before',
  formula: 's = min(maxInterval, baseInterval + u · (3s − baseInterval)), s = baseInterval at first',
  expectation: 'baseInterval · (2 · 1.5^(n + 1) − 1) while baseInterval · 3^(n + 1) ≤ maxInterval',
  source: 'AWS Architecture Blog, "Exponential Backoff And Jitter" (2015)',
  defaults: { baseInterval: 100, maxInterval: 20_000 },
  delays: ({ baseInterval, maxInterval }) => decorrelated(baseInterval, maxInterval),
});

/** `memory` is the delay before; 0 at first. */
function decorrelated(base: Millis, cap: Millis): DelaySequence {
  const meanUnderCap = iterateMeans(base, cap);
  return {
    next(_n, memory, random) {
      const before = Math.min(cap, Math.max(base, memory));
      const delay = Math.min(cap, base + random() * (3 * before - base));
      return { delay, memory: delay };
    },
    band(n) {
      const longest = scaleCapped(base, 3 ** (n + 1), Infinity);
      // While no delay can reach the cap, E[s'] = (b + 3·E[s]) / 2, which is b·(2·1.5^(n+1) − 1).
      const mean = longest <= cap ? scaleCapped(base, 2 * 1.5 ** (n + 1) - 1, cap) : meanUnderCap(n);
      return { min: base, mean, max: Math.min(cap, longest) };
    },
  };
}

/** Grid points to a factor of three. */
const RESOLUTION = 256;

/** The iteration ends when the mean rises by less than this part of itself: it has reached the stationary one. */
const CONVERGED = 1e-9;

/** A value of V at the delay s. */
type Point = readonly [s: Millis, v: Millis];

/**
 * E[sₙ] where the cap has an effect, by quadrature. With V₀(s) = s and
 *   Vₖ₊₁(s) = E[Vₖ(min(cap, U(b, 3s)))] = (∫ Vₖ over [b, min(cap, 3s)] + Vₖ(cap)·max(0, 3s − cap)) / (3s − b)
 * the mean of delay n is Vₙ₊₁(b). The grid is geometric, 256 points to a factor of three, so that 3s is a grid point
 * again; integrals are by the trapezoidal rule, exact where V is linear: below the cap. Relative error
 * at most 10⁻⁵ for caps up to 10⁶·b.
 */
function iterateMeans(base: Millis, cap: Millis): (n: number) => Millis {
  let points: readonly Point[] = [];
  let mean = base;
  let settled = base === cap;
  const means: Millis[] = [];
  return (n) => {
    while (!settled && means.length <= n) {
      points = expectNext(points.length === 0 ? makeGrid(base, cap) : points, base, cap);
      const before = mean;
      // Sums round: a mean at the cap, or at a base that is close to it, can pass it by a part in 10¹⁵.
      mean = Math.min(cap, Math.max(base, points[0]?.[1] ?? base));
      means.push(mean);
      settled = mean - before <= CONVERGED * mean;
    }
    return means[n] ?? mean;
  };
}

/** V₀ on the grid, from b to the cap. */
function makeGrid(base: Millis, cap: Millis): Point[] {
  const points: Point[] = [];
  for (let s = base; s < cap; s = base * 3 ** (points.length / RESOLUTION)) points.push([s, s]);
  points.push([cap, cap]);
  return points;
}

/** Vₖ₊₁ of Vₖ. */
function expectNext(points: readonly Point[], base: Millis, cap: Millis): Point[] {
  let [area, s, v] = [0, base, base];
  const areas = points.map(([nextS, nextV]) => {
    area += ((nextS - s) * (v + nextV)) / 2;
    [s, v] = [nextS, nextV];
    return area;
  });
  // The loop has ended at the cap: `area` is the whole of it, and `v` is V(cap).
  return points.map(([s], i) => {
    const within = areas[i + RESOLUTION] ?? area;
    return [s, (within + v * Math.max(0, 3 * s - cap)) / (3 * s - base)];
  });
}
