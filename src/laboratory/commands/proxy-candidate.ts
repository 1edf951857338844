import { compileScenario } from '../../simulator/scenario-file/compile-scenario.ts';
import type { ScenarioConfig } from '../../simulator/scenario-file/scenario-schema.ts';
import type { ReplayCandidate } from '../fit/replay-candidate.ts';
import { ProxiedClients } from '../fit/proxied-clients.ts';
import { UPSTREAM_NAME } from '../../simulator/scenario.ts';
import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import { MemoryStore } from '../../store/memory-store.ts';

/** The proxy with the policy of a scenario, its own exchange, gate and store, in front of the inferred upstream. */
export function makeProxyCandidate(
  name: string,
  config: ScenarioConfig,
  upstream: UpstreamSpec,
  seed: number,
): ReplayCandidate {
  // The scenario's clients are ignored: their nested limits would apply to every request of the log.
  const scenario = { ...compileScenario(name, config), upstream, clients: [], replicas: 1, pauses: [] };
  const upstreams = [{ name: UPSTREAM_NAME, ...scenario.policy }];
  const { maxTracked } = config.policy;
  return new ProxiedClients(name, scenario, {
    seed,
    makeStore: (_, random, listen) => new MemoryStore({ upstreams, maxTracked, random, listen }),
  });
}
