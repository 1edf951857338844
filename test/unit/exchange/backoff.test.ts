import { describe, expect, test } from 'vitest';
import {
  BackOffOptionError,
  type BackOffOptions,
  type BackOffSpec,
  type BackOffStrategy,
  isStrategyName,
  makeBackOff,
  strategies,
  strategyNames,
} from '../../../src/core/backoff/strategies.ts';

/** The largest number below 1, for the limit u → 1. */
const ALMOST_ONE = 1 - 2 ** -53;

/** The first delays with every draw equal to `u`; fewer where the strategy gives up. */
function delaysAt(u: number, spec: BackOffSpec, count: number): number[] {
  const backOff = makeBackOff(spec);
  const delays: number[] = [];
  let memory = 0;
  for (let n = 0; n < count; n += 1) {
    const step = backOff.next(n, memory, () => u);
    if (step === undefined) break;
    delays.push(step.delay);
    memory = step.memory;
  }
  return delays;
}

/** The sum of all waits, each with its own draw; 1 stands for the limit of the draws. */
function sumAt(backOff: BackOffStrategy, chances: readonly number[]): number {
  let sum = 0;
  let memory = 0;
  for (const [n, u] of chances.entries()) {
    const step = backOff.next(n, memory, () => u)!;
    sum += step.delay;
    memory = step.memory;
  }
  return sum;
}

function bandsOf(spec: BackOffSpec, count: number) {
  const backOff = makeBackOff(spec);
  return Array.from({ length: count }, (_, n) => backOff.band(n)!);
}

function meansOf(spec: BackOffSpec, count: number): number[] {
  return bandsOf(spec, count).map((band) => band.mean);
}

/** Equal except for the rounding of doubles. */
function expectSame(actual: readonly number[], expected: readonly number[]): void {
  expect(actual).toHaveLength(expected.length);
  for (const [i, value] of expected.entries()) expect(actual[i]).toBeCloseTo(value, 8);
}

describe('without randomness', () => {
  test('fixed always returns the same delay', () => {
    expect(delaysAt(0.3, { strategy: 'fixed', baseInterval: 250 }, 3)).toEqual([250, 250, 250]);
  });

  test('linear grows by one base per retry, up to the cap', () => {
    expect(delaysAt(0.3, { strategy: 'linear', baseInterval: 100, maxInterval: 350 }, 5)).toEqual([
      100, 200, 300, 350, 350,
    ]);
  });

  test('polynomial is a power of the number of failures, up to the cap', () => {
    const spec = { strategy: 'polynomial', baseInterval: 10, exponent: 3, maxInterval: 1000 } as const;
    expect(delaysAt(0.3, spec, 6)).toEqual([10, 80, 270, 640, 1000, 1000]);
  });

  test('fibonacci starts at F(0) = 0', () => {
    expect(delaysAt(0.3, { strategy: 'fibonacci', baseInterval: 10 }, 10)).toEqual([
      0, 10, 10, 20, 30, 50, 80, 130, 210, 340,
    ]);
  });

  test('fibonacci stops at the cap', () => {
    expect(delaysAt(0.3, { strategy: 'fibonacci', baseInterval: 10, maxInterval: 100 }, 9).slice(6)).toEqual([
      80, 100, 100,
    ]);
  });

  test('exponential doubles', () => {
    expect(delaysAt(0.3, { strategy: 'exponential', baseInterval: 10 }, 8)).toEqual([
      10, 20, 40, 80, 160, 320, 640, 1280,
    ]);
  });

  test('exponential stops at the cap', () => {
    const spec = { strategy: 'exponential', baseInterval: 100, maxInterval: 30_000 } as const;
    expect(delaysAt(0.3, spec, 10)).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
  });

  test('exponential takes another factor', () => {
    expect(delaysAt(0.3, { strategy: 'exponential', baseInterval: 16, multiplier: 1.5 }, 4)).toEqual([16, 24, 36, 54]);
  });

  test('sip doubles from T1 to T2', () => {
    expect(delaysAt(0.3, { strategy: 'sip' }, 5)).toEqual([500, 1000, 2000, 4000, 4000]);
  });

  test('doubling waits 1 to 64 s, then gives up', () => {
    expect(delaysAt(0.3, { strategy: 'doubling' }, 20)).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 64_000]);
    const backOff = makeBackOff({ strategy: 'doubling' });
    expect(backOff.retries).toBe(7);
    expect(backOff.next(7, 0, () => 0)).toBeUndefined();
    expect(backOff.band(7)).toBeUndefined();
  });

  test('doubling ends below a cap that lies between two delays', () => {
    expect(delaysAt(0.3, { strategy: 'doubling', baseInterval: 100, maxInterval: 500 }, 20)).toEqual([100, 200, 400]);
  });

  test('a delay without randomness is its own expectation', () => {
    expect(bandsOf({ strategy: 'sip' }, 2)).toEqual([
      { min: 500, mean: 500, max: 500 },
      { min: 1000, mean: 1000, max: 1000 },
    ]);
  });
});

