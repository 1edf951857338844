import { Activity } from '../../../src/policy/activity.ts';
import { RetryBudget } from '../../../src/policy/budget.ts';
import type { ClientStore } from '../../../src/policy/client.ts';
import type { Listen } from '../../../src/policy/events.ts';
import { Limit } from '../../../src/policy/limit.ts';
import type { LimitRef } from '../../../src/policy/limit-ref.ts';
import type { Meter } from '../../../src/policy/meter.ts';
import { Nests } from '../../../src/policy/nests.ts';
import type { Store, Upstream } from '../../../src/policy/store.ts';
import type { PolicySettings } from '../../../src/sim/scenario.ts';
import { UPSTREAM } from '../../../src/sim/scenario.ts';
import { ClientTable } from '../../../src/state/client-table.ts';

/** A store like that of memory, whose limits have the meter of another controller. */
export class ChosenStore implements Store {
  readonly clients: ClientStore;
  readonly #upstream: Upstream;
  readonly #makeMeter: () => Meter;
  readonly #limits = new Map<string, Limit>();

  constructor(
    { queue, budget }: Pick<PolicySettings, 'queue' | 'budget'>,
    listen: Listen,
    makeMeter: () => Meter,
    clients: ClientStore = new ClientTable(100_000, listen),
  ) {
    this.clients = clients;
    this.#makeMeter = makeMeter;
    this.#upstream = {
      name: UPSTREAM,
      queue,
      queued: 0,
      budget: new RetryBudget(budget),
      activity: new Activity(),
      nests: new Nests(),
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
    const limit = new Limit(ref, this.#makeMeter());
    this.#limits.set(ref.key, limit);
    return limit;
  }

  limits(): Iterable<Limit> {
    return this.#limits.values();
  }
}

/** One client's Retry-After holds only the request that was answered so: what libraries do that have no gate. */
export class ForgetfulClients extends ClientTable {
  override hold(): void {}
}
