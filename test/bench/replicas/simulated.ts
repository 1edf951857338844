import { compileScenario } from '../../../src/simulator/scenario-file/compile-scenario.ts';
import { runScenario } from '../../../src/simulator/run-scenario.ts';
import { makeSimulatedPool } from '../../../src/simulator/sharing/simulated-pool.ts';
import { loadLibraryScenario } from '../../support/core/scenario-library.ts';

export interface SimulatedPool {
  readonly count: number;
  readonly limit: number;
  readonly goodput: number;
  readonly waste: number;
  /** Calls a second of all replicas. */
  readonly calls: number;
  readonly news: number;
}

/** One-way latency within one network, in milliseconds. */
const LATENCY = 0.3;

/** Simulates replicas that share a limit with the code of the Redis script; the first third is not counted. */
export function simulatePool(count: number, limit: number, seconds: number): SimulatedPool {
  const library = loadLibraryScenario('replicas-100-pool');
  const [group] = library.clients;
  if (group === undefined) throw new Error('the scenario has no clients');
  const duration = 1000 * seconds;
  const scenario = compileScenario('replicas', {
    ...library,
    duration,
    warmup: duration / 3,
    replicas: count,
    clients: [{ ...group, count: Math.max(10, count), total: 2 * limit }],
    upstream: { ...library.upstream, limit: { kind: 'token-bucket', rate: limit, burst: Math.ceil(limit / 10) } },
  });
  const { pool: _, tally, ...parts } = makeSimulatedPool(scenario, { maxTracked: 10_000, latency: LATENCY });
  const { goodput, waste } = runScenario({ scenario, seed: 1, ...parts });
  return { count, limit, goodput, waste, calls: tally.calls / seconds, news: tally.announcements / seconds };
}