describe('with jitter', () => {
  test('random is anything up to its maximum', () => {
    const spec = { strategy: 'random', maxInterval: 800 } as const;
    expect(bandsOf(spec, 2)).toEqual([
      { min: 0, mean: 400, max: 800 },
      { min: 0, mean: 400, max: 800 },
    ]);
    expect(delaysAt(0, spec, 2)).toEqual([0, 0]);
    expect(delaysAt(0.25, spec, 2)).toEqual([200, 200]);
  });

  test('exponential-jitter has the exponential delay as its mean, and half of it to either side', () => {
    const spec = { strategy: 'exponential-jitter', baseInterval: 10, jitter: 0.5 } as const;
    expect(bandsOf(spec, 3)).toEqual([
      { min: 5, mean: 10, max: 15 },
      { min: 10, mean: 20, max: 30 },
      { min: 20, mean: 40, max: 60 },
    ]);
    expect(delaysAt(0, spec, 3)).toEqual([5, 10, 20]);
    expect(delaysAt(0.5, spec, 3)).toEqual([10, 20, 40]);
    expectSame(delaysAt(ALMOST_ONE, spec, 3), [15, 30, 60]);
  });

  test('exponential-jitter never exceeds the cap, and keeps its lower half there', () => {
    const spec = { strategy: 'exponential-jitter', baseInterval: 100, jitter: 0.5, maxInterval: 400 } as const;
    expect(delaysAt(ALMOST_ONE, spec, 5).slice(2)).toEqual([400, 400, 400]);
    expect(delaysAt(0.25, spec, 5).slice(2)).toEqual([300, 300, 300]);
    // Half of the draws reach the cap, the other half is uniform on [200, 400].
    expect(bandsOf(spec, 3)[2]).toEqual({ min: 200, mean: 350, max: 400 });
  });

  test('additive-jitter doubles from tmin to tmax, plus the jitter', () => {
    const spec = { strategy: 'additive-jitter', baseInterval: 100, maxInterval: 30_000, jitterInterval: 80 } as const;
    const doubled = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000];
    expect(delaysAt(0, spec, 10)).toEqual(doubled);
    // Half the jitter each time, and never the jitter of the previous delay.
    expect(delaysAt(0.5, spec, 10)).toEqual(doubled.map((delay) => delay + 40));
    expectSame(
      bandsOf(spec, 10).map((band) => band.max),
      doubled.map((delay) => delay + 80),
    );
  });

  test('full-jitter has half the exponential delay as its mean', () => {
    const spec = { strategy: 'full-jitter', baseInterval: 100, maxInterval: 500 } as const;
    expect(meansOf(spec, 5)).toEqual([50, 100, 200, 250, 250]);
    expect(delaysAt(0, spec, 4)).toEqual([0, 0, 0, 0]);
    expect(delaysAt(0.5, spec, 4)).toEqual([50, 100, 200, 250]);
    expectSame(delaysAt(ALMOST_ONE, spec, 4), [100, 200, 400, 500]);
  });

  test('equal-jitter has three quarters of the exponential delay as its mean', () => {
    const spec = { strategy: 'equal-jitter', baseInterval: 100, maxInterval: 500 } as const;
    expect(meansOf(spec, 4)).toEqual([75, 150, 300, 375]);
    expect(delaysAt(0, spec, 4)).toEqual([50, 100, 200, 250]);
    expectSame(delaysAt(ALMOST_ONE, spec, 4), [100, 200, 400, 500]);
  });

  test('jpillora has the means 100, 150, 250, 450, 850', () => {
    expect(meansOf({ strategy: 'jpillora' }, 5)).toEqual([100, 150, 250, 450, 850]);
    expect(delaysAt(0.5, { strategy: 'jpillora' }, 5)).toEqual([100, 150, 250, 450, 850]);
  });

  test('jpillora clamps after the jitter: late delays are the maximum itself', () => {
    expect(delaysAt(0, { strategy: 'jpillora' }, 12)[11]).toBe(100);
    expect(delaysAt(0.05, { strategy: 'jpillora' }, 12)[11]).toBe(10_000);
    expect(makeBackOff({ strategy: 'jpillora' }).band(60)!.mean).toBeCloseTo(10_000, 6);
  });

  test('grpc grows by 1.6 per retry, 20 % more or less', () => {
    expectSame(meansOf({ strategy: 'grpc' }, 4), [1000, 1600, 2560, 4096]);
    expectSame(delaysAt(0, { strategy: 'grpc' }, 4), [800, 1280, 2048, 3276.8]);
    expectSame(delaysAt(0.5, { strategy: 'grpc' }, 4), [1000, 1600, 2560, 4096]);
    expectSame(delaysAt(ALMOST_ONE, { strategy: 'grpc' }, 4), [1200, 1920, 3072, 4915.2]);
  });

  test('grpc caps the middle at 120 s and jitters around it, as its specification does', () => {
    expect(makeBackOff({ strategy: 'grpc' }).band(11)).toEqual({ min: 96_000, mean: 120_000, max: 144_000 });
  });

  test('envoy has the means 12.5, 37.5, 87.5, 125', () => {
    expect(meansOf({ strategy: 'envoy' }, 6)).toEqual([12.5, 37.5, 87.5, 125, 125, 125]);
    expect(delaysAt(0.5, { strategy: 'envoy' }, 4)).toEqual([12.5, 37.5, 87.5, 125]);
  });

  test("envoy's cap defaults to ten base intervals", () => {
    expect(makeBackOff({ strategy: 'envoy', baseInterval: 100 }).band(9)!.max).toBe(1000);
    expect(makeBackOff({ strategy: 'envoy', baseInterval: 100, maxInterval: 300 }).band(9)!.max).toBe(300);
  });
});

