import { compileScenario } from './scenario-file/compile-scenario.ts';
import type { ScenarioConfig } from './scenario-file/scenario-schema.ts';
import type { GoalResult } from './report/goals.ts';
import { evaluateGoals } from './report/goals.ts';
import type { SimulationReport } from './report/simulation-report.ts';
import { runScenario } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { UPSTREAM_NAME } from './scenario.ts';
import type { SimulatorParts } from './engine/simulator.ts';
import { makeSimulatedPool } from './sharing/simulated-pool.ts';
import { makeSimulatedLeasing } from './sharing/simulated-leasing.ts';
import { MemoryStore } from '../store/memory-store.ts';
import { createSharedMeters } from './shared-meters.ts';

/** The report of a scenario and the results of its goals. */
export interface SimulationResult {
  readonly report: SimulationReport;
  readonly goals: readonly GoalResult[];
}

/** Runs a scenario with the proxy's own exchange, gate and store. @param seed instead of the scenario's own */
export function simulateScenario(name: string, config: ScenarioConfig, seed: number = config.seed): SimulationResult {
  const scenario = compileScenario(name, config);
  const report = runScenario({ scenario, seed, ...makeStores(scenario, seed, config.policy.maxTracked) });
  return { report, goals: evaluateGoals(report, config.goals, lastUpstreamChange(scenario)) };
}

function makeStores(
  scenario: Scenario,
  seed: number,
  maxTracked: number,
): Pick<SimulatorParts, 'makeStore' | 'connect'> {
  if (scenario.leaseLatency !== undefined) {
    return makeSimulatedLeasing(scenario, seed, { maxTracked, latency: scenario.leaseLatency });
  }
  if (scenario.poolLatency !== undefined) {
    return makeSimulatedPool(scenario, { maxTracked, latency: scenario.poolLatency });
  }
  const upstreams = [{ name: UPSTREAM_NAME, ...scenario.policy }];
  const meters = scenario.shared ? { makeMeter: createSharedMeters() } : {};
  return { makeStore: (_, random, listen) => new MemoryStore({ upstreams, maxTracked, random, listen, ...meters }) };
}

function lastUpstreamChange({ upstream: { steps = [], outages = [] }, duration }: Scenario): number {
  const changes = [...steps.map(({ at }) => at), ...outages.map(({ to }) => to)];
  return Math.max(0, ...changes.filter((at) => at < duration));
}
