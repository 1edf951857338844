import { describe, expect, test } from 'vitest';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import type { LatencySpec } from '../../../src/simulator/upstream/latency-model.ts';
import { makeLatencySampler } from '../../../src/simulator/upstream/latency-model.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { UpstreamSpec } from '../../../src/simulator/upstream/upstream-model.ts';
import { UpstreamModel } from '../../../src/simulator/upstream/upstream-model.ts';

/** Draws in the given order, and throws after the last one. */
function chance(...values: number[]): () => number {
  return () => {
    const value = values.shift();
    if (value === undefined) throw new Error('asked for more chance than there is');
    return value;
  };
}

const none = chance();
const one: UpstreamSpec = { limit: { kind: 'fixed-window', limit: 1, window: 1000 } };

describe('an upstream', () => {
  test('serves with one latency and refuses with another', () => {
    const upstream = new UpstreamModel({
      ...one,
      latency: { kind: 'constant', mean: 40 },
      refusalLatency: { kind: 'uniform', mean: 4 },
    });
    expect(upstream.decide(100, none)).toEqual({ kind: 'serve', latency: 40, quota: undefined });
    expect(upstream.decide(100, chance(0.75))).toEqual({
      kind: 'throttle',
      latency: 6,
      quota: undefined,
      retryAfterMs: 900,
    });
  });

  test('names the exact wait, or always the same one', () => {
    for (const [retryAfter, retryAfterMs] of [
      [undefined, 900],
      [60_000, 60_000],
    ] as const) {
      const upstream = new UpstreamModel({ ...one, ...(retryAfter === undefined ? {} : { retryAfter }) });
      upstream.decide(100, none);
      expect(upstream.decide(100, none)).toMatchObject({ kind: 'throttle', retryAfterMs });
    }
  });

  test('fails at random among the requests that its limit admits, for the duration of the burst', () => {
    const upstream = new UpstreamModel({
      limit: { kind: 'concurrency', limit: 1 },
      errors: [{ probability: 0.5, status: 500, from: 100, to: 200 }],
    });
    expect(upstream.decide(99, none).kind).toBe('serve');
    upstream.release(99);
    expect(upstream.decide(100, chance(0.5)).kind).toBe('serve');
    upstream.release(100);
    expect(upstream.decide(150, chance(0.49))).toEqual({ kind: 'fail', status: 500, latency: 0, quota: undefined });
    expect(upstream.decide(150, none).kind).toBe('throttle'); // the failing request is still in flight
    upstream.release(150);
    expect(upstream.decide(200, none).kind).toBe('serve');
  });

  test('counts nothing against its limit while it is down', () => {
    const upstream = new UpstreamModel({ ...one, outages: [{ from: 0, to: 500, how: 'reset' }] });
    expect(upstream.decide(0, none)).toEqual({ kind: 'down', how: 'reset' });
    expect(upstream.decide(499, none)).toEqual({ kind: 'down', how: 'reset' });
    expect(upstream.decide(500, none).kind).toBe('serve');
  });

  test('closes its listener only while connections are refused', () => {
    const upstream = new UpstreamModel({
      ...one,
      outages: [
        { from: 0, to: 100, how: '503' },
        { from: 200, to: 300, how: 'refuse' },
      ],
    });
    expect(upstream.listenState(0)).toEqual({ open: true, until: 200 });
    expect(upstream.listenState(200)).toEqual({ open: false, until: 300 });
    expect(upstream.listenState(300)).toEqual({ open: true, until: Number.POSITIVE_INFINITY });
  });

  test('changes its limit at each step, however rarely it is called', () => {
    const upstream = new UpstreamModel({
      limit: { kind: 'token-bucket', rate: 10, burst: 1 },
      steps: [
        { at: 2000, limit: 5 },
        { at: 1000, limit: 50 },
      ],
    });
    expect(upstream.limit(999)).toBe(10);
    expect(upstream.limit(1000)).toBe(50);
    expect(upstream.limit(9000)).toBe(5);
    expect(upstream.decide(9000, none).kind).toBe('serve');
    expect(upstream.decide(9000, none)).toMatchObject({ kind: 'throttle', retryAfterMs: 200 });
  });

  test('rejects at construction a step that is invalid for its limit', () => {
    expect(() => new UpstreamModel({ ...one, steps: [{ at: 1e6, limit: 0 }] })).toThrow(RangeError);
  });
});