describe('with a memory of the previous delay', () => {
  const spec = { strategy: 'decorrelated-jitter', baseInterval: 100, maxInterval: 20_000 } as const;

  test('decorrelated-jitter has the means 200, 350, 575, 912.5, then about 1418', () => {
    const means = meansOf(spec, 5);
    expect(means.slice(0, 4)).toEqual([200, 350, 575, 912.5]);
    // 1418.75 without the cap, which a few of the longest delays reach.
    expect(means[4]).toBeGreaterThan(1418);
    expect(means[4]).toBeLessThan(1418.75);
  });

  test('decorrelated-jitter draws from the base to three times the previous delay', () => {
    expect(delaysAt(0.5, spec, 5)).toEqual([200, 350, 575, 912.5, 1418.75]);
    expect(delaysAt(0, spec, 3)).toEqual([100, 100, 100]);
    expectSame(delaysAt(ALMOST_ONE, spec, 6), [300, 900, 2700, 8100, 20_000, 20_000]);
  });

  test('the mean of decorrelated-jitter beyond the cap equals the integral', () => {
    // b = 100, cap = 150. s₀ is 150 in 3 of 4 cases, otherwise uniform on [100, 150]; E[s₁ | s] = 150 − 1250 / (3s − 100).
    const exact = 0.75 * (150 - 1250 / 350) + 37.5 - (1250 / 600) * Math.log(350 / 200);
    const mean = makeBackOff({ strategy: 'decorrelated-jitter', baseInterval: 100, maxInterval: 150 }).band(1)!.mean;
    expect(Math.abs(mean - exact)).toBeLessThan(1e-5 * exact);
  });

  test('decorrelated-jitter-v2 has means near 871, 1157, 2080, 4128, 8250', () => {
    const means = meansOf({ strategy: 'decorrelated-jitter-v2', baseInterval: 1000 }, 5);
    for (const [n, published] of [871, 1157, 2080, 4128, 8250].entries()) {
      expect(Math.abs(means[n]! - published)).toBeLessThan(0.0015 * published);
    }
    // The published values are averages of draws. These are ∫g over [n, n + 1] less the previous one, by Simpson's rule.
    const integrals = [871.115716, 1158.146405, 2077.914599, 4127.597881, 8246.44866];
    for (const [n, exact] of integrals.entries()) expect(Math.abs(means[n]! - exact)).toBeLessThan(1e-5 * exact);
  });

  test('decorrelated-jitter-v2 waits for the increment of one smooth curve', () => {
    // g(t) = 2^t · tanh √(4t) at t = 0, 1, 2, 3 and at 0.5, 1.5, 2.5, 3.5, 4.5; differences × 1000 / 1.4.
    const v2 = { strategy: 'decorrelated-jitter-v2', baseInterval: 1000 } as const;
    expectSame(delaysAt(0, v2, 4), [0, 1377.1822572511671, 1460.0673010513165, 2865.849862258655]);
    expectSame(
      delaysAt(0.5, v2, 5),
      [897.4049355792, 1093.0035473816793, 2035.7479626216334, 4045.9794227837556, 8083.631609820252],
    );
  });

  test('decorrelated-jitter-v2 stops at the cap, even where 2^t overflows a double', () => {
    const v2 = makeBackOff({ strategy: 'decorrelated-jitter-v2', baseInterval: 1000, maxInterval: 5000 });
    expect(v2.next(4, 0, () => 0.9)!.delay).toBe(5000);
    expect(v2.next(2000, Infinity, () => 0.5)!.delay).toBe(5000);
  });

  test.each([1000, 1500, 3000, 1e9])(
    'waits of decorrelated-jitter-v2 up to %d ms sum to the range of the random draws',
    (cap) => {
      const v2 = makeBackOff({ strategy: 'decorrelated-jitter-v2', baseInterval: 1000, maxInterval: cap });
      const { min, max } = v2.sumRange(4)!;
      const chances = Array.from({ length: 17 }, (_, i) => i / 16);
      const sums = chances.flatMap((a) =>
        chances.flatMap((b) => chances.flatMap((c) => chances.map((d) => sumAt(v2, [a, b, c, d])))),
      );
      const least = sums.reduce((one, other) => Math.min(one, other));
      const most = sums.reduce((one, other) => Math.max(one, other));
      expect(Math.abs(least - min)).toBeLessThan(1e-6);
      expect(most).toBeLessThan(max + 1e-6);
      // The longest may lie between the points tried.
      expect(most).toBeGreaterThan(0.98 * max);
    },
  );

  test('the bounds of the other waits add up', () => {
    for (const strategy of strategyNames) {
      expect(makeBackOff({ strategy }).sumRange(4) === undefined, strategy).toBe(strategy !== 'decorrelated-jitter-v2');
    }
  });

  test('the sum of very many waits of decorrelated-jitter-v2 is finite', () => {
    const { min, max } = makeBackOff({ strategy: 'decorrelated-jitter-v2' }).sumRange(3000)!;
    expect(Number.isFinite(min)).toBe(true);
    expect(min).toBeLessThan(max);
    expect(max).toBeLessThan(3000 * 20_000);
    expect(makeBackOff({ strategy: 'decorrelated-jitter-v2', baseInterval: 0 }).sumRange(5)).toEqual({
      min: 0,
      max: 0,
    });
  });

  test('memory that another strategy left has no effect', () => {
    expect(makeBackOff(spec).next(3, Infinity, () => 0)!.delay).toBe(100);
    expect(makeBackOff({ strategy: 'decorrelated-jitter-v2' }).next(1, 1e9, () => 0.5)!.delay).toBe(0);
  });

  test('a strategy without memory returns the memory that it received', () => {
    expect(makeBackOff({ strategy: 'full-jitter' }).next(0, 1234, () => 0.5)).toEqual({ delay: 50, memory: 1234 });
  });
});

