import { Activity } from '../../../src/policy/activity.ts';
import { RetryBudget } from '../../../src/policy/budget.ts';
import type { ClientStore } from '../../../src/policy/client.ts';
import type { Listen } from '../../../src/policy/events.ts';
import { Limit } from '../../../src/policy/limit.ts';
import type { LimitRef } from '../../../src/policy/limit-ref.ts';
import type { Meter } from '../../../src/policy/meter.ts';
import { Nests } from '../../../src/policy/nests.ts';
import { UntoldQuotas } from '../../../src/policy/untold-quotas.ts';
import { Backlog } from '../../../src/policy/backlog.ts';
import type { Store, Upstream } from '../../../src/policy/store.ts';
import type { PolicySettings } from '../../../src/sim/scenario.ts';
import { UPSTREAM } from '../../../src/sim/scenario.ts';
import type { Millis } from '../../../src/policy/types.ts';
import { ClientTable } from '../../../src/state/client-table.ts';

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
