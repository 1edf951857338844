/** A scenario as people write it, made into a world to run and what it should come to. */
import { compilePlan, compileUpstream } from './compile-policy.ts';
import type { ScenarioConfig } from './config/scenario-schema.ts';
import type { ClientGroup, Scenario } from './sim/scenario.ts';
import { UPSTREAM } from './sim/scenario.ts';

export function compileScenario(name: string, config: ScenarioConfig): Scenario {
  const { duration, warmup, upstream, network, clients, replicas, shared, lease, pool, pauses, mode, policy } = config;
  const { scope, rate, queue, budget } = compileUpstream(UPSTREAM, policy);
  return {
    name,
    duration,
    warmup,
    upstream,
    network,
    clients: clients.map(compileGroup),
    replicas,
    shared,
    lease,
    pool,
    pauses,
    policy: { scope, rate, queue, budget, plan: compilePlan(policy.retry, policy, mode) },
  };
}

function compileGroup(group: ScenarioConfig['clients'][number]): ClientGroup {
  const { name, count, weight, from, to = Number.POSITIVE_INFINITY, steps, honoursRetryAfter, method, keyed } = group;
  const ofEach = (demand: { readonly rate?: number; readonly total?: number }): number =>
    demand.rate ?? (demand.total ?? 0) / count;
  return {
    name,
    count,
    rate: ofEach(group),
    weight,
    from,
    to,
    steps: steps.map((step) => ({ at: step.at, rate: ofEach(step) })).toSorted((a, b) => a.at - b.at),
    honoursRetryAfter,
    method,
    keyed,
  };
}