describe('hints of a simulated upstream', () => {
  const bucket: UpstreamSpec = { limit: { kind: 'token-bucket', rate: 100, burst: 20 } };
  const minute: UpstreamSpec = { limit: { kind: 'fixed-window', limit: 1, window: 60_000 } };
  const hintsOf = (spec: UpstreamSpec, times: number, now: number) => {
    const upstream = new UpstreamModel(spec);
    for (let i = 1; i < times; i += 1) upstream.decide(now, none);
    return upstream.hints(upstream.decide(now, none), now);
  };

  test('are absent unless it sends them', () => {
    expect(hintsOf(minute, 2, 0)).toBe(NO_HINTS);
  });

  test('add a Retry-After to a refusal alone, in seconds that are never too short', () => {
    expect(hintsOf({ ...minute, hints: 'retry-after' }, 1, 500)).toBe(NO_HINTS);
    expect(hintsOf({ ...minute, hints: 'retry-after' }, 2, 500)).toEqual({ ...NO_HINTS, retryAfterMs: 60_000 });
    expect(hintsOf({ ...bucket, hints: 'retry-after' }, 21, 500)).toEqual({ ...NO_HINTS, retryAfterMs: 1000 });
  });

  test('contain a date relative to the clock of the proxy, which agrees with the Date of the response', () => {
    // The window ends at 60 000 exactly, the bucket has its next token at 2000.
    expect(hintsOf({ ...minute, hints: 'retry-after-date' }, 2, 500)).toEqual({ ...NO_HINTS, retryAfterMs: 59_500 });
    expect(hintsOf({ ...bucket, hints: 'retry-after-date' }, 21, 995)).toEqual({ ...NO_HINTS, retryAfterMs: 1005 });
  });

  test('contain the shortest wait if it is unknown', () => {
    const places: UpstreamSpec = { limit: { kind: 'concurrency', limit: 1 } };
    for (const hints of ['retry-after', 'retry-after-date'] as const) {
      expect(hintsOf({ ...places, hints }, 2, 3000)).toEqual({ ...NO_HINTS, retryAfterMs: 1000 });
    }
  });

  test('add a quota to every response, with a window of at least a second at the same rate', () => {
    const quota = { remaining: 19, limit: 100, resetIn: 1000, window: 1000 };
    expect(hintsOf({ ...bucket, hints: 'ratelimit' }, 1, 0)).toEqual({ ...NO_HINTS, quota });
    expect(hintsOf({ ...minute, hints: 'ratelimit' }, 2, 500)).toEqual({
      ...NO_HINTS,
      quota: { remaining: 0, limit: 1, resetIn: 60_000, window: 60_000 },
    });
  });

  test('contain no window in the older headers', () => {
    expect(hintsOf({ ...minute, hints: 'x-ratelimit' }, 1, 59_500)).toEqual({
      ...NO_HINTS,
      quota: { remaining: 0, limit: 1, resetIn: 500, window: undefined },
    });
  });
});

describe('latency', () => {
  test('follows its distribution', () => {
    expect(makeLatencySampler({ kind: 'constant', mean: 7 })(none)).toBe(7);
    expect(makeLatencySampler({ kind: 'uniform', mean: 10, spread: 4 })(chance(0))).toBe(6);
    expect(makeLatencySampler({ kind: 'uniform', mean: 10, spread: 4 })(chance(0.5))).toBe(10);
    expect(makeLatencySampler({ kind: 'exponential', mean: 10 })(chance(1 - 1 / Math.E))).toBeCloseTo(10, 9);
    // u = 1 − e^(−1/2) makes the radius 1, 0 makes the cosine 1: the normal deviate is 1.
    const deviate = chance(1 - Math.exp(-1 / 2), 0);
    expect(makeLatencySampler({ kind: 'lognormal', mean: 10, sigma: 0.5 })(deviate)).toBeCloseTo(
      10 * Math.exp(0.375),
      9,
    );
    const measured = makeLatencySampler({ kind: 'quantiles', mean: 10, quantiles: [5, 10, 15] });
    expect([0, 0.34, 0.999].map((draw) => measured(chance(draw)))).toEqual([5, 10, 15]);
  });

  test.each<LatencySpec>([
    { kind: 'uniform', mean: 20, spread: 20 },
    { kind: 'exponential', mean: 20 },
    { kind: 'lognormal', mean: 20, sigma: 0.5 },
    { kind: 'quantiles', mean: 20, quantiles: [1, 2, 57] },
  ])('has the configured mean: $kind', (spec) => {
    const draw = makeLatencySampler(spec);
    const random = seededRandom(7);
    let sum = 0;
    for (let i = 0; i < 200_000; i += 1) sum += draw(random);
    expect(sum / 200_000).toBeGreaterThan(19.8);
    expect(sum / 200_000).toBeLessThan(20.2);
  });
});

describe('the seeded generator', () => {
  test('is the same for equal seeds, and different for others', () => {
    const draw = (seed: number) => Array.from({ length: 5 }, seededRandom(seed));
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
    expect(draw(1)).not.toEqual(draw(1 + 2 ** 32));
  });

  test('is uniform', () => {
    const random = seededRandom(42);
    const bins = Array.from({ length: 10 }, () => 0);
    for (let i = 0; i < 100_000; i += 1) {
      const bin = Math.floor(random() * bins.length);
      bins[bin] = (bins[bin] ?? 0) + 1;
    }
    // χ² with 9 degrees of freedom is above 27.9 once in a thousand.
    const chi2 = bins.reduce((sum, n) => sum + (n - 10_000) ** 2 / 10_000, 0);
    expect(chi2).toBeLessThan(27.9);
  });
});
