import type { Limit } from '../../../src/core/limits/limit.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { Meter } from '../../../src/core/limits/meter.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { Random } from '../../../src/core/scalars.ts';
import type { ScenarioPolicy } from '../../../src/simulator/scenario.ts';
import { ClientTable } from '../../../src/store/clients/client-table.ts';
import { ControllerStore } from './controller-store.ts';
import type { Controller } from './controllers.ts';

interface Replaced {
  readonly makeMeter?: (policy: ScenarioPolicy, random: Random) => Meter;
  readonly makeLimit?: (ref: LimitRef, meter: Meter) => Limit;
  readonly Clients?: typeof ClientTable;
}

/** Tidegate with one part replaced. */
export function replace(name: string, { makeMeter, makeLimit, Clients = ClientTable }: Replaced): Controller {
  return {
    name,
    makeStore: ({ policy }, random, listen) =>
      new ControllerStore({
        policy,
        listen,
        makeMeter: () => makeMeter?.(policy, random) ?? new LocalMeter(policy.rate, random),
        clients: new Clients(100_000, listen),
        ...(makeLimit === undefined ? {} : { makeLimit }),
      }),
  };
}
