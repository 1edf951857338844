import { describe, expect, test } from 'vitest';
import { compareChannels } from '../../../src/laboratory/aloha/compare-channels.ts';
import {
  findEquilibria,
  isStableAtEveryLoad,
  largestStableUsers,
  smallestStableSpread,
} from '../../../src/laboratory/aloha/equilibria.ts';
import { solveLamChain } from '../../../src/laboratory/aloha/lam-chain.ts';
import type { Retransmission } from '../../../src/laboratory/aloha/retransmission.ts';
import {
  retransmitWithProbability,
  retransmitByStrategy,
  retransmitByTable,
  RCP,
} from '../../../src/laboratory/aloha/retransmission.ts';
import { SlottedChannel } from '../../../src/laboratory/aloha/slotted-channel.ts';
import { simulateThroughput } from '../../../src/laboratory/aloha/aloha-throughput.ts';
import { runToCompletion } from '../../../src/laboratory/experiment.ts';
import { studyLamChain } from '../../../src/laboratory/commands/lam-chain-study.ts';
import { makeBackOff } from '../../../src/core/backoff/strategies.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

/** Stationary values, exact to the last digit. */
const CHAINS = [
  { users: 50, spread: 60, load: 0.3, throughput: 0.27427, backlog: 4.289, delay: 16.64 },
  { users: 400, spread: 200, load: 0.3, throughput: 0.28749, backlog: 16.677, delay: 59.01 },
  { users: 400, spread: 200, load: 0.36, throughput: 0.33355, backlog: 29.393, delay: 89.12 },
] as const;

/** Truncated binary exponential backoff as in Ethernet, but without an end: K = 2^min(c, 10) after collision c. */
const BINARY = Array.from({ length: 10 }, (_, i) => 2 ** (i + 1));

describe('the throughput of an offered load', () => {
  const rows = runToCompletion(simulateThroughput({ attempts: [0.25, 0.5, 1, 2], slots: 1_000_000, seed: 1 }));

  test('has its maxima at 1/(2e) and 1/e', () => {
    expect(rows[1]?.pure).toBeCloseTo(0.18394, 6);
    expect(rows[2]?.slotted).toBeCloseTo(0.367879, 6);
  });

  test.each([0, 1, 2, 3])('is equal in simulation and computation: row %i', (index) => {
    const row = rows[index]!;
    expect(Math.abs(row.pureSimulated - row.pure)).toBeLessThan(0.002);
    expect(Math.abs(row.slottedSimulated - row.slotted)).toBeLessThan(0.002);
  });
});

describe("Lam's chain", () => {
  test.each(CHAINS)(
    'has the exact stationary values for N = $users, K = $spread, load $load',
    ({ throughput, backlog, delay, ...channel }) => {
      const solved = solveLamChain(channel);
      expect(Math.abs(solved.throughput - throughput)).toBeLessThan(1e-5);
      expect(Math.abs(solved.backlog - backlog)).toBeLessThan(1e-3);
      expect(Math.abs(solved.delay - delay)).toBeLessThan(1e-2);
    },
  );

  test('of one user succeeds each time', () => {
    const { throughput, backlog, delay } = solveLamChain({ users: 1, spread: 10, load: 0.25 });
    expect(throughput).toBeCloseTo(0.25, 12);
    expect(backlog).toBe(0);
    expect(delay).toBe(1);
  });

  test('of two users who always send matches the solution by hand', () => {
    // Both collide at once, and then each resends with p = 1/2: one that succeeds has its next packet at once, so this never
    // ends.
    const { distribution, throughput } = solveLamChain({ users: 2, spread: 3, load: 2 });
    // From 2: one succeeds with 1/2 → 1. From 1: the other's new packet meets a retry with 1/2 → 2, otherwise it succeeds
    // and the state stays.
    expect([...distribution]).toEqual([0, 0.5, 0.5].map((each) => expect.closeTo(each, 12) as number));
    expect(throughput).toBeCloseTo(0.5, 12);
  });

  test('with a load that leaves no slot silent equals one in which all users send', () => {
    // (1 − σ)^N underflows a double.
    for (const load of [399, 399.999, 400]) {
      const { throughput, backlog } = solveLamChain({ users: 400, spread: 200, load });
      expect(throughput).toBeCloseTo(0.0698, 3);
      expect(backlog).toBeCloseTo(399.93, 2);
    }
  });

  test('has probabilities that sum to 1, however different they are', () => {
    for (const spread of [1, 10, 100, 1000]) {
      const { distribution } = solveLamChain({ users: 400, spread, load: 0.34 });
      expect([...distribution].reduce((a, b) => a + b)).toBeCloseTo(1, 12);
      expect(distribution.every((chance) => chance >= 0)).toBe(true);
    }
  });

  test('collapses if packets are resent too soon', () => {
    const { throughput, backlog } = solveLamChain({ users: 400, spread: 10, load: 0.34 });
    expect(throughput).toBeLessThan(1e-20);
    expect(backlog).toBeGreaterThan(399);
  });
});