describe('with delays in whole slots', () => {
  const SLOT = 0.0512;

  test('ethernet expects (2^c − 1) / 2 slots of 51.2 µs', () => {
    expectSame(
      meansOf({ strategy: 'ethernet' }, 4),
      [0.5, 1.5, 3.5, 7.5].map((count) => count * SLOT),
    );
    expectSame(
      delaysAt(0.5, { strategy: 'ethernet' }, 4),
      [1, 2, 4, 8].map((count) => count * SLOT),
    );
  });

  test('ethernet waits at most 1023 slots', () => {
    const longest = delaysAt(ALMOST_ONE, { strategy: 'ethernet' }, 99);
    expect(longest[8]).toBeCloseTo(511 * SLOT, 10);
    for (const delay of longest.slice(9)) expect(delay).toBeCloseTo(52.3776, 10);
  });

  test('ethernet gives up after 16 attempts: 15 waits', () => {
    const backOff = makeBackOff({ strategy: 'ethernet' });
    expect(delaysAt(0, { strategy: 'ethernet' }, 99)).toHaveLength(15);
    expect(backOff.next(15, 0, () => 0)).toBeUndefined();
    expect(backOff.band(15)).toBeUndefined();
  });

  test("table draws from Lam's 1, 10, 100, 200 slots, the last repeated", () => {
    expect(delaysAt(ALMOST_ONE, { strategy: 'table' }, 5)).toEqual([1, 10, 100, 200, 200]);
    expect(delaysAt(0, { strategy: 'table' }, 5)).toEqual([1, 1, 1, 1, 1]);
    expect(meansOf({ strategy: 'table' }, 5)).toEqual([1, 5.5, 50.5, 100.5, 100.5]);
  });

  test('table takes other lists and slots, and never gives up', () => {
    const spec = { strategy: 'table', table: [2, 8], slot: 50 } as const;
    expect(delaysAt(ALMOST_ONE, spec, 3)).toEqual([100, 400, 400]);
    expect(makeBackOff(spec).retries).toBe(Infinity);
  });

  test('celery clamps before the jitter: at the maximum every delay from 0 to 60 is equally likely', () => {
    const backOff = makeBackOff({ strategy: 'celery', baseInterval: 1, maxInterval: 60 });
    const draws = 61 * 100;
    const counts = new Map<number, number>();
    for (let i = 0; i < draws; i += 1) {
      const { delay } = backOff.next(8, 0, () => (i + 0.5) / draws)!;
      counts.set(delay, (counts.get(delay) ?? 0) + 1);
    }
    expect(counts.get(60)! / draws).toBe(1 / 61);
    expect([...counts.keys()]).toEqual(Array.from({ length: 61 }, (_, delay) => delay));
    expect(new Set(counts.values())).toEqual(new Set([100]));
  });

  test('celery doubles the range', () => {
    const spec = { strategy: 'celery', baseInterval: 1, maxInterval: 60 } as const;
    expect(delaysAt(ALMOST_ONE, spec, 8)).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    expect(meansOf(spec, 8)).toEqual([0.5, 1, 2, 4, 8, 16, 30, 30]);
  });
});

