import type { Scenario } from '../../../../src/simulator/scenario.ts';

/** Each client keeps a limit of its own, as a library within that client does. */
export function perClient(scenario: Scenario): Scenario {
  return { ...scenario, policy: { ...scenario.policy, scope: 'client' } };
}

/** What may not leave now is refused. */
export function unqueued(scenario: Scenario): Scenario {
  const { policy } = scenario;
  return { ...scenario, policy: { ...policy, queue: { ...policy.queue, maxDepth: 0 } } };
}
