import type { MemoryStoreOptions } from '../../../src/store/memory-store-options.ts';
import type { exchange } from '../../../src/core/exchange/exchange.ts';
import type { EventSink } from '../../../src/core/events/proxy-events.ts';
import type { GateStore } from '../../../src/core/admission/gate-store.ts';
import type { Random } from '../../../src/core/scalars.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { UPSTREAM_NAME } from '../../../src/simulator/scenario.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { createSharedMeters } from '../../../src/simulator/shared-meters.ts';

/** A rate controller under test, with the same gate, exchange and retries as all others. */
export interface Controller {
  readonly name: string;
  /** Adapts the scenario, such as to a limit for each client or no queue. Unchanged by default. */
  adapt?(scenario: Scenario): Scenario;
  /** Tidegate's by default. */
  readonly script?: typeof exchange;
  makeStore(scenario: Scenario, random: Random, listen: EventSink): GateStore;
  /** Creates a controller with new shared state for one run. */
  forRun?(scenario: Scenario): Controller;
}

export const OURS: Controller = ours({});

/** Tidegate with `rateLimit.learnFromLatency`. */
export const LATENCY: Controller = {
  ...OURS,
  name: 'tidegate+latency',
  adapt: (scenario) => {
    const { policy } = scenario;
    return { ...scenario, policy: { ...policy, rate: { ...policy.rate, learnsFromLatency: true } } };
  },
};

function ours(meters: Pick<MemoryStoreOptions, 'makeMeter'>): Controller {
  return {
    name: 'tidegate',
    makeStore: (scenario, random, listen) => {
      const upstreams = [{ name: UPSTREAM_NAME, ...scenario.policy }];
      return new MemoryStore({ upstreams, maxTracked: 100_000, random, listen, ...meters });
    },
    forRun: ({ shared }) => (shared ? ours({ makeMeter: createSharedMeters() }) : OURS),
  };
}