describe('the registry', () => {
  test('contains every published strategy by its name', () => {
    expect(strategyNames.join(' ')).toBe(
      'fixed random linear polynomial fibonacci exponential exponential-jitter additive-jitter full-jitter ' +
        'equal-jitter decorrelated-jitter decorrelated-jitter-v2 ethernet celery jpillora sip doubling table grpc envoy',
    );
    expect(isStrategyName('grpc')).toBe(true);
    expect(isStrategyName('toString')).toBe(false);
  });

  test.each(strategyNames)('%s has a name, source, formula and options', (strategy) => {
    const { summary, formula, source, defaults } = strategies[strategy];
    const backOff = makeBackOff({ strategy });
    expect(backOff.name).toBe(strategy);
    expect(backOff.options).toEqual(defaults);
    for (const line of [summary, formula, source]) expect(line).not.toBe('');
  });

  test('the default of the configuration is full-jitter, 100 ms doubling to 20 s', () => {
    expect(strategies['full-jitter'].defaults).toEqual({ baseInterval: 100, multiplier: 2, maxInterval: 20_000 });
  });

  test('an undefined option has its default, and an unused one is ignored', () => {
    const backOff = makeBackOff({ strategy: 'linear', baseInterval: undefined, maxInterval: 150, jitter: 1 });
    expect(backOff.options).toEqual({ baseInterval: 100, maxInterval: 150 });
  });
});