describe('equilibria', () => {
  test('are one at K = 200 for 400 users at every load, and three at K = 100', () => {
    for (const load of [0.1, 0.3, 0.36, 0.47, 1, 10]) {
      expect(findEquilibria({ users: 400, spread: 200, load })).toHaveLength(1);
    }
    const three = findEquilibria({ users: 400, spread: 100, load: 0.34 });
    expect(three.map(({ stable }) => stable)).toEqual([true, false, true]);
  });

  test('have equal arrivals and throughput', () => {
    for (const { backlog, throughput } of findEquilibria({ users: 400, spread: 100, load: 0.34 })) {
      expect(((400 - backlog) * 0.34) / 400).toBeCloseTo(throughput, 9);
    }
  });

  test('are single up to N = 2K, where a load line almost touches the curve at G = 2', () => {
    for (const spread of [2, 3, 20, 60, 200, 1000]) {
      const most = largestStableUsers(spread);
      expect(most).toBe(2 * spread);
      expect(isStableAtEveryLoad({ users: most, spread })).toBe(true);
      expect(isStableAtEveryLoad({ users: most + 1, spread })).toBe(false);
    }
  });

  test('are three for 401 users at K = 200 in a narrow range of loads, and one for 400', () => {
    expect(largestStableUsers(200)).toBe(400);
    const at = (load: number) => findEquilibria({ users: 401, spread: 200, load });
    expect(at(0.4777).map(({ stable }) => stable)).toEqual([true, false, true]);
    expect([at(0.4776), at(0.4778)].map((each) => each.length)).toEqual([1, 1]);
    expect(findEquilibria({ users: 400, spread: 200, load: 0.4777 })).toHaveLength(1);
  });

  test('are not found in that range by a hundred loads from 0.1 to 1, up to N = 405', () => {
    const loads = Array.from({ length: 100 }, (_, i) => 0.1 + (i * 0.9) / 99);
    const looksStable = (users: number): boolean =>
      loads.every((load) => findEquilibria({ users, spread: 200, load }).length === 1);
    expect([400, 401, 402, 403, 404, 405, 406].map(looksStable)).toEqual([true, true, true, true, true, true, false]);
  });

  test('have no throughput with K = 1, except for a single user', () => {
    for (const users of [2, 3, 400]) {
      const channel = { users, spread: 1, load: 0.3 };
      expect(findEquilibria(channel)).toEqual([{ backlog: users, throughput: 0, stable: true }]);
      expect(solveLamChain(channel)).toMatchObject({ throughput: 0, backlog: users, delay: Number.POSITIVE_INFINITY });
      expect(smallestStableSpread(channel)).toBeGreaterThan(1);
    }
    expect(findEquilibria({ users: 1, spread: 1, load: 0.3 })).toEqual([{ backlog: 0, throughput: 0.3, stable: true }]);
    expect(largestStableUsers(1)).toBe(1);
  });

  test('have a throughput between 0 and 1, even if all users send at once', () => {
    for (const users of [2, 5, 400]) {
      for (const load of [0.99 * users, users]) {
        for (const { throughput, backlog } of findEquilibria({ users, spread: 2, load })) {
          expect(throughput).toBeGreaterThanOrEqual(0);
          expect(throughput).toBeLessThanOrEqual(1);
          expect(((users - backlog) * load) / users).toBeCloseTo(throughput, 9);
        }
      }
    }
  });

  test('have a smallest K even if only a few values are neither too small nor too large', () => {
    for (const [users, load] of [
      [60, 0.73],
      [28, 0.75],
      [12, 0.77],
      [5, 0.82],
      [3, 0.89],
    ] as const) {
      const isStableAt = (spread: number): boolean => {
        const [only, ...others] = findEquilibria({ users, spread, load });
        return others.length === 0 && only !== undefined && only.backlog < users / 2;
      };
      const first = Array.from({ length: 100 }, (_, i) => i + 1).find(isStableAt);
      expect(first).toBeDefined();
      expect(smallestStableSpread({ users, load })).toBe(first);
    }
    expect(smallestStableSpread({ users: 50, load: 0.9 })).toBeUndefined();
  });

  test('are one at the smallest K, and three at the next smaller', () => {
    const spread = smallestStableSpread({ users: 400, load: 0.34 });
    expect(spread).toBeDefined();
    expect(findEquilibria({ users: 400, spread: spread!, load: 0.34 })).toHaveLength(1);
    expect(findEquilibria({ users: 400, spread: spread! - 1, load: 0.34 })).toHaveLength(3);
    expect(smallestStableSpread({ users: 1, load: 0.3 })).toBe(1);
  });
});

