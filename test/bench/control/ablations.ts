import { FairQueue } from '../../../src/core/admission/fair-queue.ts';
import { Limit } from '../../../src/core/limits/limit.ts';
import { LocalMeter } from '../../../src/core/limits/meter.ts';
import type { Ticket } from '../../../src/core/admission/ticket.ts';
import type { Millis } from '../../../src/core/exchange/attempt-outcome.ts';
import type { PolicySettings, Scenario } from '../../../src/simulator/scenario.ts';
import { ClientTable } from '../../../src/store/clients/client-table.ts';
import type { Controller } from './controllers.ts';
import { OURS } from './controllers.ts';
import { replace } from './replace.ts';
import { RULE_ABLATIONS } from './rule-ablations.ts';

/** Settings that a rule can be left out by. */
function set(name: string, change: (policy: PolicySettings) => Partial<PolicySettings>): Controller {
  return {
    ...OURS,
    name,
    adapt: (scenario: Scenario) => ({ ...scenario, policy: { ...scenario.policy, ...change(scenario.policy) } }),
  };
}

/** Every client weighs its full weight, whatever it asks for. */
class LenientClients extends ClientTable {
  override allowance(): number {
    return 1;
  }

  override refused(): undefined {}
}

class UnpromisedClients extends ClientTable {
  override promise(): void {}
}

/** All who are refused are told the same. */
class UnslottedLimit extends Limit {
  override reserveSlot(now: Millis, wait: Millis): Millis {
    return now + wait + 1000 / this.meter.rate(now);
  }
}

/** First come, first served. */
class PlainQueue extends FairQueue<Ticket> {
  override push(_key: number, _weight: number, waiter: Ticket, now: Millis): void {
    super.push(0, 1, waiter, now);
  }

  override backlog(): number {
    return this.size;
  }

  override share(): number {
    return 1;
  }

  override waitingFor(_key: number, now: Millis): Millis {
    return super.waitingFor(0, now);
  }

  override reweigh(): void {}
}

class PlainLimit extends Limit {
  override readonly queue = new PlainQueue();
}

class PatientQueue extends FairQueue<Ticket> {
  override waitingFor(): Millis {
    return 0;
  }
}

class PatientLimit extends Limit {
  override readonly queue = new PatientQueue();
}

const TOLERANCE: Millis = 10;

/** GCRA with a tolerance: a request may come early by that, and the next pays for it. */
class TolerantMeter extends LocalMeter {
  override delay(now: Millis): Millis {
    const delay = super.delay(now);
    return (this.blockedUntil ?? now) > now || this.phase === 'blocked' ? delay : Math.max(0, delay - TOLERANCE);
  }
}

/** Of the parts around the rate. */
const PARTS: readonly Controller[] = [
  set('no queue', ({ queue }) => ({ queue: { ...queue, maxDepth: 0 } })),
  set('patience of 0.3 s', ({ queue }) => ({ queue: { ...queue, maxWait: 300 } })),
  set('patience of 3 s', ({ queue }) => ({ queue: { ...queue, maxWait: 3000 } })),
  replace('patience for who stands in the queue', {
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

/** Nothing is left out, and chance falls otherwise: differences as large as its own say nothing. */
const CHANCE: Controller = {
  name: 'nothing (other chance)',
  makeStore: (scenario, random, listen) => {
    random();
    return OURS.makeStore(scenario, random, listen);
  },
};

/** Ours, each without one rule. */
export const ABLATIONS: readonly Controller[] = [CHANCE, ...RULE_ABLATIONS, ...PARTS];