describe('at extreme options', () => {
  test.each(strategyNames)(
    '%s is finite at retry 2³¹ with the largest options, whatever the random draw',
    (strategy) => {
      const longest = Number.MAX_SAFE_INTEGER;
      const backOff = makeBackOff({
        strategy,
        baseInterval: 1,
        multiplier: Number.MAX_VALUE,
        maxInterval: longest,
        jitter: 1,
        jitterInterval: longest,
        exponent: Number.MAX_VALUE,
        table: [longest],
        slot: longest,
      });
      const n = Math.min(2 ** 31, backOff.retries - 1);
      const { max } = backOff.band(n)!;
      for (const u of [0, 0.5, ALMOST_ONE]) {
        const { delay } = backOff.next(n, 0, () => u)!;
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(max);
      }
      expect(max).toBeLessThan(Infinity);
    },
  );

  test.each(['exponential', 'jpillora', 'celery', 'envoy', 'decorrelated-jitter', 'decorrelated-jitter-v2'] as const)(
    '%s with a base of 0 waits 0 before every retry',
    (strategy) => {
      const backOff = makeBackOff({ strategy, baseInterval: 0 });
      expect(backOff.band(5000)).toEqual({ min: 0, mean: 0, max: 0 });
      expect(backOff.next(5000, 0, () => 0.5)!.delay).toBe(0);
    },
  );

  test('the mean is no less than the base interval where rounding would make it so', () => {
    const close = { baseInterval: 378.8564754245129, maxInterval: 378.85647542451295 };
    const { min, mean } = makeBackOff({ strategy: 'decorrelated-jitter', ...close }).band(0)!;
    expect(mean).toBeGreaterThanOrEqual(min);
  });

  test('a cap equal to the base interval applies from the first delay on', () => {
    const capped = { baseInterval: 100, maxInterval: 100 };
    expect(makeBackOff({ strategy: 'decorrelated-jitter', ...capped }).band(0)).toEqual({
      min: 100,
      mean: 100,
      max: 100,
    });
    expect(makeBackOff({ strategy: 'jpillora', ...capped }).band(9)).toEqual({ min: 100, mean: 100, max: 100 });
  });
});

describe('an impossible option is rejected by name', () => {
  const impossible: readonly (BackOffOptions & { option: string })[] = [
    { option: 'baseInterval', baseInterval: -1 },
    { option: 'baseInterval', baseInterval: Number.NaN },
    { option: 'baseInterval', baseInterval: Infinity },
    { option: 'multiplier', multiplier: 0.99 },
    { option: 'multiplier', multiplier: Infinity },
    { option: 'maxInterval', maxInterval: -1 },
    { option: 'maxInterval', maxInterval: 99 },
    { option: 'jitter', jitter: 1.01 },
    { option: 'jitter', jitter: -0.01 },
    { option: 'jitterInterval', jitterInterval: -1 },
    { option: 'exponent', exponent: -1 },
    { option: 'slot', slot: -1 },
    { option: 'table', table: [] },
    { option: 'table', table: [1, 0] },
    { option: 'table', table: [1.5] },
  ];

  test.each(impossible)('$option: %o', ({ option, ...options }) => {
    const make = () => makeBackOff({ strategy: 'full-jitter', ...options });
    expect(make).toThrow(BackOffOptionError);
    expect(make).toThrow(expect.objectContaining({ option }));
    expect(make).toThrow(`${option} must be `);
  });

  test('doubling with a base of 0, which would never end, is rejected', () => {
    expect(() => makeBackOff({ strategy: 'doubling', baseInterval: 0 })).toThrow(
      expect.objectContaining({ option: 'baseInterval' }),
    );
  });

  test('the message states the requirement and the value', () => {
    expect(() => makeBackOff({ strategy: 'grpc', jitter: 1.5 })).toThrow('jitter must be from 0 to 1, not 1.5');
    expect(() => makeBackOff({ strategy: 'table', table: [1, 0] })).toThrow(
      'table must be a list of whole numbers from 1, not [1, 0]',
    );
    expect(() => makeBackOff({ strategy: 'sip', maxInterval: 100 })).toThrow(
      'maxInterval must be at least baseInterval (500), not 100',
    );
  });
});