describe('a table of retransmission', () => {
  const TABLE = [3, 10, 100];

  test('gives the same slots as the strategy of that name: its first entry is for the first retry', () => {
    const [retransmission, strategy] = [retransmitByTable(TABLE), makeBackOff({ strategy: 'table', table: TABLE })];
    for (let retry = 0; retry < 5; retry += 1) {
      for (const u of [0, 0.5, 0.999]) {
        expect(retransmission.next(retry, 0, () => u)?.slots).toBe(strategy.next(retry, 0, () => u)?.delay);
      }
    }
  });

  test('may have slots of another length, and never resends in the slot of the collision', () => {
    const slots = (length: number, u: number) => retransmitByTable(TABLE, length).next(0, 0, () => u)?.slots;
    expect([slots(2.5, 0), slots(2.5, 0.999)]).toEqual([3, 8]);
    expect([slots(0, 0), slots(0.1, 0)]).toEqual([1, 1]);
  });
});

describe('a simulated channel', () => {
  function simulate(users: number, load: number, retransmission: Retransmission, slots = 1_500_000, seed = 1) {
    const channel = new SlottedChannel({ users, load, retransmission, random: seededRandom(seed) });
    channel.run(slots / 10);
    channel.reset();
    channel.run(slots);
    return channel.figures();
  }

  test.each(CHAINS)(
    'matches its chain: N = $users, K = $spread, load $load',
    ({ users, spread, load, throughput, delay }) => {
      for (const retransmission of [retransmitWithProbability(spread), retransmitByTable([spread])]) {
        const figures = simulate(users, load, retransmission);
        expect(Math.abs(figures.throughput - throughput)).toBeLessThan(0.002);
        expect(Math.abs(figures.delay / delay - 1)).toBeLessThan(0.03);
      }
    },
  );

  /**
   * S and D of N = 400 at load 0.34, as published for Lam's procedure, truncated binary exponential backoff and a fixed K.
   * The simulated values are means of eight runs of a million slots: D has a standard error of 0.3 %, and of 0.8 % for binary
   * backoff, whose waits differ most.
   */
  test.each([
    { name: "Lam's procedure", retransmission: retransmitByTable(RCP), throughput: 0.329, delay: 38 },
    { name: 'a fixed K of 200', retransmission: retransmitByTable([200]), throughput: 0.319, delay: 77 },
    { name: 'truncated binary backoff', retransmission: retransmitByTable(BINARY), throughput: 0.319, delay: 80 },
  ])('has the published figures for 400 users with $name', ({ retransmission, throughput, delay }) => {
    const seeds = [1, 2, 3, 4, 5, 6, 7, 8];
    const figures = seeds.map((seed) => simulate(400, 0.34, retransmission, 1_000_000, seed));
    const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b) / values.length;
    expect(Math.abs(mean(figures.map((each) => each.throughput)) - throughput)).toBeLessThan(0.002);
    expect(Math.abs(mean(figures.map((each) => each.delay)) / delay - 1)).toBeLessThan(0.03);
  });

  test("with Ethernet's strategy drops packets of 400 users, and delays the others less", () => {
    const binary = simulate(400, 0.34, retransmitByTable(BINARY), 1_000_000);
    const ethernet = simulate(
      400,
      0.34,
      retransmitByStrategy(makeBackOff({ strategy: 'ethernet', slot: 1 })),
      1_000_000,
    );
    expect(binary.dropped).toBe(0);
    expect(ethernet.dropped).toBeGreaterThan(100);
    expect(ethernet.delay).toBeLessThan(binary.delay);
  });

  test('with a fixed K of 10 collapses, and reports it', () => {
    const settings = {
      users: 400,
      load: 0.34,
      retransmissions: [retransmitByTable([10]), retransmitByTable([200])],
      slots: 100_000,
      seed: 1,
    };
    const [collapsed, stable] = runToCompletion(compareChannels(settings));
    expect(collapsed).toMatchObject({ collapsed: true, throughput: 0, delay: Number.POSITIVE_INFINITY });
    expect(stable).toMatchObject({ collapsed: false });
  });

  test('with K = 1 and users who all send collides forever, and counts packets that give up', () => {
    const forever = simulate(2, 2, retransmitByTable([1]), 1000);
    expect(forever).toMatchObject({ throughput: 0, backlog: 2 });
    const { dropped } = simulate(
      2,
      2,
      retransmitByStrategy(makeBackOff({ strategy: 'doubling', baseInterval: 1, maxInterval: 1 })),
      1000,
    );
    expect(dropped).toBeGreaterThan(100);
  });

  test('with a load that leaves no slot silent starts the expected number of packets', () => {
    const [users, load] = [5000, 1000];
    const channel = new SlottedChannel({
      users,
      load,
      retransmission: retransmitByTable([1e6]),
      random: seededRandom(1),
    });
    channel.run(2);
    // The packets of the first slot, counted at the beginning of the second.
    const begun = 2 * channel.figures().backlog;
    // Binomial with a standard deviation of 28.
    expect(Math.abs(begun - load)).toBeLessThan(150);
  });

  test('supports delays that are longer than its timer wheel', () => {
    const figures = simulate(2, 2, { name: 'far', next: () => ({ slots: 10_000, memory: 0 }) }, 100_000);
    expect(figures).toMatchObject({ throughput: 0, backlog: 2 });
  });
});

