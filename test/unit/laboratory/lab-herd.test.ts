import { describe, expect, test } from 'vitest';
import { runToCompletion } from '../../../src/laboratory/experiment.ts';
import { compareHerds } from '../../../src/laboratory/herd/compare-herds.ts';
import type { HintPolicyName } from '../../../src/laboratory/herd/hint-policy.ts';
import { HINT_POLICIES, makeHintPolicy } from '../../../src/laboratory/herd/hint-policy.ts';
import type { StrategyName } from '../../../src/core/backoff/strategies.ts';
import { StudyError } from '../../../src/laboratory/commands/study-error.ts';
import { makeStudy } from '../../../src/laboratory/commands/make-study.ts';
import { makeBackOff } from '../../../src/core/backoff/strategies.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

const WORLD = { clients: 500, rate: 100, burst: 10, trials: 1, seed: 1 };
const LEAST = 5000;

function drain(hint: HintPolicyName, strategy?: StrategyName) {
  const name = strategy ?? 'none';
  const backOff = strategy === undefined ? undefined : makeBackOff({ strategy });
  const [row] = runToCompletion(compareHerds({ ...WORLD, hints: [hint], clientStrategies: [{ name, backOff }] }));
  return row!;
}

describe('refused clients that return', () => {
  test('are never served faster than the limit allows', () => {
    for (const hint of HINT_POLICIES) {
      const { drain: took, lastServed, gaveUp, unserved } = drain(hint, 'full-jitter');
      expect(took).toBeGreaterThan(LEAST - 1000 / WORLD.rate - 1);
      expect({ lastServed, gaveUp, unserved }).toEqual({ lastServed: took, gaveUp: 0, unserved: 0 });
    }
  });

  test('with slots of their own are not refused again', () => {
    expect(drain('slots').waste).toBe(0);
    expect(drain('slots').drain).toBeLessThan(1.02 * LEAST);
  });

  test('with whole seconds and no queue are refused again, and a queue absorbs the rounding', () => {
    expect(drain('slots-in-seconds').waste).toBeGreaterThan(1);
    const queued = drain('slots-and-queue');
    expect(queued.waste).toBe(0);
    expect(queued.drain).toBeLessThan(LEAST + 1100);
  });

  test('with one common hint return all at once, and are spread by jitter of their own', () => {
    const together = drain('constant');
    const spread = drain('constant', 'full-jitter');
    expect(together.peak).toBe(WORLD.clients);
    expect(together.waste).toBeGreaterThan(10);
    expect(spread.waste).toBeLessThan(together.waste / 2);
  });

  test('without jitter collide again at each return', () => {
    expect(drain('none', 'exponential').waste).toBeGreaterThan(10);
  });

  test('that give up have not drained, and are reported apart from those that still wait', () => {
    const left = drain('none', 'doubling');
    expect(left).toMatchObject({ drain: undefined, unserved: 0 });
    expect(left.gaveUp).toBeGreaterThan(0);
    expect(left.gaveUp).toBeLessThan(WORLD.clients);
    expect(left.lastServed).toBeGreaterThan(LEAST);
    // Ten at a time, 20 s apart: the limit could have served all in 5 s, but a hundred times that is not enough.
    const waiting = drain('none', 'exponential');
    expect(waiting).toMatchObject({ drain: undefined, gaveUp: 0 });
    expect(waiting.unserved).toBeGreaterThan(0);
    expect(waiting.lastServed).toBeLessThanOrEqual(100 * LEAST);
    expect(waiting.p99).toBeLessThanOrEqual(waiting.lastServed);
  });

  test('are reported in a table', () => {
    const study = { study: 'thundering-herd', clients: 200, rate: 100, burst: 10, trials: 1 } as const;
    const reportOf = (...strategies: readonly StrategyName[]): string =>
      runToCompletion(makeStudy({ ...study, strategies, options: {} }, 1, { env: {}, readFile: () => '' })).text;
    const left = reportOf('doubling');
    expect(left).toMatch(/^ {2}none +2\.\d+s +2\.\d+s .* 0 +0$/m);
    expect(left).toMatch(/^ {2}doubling +– +1\d\d(?:\.\d)?s .* [1-9]\d+ +0$/m);
    expect(reportOf('full-jitter')).not.toContain('gave up');
  });

  test('return at the same times for equal seeds', () => {
    expect(drain('none', 'full-jitter')).toEqual(drain('none', 'full-jitter'));
  });
});

describe('a run at the limits of its settings', () => {
  const study = { study: 'thundering-herd', burst: 10, trials: 1, strategies: [], options: {} } as const;
  const surroundings = { env: {}, readFile: () => '' };

  test('is rejected if clients without a backoff would send for days', () => {
    const herd = (clients: number, rate: number) => () => makeStudy({ ...study, clients, rate }, 1, surroundings);
    expect(herd(1_000_000, 100)).toThrow(
      '1000000 clients without a backoff would send 2.5e+11 requests at a limit of 100/s: use fewer clients (--n) or a higher --limit',
    );
    expect(herd(1000, 1 / 36_000_000)).toThrow(StudyError);
    expect(herd(50_000, 100)).not.toThrow();
  });

  test('has time for a first wait if the limit is beyond any client', () => {
    const { drain: took, unserved } = runToCompletion(
      compareHerds({
        ...WORLD,
        rate: 1e9,
        hints: ['none'],
        clientStrategies: [{ name: 'sip', backOff: makeBackOff({ strategy: 'sip' }) }],
      }),
    )[0]!;
    expect(unserved).toBe(0);
    expect(took).toBeGreaterThan(500);
  });

  test('has no time of service if no client is served', () => {
    const options = { baseInterval: 3_600_000 };
    const { text } = runToCompletion(
      makeStudy({ ...study, clients: 10, rate: 100, strategies: ['fixed'], options }, 1, surroundings),
    );
    expect(text).toMatch(/^ {2}fixed +– +– +0 +– +– +– +0 +10$/m);
  });
});

describe('the wait of a refusal', () => {
  const refused = { now: 0, wait: 10, waiting: 50 };

  test('is one slot after another with slots, and never in the past', () => {
    const slots = makeHintPolicy('slots', 100);
    const random = seededRandom(1);
    expect([slots(refused, random), slots(refused, random), slots(refused, random)]).toEqual([10, 20, 30]);
    expect(slots({ ...refused, now: 1000 }, random)).toBe(10);
  });

  test('is within the time that the limit needs for all waiting clients with full jitter', () => {
    const hint = makeHintPolicy('full-jitter', 100);
    expect(hint(refused, () => 0)).toBe(0);
    expect(hint(refused, () => 0.999)).toBeCloseTo(499.5);
  });

  test('is in whole seconds as a constant, and zero with none', () => {
    expect(makeHintPolicy('constant', 100)(refused, Math.random)).toBe(1000);
    expect(makeHintPolicy('none', 100)(refused, Math.random)).toBe(0);
  });
});
