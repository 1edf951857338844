import { describe, expect, test } from 'vitest';
import { compareContention } from '../../../src/laboratory/contention/compare-contention.ts';
import { runContentionTrial } from '../../../src/laboratory/contention/contention-trial.ts';
import { runToCompletion } from '../../../src/laboratory/experiment.ts';
import { runTrial } from '../../../src/laboratory/trial.ts';
import { makeStudy } from '../../../src/laboratory/commands/make-study.ts';
import { makeBackOff } from '../../../src/core/backoff/strategies.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

interface Row {
  readonly n: number;
  readonly strategy: string;
  readonly calls: number;
  readonly millis: number;
}

describe('the contending clients of "Exponential Backoff And Jitter"', () => {
  const study = { study: 'contention', sizes: [10, 50, 100], trials: 100, strategies: [], options: {} } as const;
  const { rows } = runToCompletion(makeStudy(study, 1, { env: {}, readFile: () => '' })).json as {
    rows: readonly Row[];
  };

  /** Calls and ms of published simulators. */
  test.each([
    [10, 'none', 51, 380],
    [10, 'exponential', 51, 3508],
    [10, 'equal-jitter', 42, 727],
    [10, 'full-jitter', 39, 465],
    [10, 'decorrelated-jitter', 38, 439],
    [50, 'none', 689, 1141],
    [50, 'exponential', 622, 36_407],
    [50, 'equal-jitter', 347, 4292],
    [50, 'full-jitter', 332, 2905],
    [50, 'decorrelated-jitter', 375, 2186],
    [100, 'none', 2426, 2032],
    [100, 'exponential', 1858, 63_422],
    [100, 'equal-jitter', 812, 6613],
    [100, 'full-jitter', 796, 4878],
    [100, 'decorrelated-jitter', 1003, 4651],
  ] as const)('%i clients with %s need %i calls and %i ms', (n, strategy, calls, millis) => {
    const row = rows.find((each) => each.n === n && each.strategy === strategy);
    expect(row).toBeDefined();
    expect(Math.abs(row!.calls / calls - 1)).toBeLessThan(0.03);
    expect(Math.abs(row!.millis / millis - 1)).toBeLessThan(strategy === 'none' ? 0.03 : 0.08);
  });
});

describe('a trial', () => {
  test('of one client has one call and four hops', () => {
    const { calls, millis, gaveUp } = runTrial(
      runContentionTrial({ clients: 1, backOff: undefined, random: seededRandom(1) }),
    );
    expect({ calls, gaveUp }).toEqual({ calls: 1, gaveUp: 0 });
    expect(millis).toBeGreaterThan(4);
    expect(millis).toBeLessThan(80);
  });

  test('of two clients that read before either writes rejects the second write', () => {
    // With constant draws both are at the same place at the same time, and the first one wins.
    const { calls } = runTrial(runContentionTrial({ clients: 2, backOff: undefined, random: () => 0.5 }));
    expect(calls).toBe(3);
  });

  test('counts the clients that give up', () => {
    const backOff = makeBackOff({ strategy: 'doubling', baseInterval: 1, maxInterval: 1 });
    const { gaveUp, calls } = runTrial(runContentionTrial({ clients: 20, backOff, random: seededRandom(1) }));
    expect(gaveUp).toBeGreaterThan(0);
    expect(calls).toBeLessThanOrEqual(40);
  });
});

describe('a comparison', () => {
  const settings = { sizes: [5], clientStrategies: [{ name: 'none', backOff: undefined }], trials: 10 };

  test('is equal for equal seeds, and different for others', () => {
    const of = (seed: number): unknown => runToCompletion(compareContention({ ...settings, seed }));
    expect(of(1)).toEqual(of(1));
    expect(of(2)).not.toEqual(of(1));
  });

  test('has the rows computed so far when it is stopped', () => {
    const experiment = compareContention({ ...settings, sizes: [5, 6, 7], seed: 1 });
    expect(experiment.result()).toEqual([]);
    experiment.step();
    experiment.step();
    expect(experiment.result().map(({ n }) => n)).toEqual([5, 6]);
    expect(experiment.progress).toBeCloseTo(2 / 30);
  });
});
