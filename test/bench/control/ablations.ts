import { FairQueue } from '../../../src/core/collections/fair-queue.ts';
import { Limit } from '../../../src/core/limits/limit.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { ScenarioPolicy, Scenario } from '../../../src/simulator/scenario.ts';
import { ClientTable } from '../../../src/store/clients/client-table.ts';
import type { Controller } from './controllers.ts';
import { OURS } from './controllers.ts';
import { replace } from './replace.ts';
import { RULE_ABLATIONS } from './rule-ablations.ts';

/** An ablation by settings. */
function set(name: string, change: (policy: ScenarioPolicy) => Partial<ScenarioPolicy>): Controller {
  return {
    ...OURS,
    name,
    adapt: (scenario: Scenario) => ({ ...scenario, policy: { ...scenario.policy, ...change(scenario.policy) } }),
  };
}

/** Every client has its full weight, whatever its demand. */
class LenientClients extends ClientTable {
  override allowance(): number {
    return 1;
  }

  override onRefused(): undefined {}
}

class UnpromisedClients extends ClientTable {
  override setPromisedReturn(): void {}
}

/** All refused clients get the same Retry-After. */
class UnslottedLimit extends Limit {
  override reserveReturnSlot(now: Millis, wait: Millis): Millis {
    return now + wait + 1000 / this.meter.rate(now);
  }
}

/** First come, first served. */
class PlainQueue extends FairQueue<Ticket> {
  override push(_key: number, _weight: number, waiter: Ticket, now: Millis): void {
    super.push(0, 1, waiter, now);
  }

  override queuedBy(): number {
    return this.size;
  }

  override partOfGroup(): number {
    return 1;
  }

  override share(): number {
    return 1;
  }

  override activeFor(_key: number, now: Millis): Millis {
    return super.activeFor(0, now);
  }

  override updateWeight(): void {}
}

class PlainLimit extends Limit {
  override readonly queue = new PlainQueue();
}

class PatientQueue extends FairQueue<Ticket> {
  override activeFor(): Millis {
    return 0;
  }
}

class PatientLimit extends Limit {
  override readonly queue = new PatientQueue();
}

const TOLERANCE: Millis = 10;

/** GCRA with a tolerance: a request may be early by that time, which delays the next. */
class TolerantMeter extends LocalMeter {
  override delay(now: Millis): Millis {
    const delay = super.delay(now);
    return (this.blockedUntil ?? now) > now || this.phase === 'blocked' ? delay : Math.max(0, delay - TOLERANCE);
  }
}

/** Ablations of parts other than the rate rules. */
const PARTS: readonly Controller[] = [
  set('no queue', ({ queue }) => ({ queue: { ...queue, maxDepth: 0 } })),
  set('maxWait of 0.3 s', ({ queue }) => ({ queue: { ...queue, maxWait: 300 } })),
  set('maxWait of 3 s', ({ queue }) => ({ queue: { ...queue, maxWait: 3000 } })),
  replace('full maxWait for queued clients', {
    makeLimit: (ref, meter) => new PatientLimit(ref, meter),
  }),
  replace('one queue for all', { makeLimit: (ref, meter) => new PlainLimit(ref, meter) }),
  replace('no allowance', { Clients: LenientClients }),
  replace('no promise', { Clients: UnpromisedClients }),
  replace('no slots', { makeLimit: (ref, meter) => new UnslottedLimit(ref, meter) }),
  replace('10 ms of tolerance', { makeMeter: ({ rate }, random) => new TolerantMeter(rate, random) }),
  set('no retry budget', () => ({ budget: { ratio: 10, burst: 10_000 } })),
  set('no retries', ({ plan }) => ({ plan: { ...plan, retry: { ...plan.retry, attempts: 1 } } })),
  set('no hold', ({ rate }) => ({ rate: { ...rate, cooldown: 0 } })),
  set('hold of 5 s', ({ rate }) => ({ rate: { ...rate, cooldown: 5000 } })),
];

/** Tidegate with other random numbers: differences of this size are noise. */
const CHANCE: Controller = {
  name: 'nothing (other random numbers)',
  makeStore: (scenario, random, listen) => {
    random();
    return OURS.makeStore(scenario, random, listen);
  },
};

/** Tidegate without one rule each. */
export const ABLATIONS: readonly Controller[] = [CHANCE, ...RULE_ABLATIONS, ...PARTS];
