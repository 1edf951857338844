import { compileScenario } from '../compile/scenario.ts';
import type { ScenarioConfig } from '../config/scenario-schema.ts';
import type { Judged } from '../sim/report/goals.ts';
import { judge } from '../sim/report/goals.ts';
import type { Report } from '../sim/report/report.ts';
import { runScenario } from '../sim/run.ts';
import type { Scenario } from '../sim/scenario.ts';
import { UPSTREAM } from '../sim/scenario.ts';
import type { WorldParts } from '../sim/world/world.ts';
import { poolAmong } from './pool.ts';
import { leaseAmong } from './leases.ts';
import { MemoryStore } from '../state/memory.ts';
import { shareMeters } from '../state/shared-meters.ts';

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
