import { Activity } from '../../../src/core/admission/active-clients.ts';
import { RetryBudget } from '../../../src/core/retry/retry-token-bucket.ts';
import type { ClientStore } from '../../../src/core/admission/client-allowance.ts';
import type { Listen } from '../../../src/core/events/proxy-events.ts';
import { Limit } from '../../../src/core/limits/limit.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { Meter } from '../../../src/core/limits/meter.ts';
import { Nests } from '../../../src/core/admission/address-groups.ts';
import { UntoldQuotas } from '../../../src/core/quota/unmetered-successes.ts';
import { Backlog } from '../../../src/core/admission/queue-occupancy.ts';
import type { Store, Upstream } from '../../../src/core/admission/gate-store.ts';
import type { PolicySettings } from '../../../src/simulator/scenario.ts';
import { UPSTREAM } from '../../../src/simulator/scenario.ts';
import type { Millis } from '../../../src/core/exchange/attempt-outcome.ts';
import { ClientTable } from '../../../src/store/clients/client-table.ts';

interface ChosenParts {
  readonly policy: Pick<PolicySettings, 'queue' | 'budget'>;
  readonly listen: Listen;
  readonly makeMeter: () => Meter;
  readonly makeLimit?: (ref: LimitRef, meter: Meter) => Limit;
  readonly clients?: ClientStore;
}

/** A store like that of memory, whose limits have the meter of another controller. */
export class ChosenStore implements Store {
  readonly clients: ClientStore;
  readonly #upstream: Upstream;
  readonly #limits = new Map<string, Limit>();
  readonly #makeLimit: (ref: LimitRef) => Limit;

  constructor({ policy, listen, makeMeter, makeLimit = plainLimit, clients }: ChosenParts) {
    const { queue, budget } = policy;
    this.clients = clients ?? new ClientTable(100_000, listen);
    this.#makeLimit = (ref) => makeLimit(ref, makeMeter());
    this.#upstream = {
      name: UPSTREAM,
      queue,
      backlog: new Backlog(),
      overflows: 0,
      budget: new RetryBudget(budget),
      activity: new Activity(),
      nests: new Nests(),
      untold: new UntoldQuotas(),
    };
  }

  upstream(): Upstream {
    return this.#upstream;
  }

  upstreams(): Iterable<Upstream> {
    return [this.#upstream];
  }

  find(ref: LimitRef): Limit {
    return this.#limits.get(ref.key) ?? this.make(ref);
  }

  make(ref: LimitRef): Limit {
    const limit = this.#makeLimit(ref);
    this.#limits.set(ref.key, limit);
    return limit;
  }

  holdAt(limit: Limit, key: string, until: Millis, now: Millis): void {
    limit.hold(key, until, now);
  }

  limits(): Iterable<Limit> {
    return this.#limits.values();
  }
}

function plainLimit(ref: LimitRef, meter: Meter): Limit {
  return new Limit(ref, meter);
}

/** One client's Retry-After holds only the request that was answered so: what libraries do that have no gate. */
export class ForgetfulClients extends ClientTable {
  override hold(): void {}
}
