import { compileScenario } from './scenario-file/compile-scenario.ts';
import type { ScenarioConfig } from './scenario-file/scenario-schema.ts';
import type { Judged } from './report/goals.ts';
import { judge } from './report/goals.ts';
import type { Report } from './report/simulation-report.ts';
import { runScenario } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { UPSTREAM } from './scenario.ts';
import type { WorldParts } from './engine/simulator.ts';
import { poolAmong } from './sharing/simulated-pool.ts';
import { leaseAmong } from './sharing/simulated-leasing.ts';
import { MemoryStore } from '../store/memory-store.ts';
import { shareMeters } from './shared-meters.ts';

/** What came of a scenario, and of its goals. */
export interface Simulated {
  readonly report: Report;
  readonly goals: readonly Judged[];
}

/** Runs a scenario with the proxy's own exchange, gate and memory. @param seed instead of the scenario's own */
export function simulate(name: string, config: ScenarioConfig, seed: number = config.seed): Simulated {
  const scenario = compileScenario(name, config);
  const report = runScenario({ scenario, seed, ...stores(scenario, seed, config.policy.maxTracked) });
  return { report, goals: judge(report, config.goals, lastChange(scenario)) };
}

function stores(scenario: Scenario, seed: number, maxTracked: number): Pick<WorldParts, 'makeStore' | 'connect'> {
  if (scenario.lease !== undefined) return leaseAmong(scenario, seed, { maxTracked, latency: scenario.lease });
  if (scenario.pool !== undefined) return poolAmong(scenario, { maxTracked, latency: scenario.pool });
  const upstreams = [{ name: UPSTREAM, ...scenario.policy }];
  const meters = scenario.shared ? { makeMeter: shareMeters() } : {};
  return { makeStore: (_, random, listen) => new MemoryStore({ upstreams, maxTracked, random, listen, ...meters }) };
}

function lastChange({ upstream: { steps = [], outages = [] }, duration }: Scenario): number {
  const changes = [...steps.map(({ at }) => at), ...outages.map(({ to }) => to)];
  return Math.max(0, ...changes.filter((at) => at < duration));
}