test('tidegate lab aloha --n --k --load prints its figures as JSON', () => {
  const { json } = studyLamChain({ users: 400, spread: 200, load: 0.3 });
  expect(json).toEqual({
    throughput: expect.closeTo(0.28749, 4) as number,
    backlog: expect.closeTo(16.677, 3) as number,
    delay: expect.closeTo(59.01, 2) as number,
    equilibria: [
      { backlog: expect.closeTo(16.29, 2) as number, throughput: expect.closeTo(0.28779, 4) as number, stable: true },
    ],
    largestN: 400,
    smallestK: 154,
  });
});

test('the smallest K is null for a load that no K keeps stable', () => {
  expect(studyLamChain({ users: 400, spread: 200, load: 0.9 }).json).toMatchObject({ largestN: 400, smallestK: null });
});

test('a collapsed chain is reported', () => {
  const ofOne = studyLamChain({ users: 400, spread: 1, load: 0.3 });
  expect(ofOne.json).toMatchObject({ throughput: 0, backlog: 400, delay: null });
  expect(ofOne.text).toContain('One stable point, with almost no throughput: the channel has collapsed.\n');
  expect(ofOne.text).toContain('K = 1 is enough for 1 user at every load.\n');
  for (const { text } of [
    ofOne,
    studyLamChain({ users: 2, spread: 2, load: 2 }),
    studyLamChain({ users: 1, spread: 1, load: 1 }),
  ]) {
    expect(text).not.toMatch(/Infinity|NaN|\b1 users|\b1 slots/);
  }
  expect(studyLamChain({ users: 400, spread: 200, load: 0.3 }).text).toContain('One stable point: the channel returns');
});

test('a drawing of a chain has no gap if all users send at once', () => {
  expect(studyLamChain({ users: 400, spread: 1, load: 400 }).draw()).not.toMatch(/NaN|Infinity/);
  // The curve has as many points as the chain has backlogs.
  const [through] = /class="c0" d="M[^"]*"/.exec(studyLamChain({ users: 400, spread: 2, load: 400 }).draw()) ?? [];
  expect(through?.split('L')).toHaveLength(301);
});
