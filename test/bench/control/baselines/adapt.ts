import type { Scenario } from '../../../../src/simulator/scenario.ts';

/** Gives each client its own limit, like a library in that client. */
export function perClient(scenario: Scenario): Scenario {
  return { ...scenario, policy: { ...scenario.policy, scope: 'client' } };
}

/** Removes the queue: requests that cannot be sent at once are refused. */
export function unqueued(scenario: Scenario): Scenario {
  const { policy } = scenario;
  return { ...scenario, policy: { ...policy, queue: { ...policy.queue, maxDepth: 0 } } };
}
