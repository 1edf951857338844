import { compileScenario } from '../../simulator/scenario-file/compile-scenario.ts';
import type { ScenarioConfig } from '../../simulator/scenario-file/scenario-schema.ts';
import type { Candidate } from '../fit/replay-candidate.ts';
import { Proxied } from '../fit/proxied-clients.ts';
import { UPSTREAM } from '../../simulator/scenario.ts';
import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import { MemoryStore } from '../../store/memory-store.ts';

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
