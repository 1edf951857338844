/** Clients that disconnect: with a timeout, at random, or because another request was answered first. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { ClientTimeouts } from '../../src/core/exchange/client-timeouts.ts';
import type { Millis, Random } from '../../src/core/scalars.ts';
import { runScenario } from '../../src/simulator/run-scenario.ts';
import { compileScenario } from '../../src/simulator/scenario-file/compile-scenario.ts';
import type { ClientGroup } from '../../src/simulator/scenario.ts';
import { UPSTREAM_NAME } from '../../src/simulator/scenario.ts';
import type { SimulationReport } from '../../src/simulator/report/simulation-report.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { loadLibraryScenario, missedGoals, runLibraryScenario } from '../support/core/scenario-library.ts';

const SEEDS = [1, 2, 3];

describe('clients with a timeout shorter than that of the proxy', () => {
  test.each([
    ['clients-leave', 150],
    ['clients-leave-two-workers', 1000],
  ] as const)('%s: the service works for those that still wait', (name, longestWait) => {
    let [abandoned, sends] = [0, 0];
    for (const seed of SEEDS) {
      const result = runLibraryScenario(name, seed);
      expect(missedGoals(result)).toEqual([]);
      const { counts, upstreamWait } = result.report;
      abandoned += counts.abandoned;
      sends += counts.sends;
      expect(upstreamWait.p99).toBeLessThan(longestWait);
    }
    expect(abandoned / sends).toBeLessThan(0.02);
  });

  test.each([
    ['workers', { replicas: 3, lease: 1 }],
    ['replicas', { replicas: 3, pool: 2 }],
  ])('and so it does with three %s, which share what they learn', (_, sharing) => {
    for (const seed of SEEDS) {
      const { report } = runLibraryScenario('clients-leave', seed, sharing);
      expect(report.goodput).toBeGreaterThan(0.9);
    }
  });
});

/** Of the service: 8 workers of 50 ms. */
const CAPACITY = 160;
const LATENCY: Millis = 50;

interface Group {
  readonly name: string;
  readonly count: number;
  readonly patience?: (random: Random) => Millis;
}

/** @param load the demand of all ten clients ÷ the capacity */
function run(groups: readonly Group[], load: number, seed: number): SimulationReport {
  const config = loadLibraryScenario('slow-service');
  const scenario = compileScenario('clients', { ...config, duration: 80_000 });
  const [usual] = scenario.clients;
  if (usual === undefined) throw new Error('no clients');
  const clients = groups.map((group): ClientGroup => ({ ...usual, ...group, rate: (load * CAPACITY) / 10 }));
  const upstreams = [{ name: UPSTREAM_NAME, ...scenario.policy }];
  return runScenario({
    scenario: { ...scenario, clients },
    seed,
    makeStore: (_, random, listen) => new MemoryStore({ upstreams, maxTracked: 100, random, listen }),
  });
}

const PATIENT = { name: 'patient', count: 9 };
const waitsFor = (patience: Millis): Group => ({ name: 'impatient', count: 1, patience: () => patience });

afterEach(() => void vi.restoreAllMocks());

/** Successes of the first group ÷ the same if nothing is learned from requests that clients abandon. */
function gain(groups: readonly Group[], load: number): number {
  const successes = (): number =>
    SEEDS.reduce((sum, seed) => sum + (run(groups, load, seed).groups[0]?.successes ?? 0), 0);
  const learned = successes();
  const spy = vi.spyOn(ClientTimeouts.prototype, 'onAbandoned').mockReturnValue(false);
  const ignored = successes();
  spy.mockRestore();
  return learned / ignored;
}

describe.each([0.7, 2])('at %f times the capacity', (load) => {
  test.each<[string, readonly Group[]]>([
    [
      'users who leave at random before the usual latency',
      [{ name: 'users', count: 10, patience: (random) => (random() < 0.3 ? random() * LATENCY : Infinity) }],
    ],
    [
      'hedged requests, of which the slower one is abandoned',
      [
        {
          name: 'hedging',
          count: 10,
          patience: (random) => (random() < 0.5 ? LATENCY * (0.4 + 1.2 * random()) : Infinity),
        },
      ],
    ],
    ['nine patient clients beside one that never waits for a usual response', [PATIENT, waitsFor(0.4 * LATENCY)]],
    ['nine patient clients beside one that waits for about a usual response', [PATIENT, waitsFor(LATENCY)]],
    ['nine patient clients beside one that often waits long enough', [PATIENT, waitsFor(2.4 * LATENCY)]],
  ])('%s lose nothing', (_, groups) => {
    expect(gain(groups, load)).toBeGreaterThan(0.99);
  });
});
