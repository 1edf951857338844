import { compileScenario } from '../compile/scenario.ts';
import type { ScenarioConfig } from '../config/scenario-schema.ts';
import type { Candidate } from '../lab/fit/candidate.ts';
import { Proxied } from '../lab/fit/proxied.ts';
import { UPSTREAM } from '../sim/scenario.ts';
import type { UpstreamSpec } from '../sim/upstream.ts';
import { MemoryStore } from '../state/memory.ts';

/** The proxy with the policy of a scenario, its own exchange, gate and memory, in front of another upstream. */
export function proxyWith(name: string, config: ScenarioConfig, upstream: UpstreamSpec, seed: number): Candidate {
  // Of its clients nothing is used: their nested limits would be those of every request of the log.
  const scenario = { ...compileScenario(name, config), upstream, clients: [], replicas: 1, pauses: [] };
  const upstreams = [{ name: UPSTREAM, ...scenario.policy }];
  const { maxTracked } = config.policy;
  return new Proxied(name, scenario, {
    seed,
    makeStore: (_, random, listen) => new MemoryStore({ upstreams, maxTracked, random, listen }),
  });
}
