import type { exchange } from '../../../src/core/exchange/exchange.ts';
import type { Listen } from '../../../src/core/events/proxy-events.ts';
import type { Store } from '../../../src/core/admission/gate-store.ts';
import type { Random } from '../../../src/core/exchange/attempt-outcome.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { UPSTREAM } from '../../../src/simulator/scenario.ts';
import type { MemoryOptions } from '../../../src/store/memory-store.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { shareMeters } from '../../../src/simulator/shared-meters.ts';

/** Something that decides when requests leave, behind the same gate, exchange and retries as everything else. */
export interface Controller {
  readonly name: string;
  /** The scenario as this one plays it: a limit for each client, no queue. As it is when absent. */
  adapt?(scenario: Scenario): Scenario;
  /** Ours when absent. */
  readonly script?: typeof exchange;
  makeStore(scenario: Scenario, random: Random, listen: Listen): Store;
  /** For one run: what its replicas share is made anew. */
  forRun?(scenario: Scenario): Controller;
}

export const OURS: Controller = ours({});

function ours(meters: Pick<MemoryOptions, 'makeMeter'>): Controller {
  return {
    name: 'tidegate',
    makeStore: (scenario, random, listen) => {
      const upstreams = [{ name: UPSTREAM, ...scenario.policy }];
      return new MemoryStore({ upstreams, maxTracked: 100_000, random, listen, ...meters });
    },
    forRun: ({ shared }) => (shared ? ours({ makeMeter: shareMeters() }) : OURS),
  };
}
