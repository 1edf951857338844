import type { exchange } from '../../../src/exchange.ts';
import type { Listen } from '../../../src/policy/events.ts';
import type { Store } from '../../../src/policy/store.ts';
import type { Random } from '../../../src/policy/types.ts';
import type { Scenario } from '../../../src/sim/scenario.ts';
import { UPSTREAM } from '../../../src/sim/scenario.ts';
import type { MemoryOptions } from '../../../src/state/memory.ts';
import { MemoryStore } from '../../../src/state/memory.ts';
import { shareMeters } from '../../../src/state/shared-meters.ts';

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
