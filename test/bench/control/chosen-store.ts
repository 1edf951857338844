import { Activity } from '../../../src/policy/activity.ts';
import { RetryBudget } from '../../../src/policy/budget.ts';
import type { ClientStore } from '../../../src/policy/client.ts';
import type { Listen } from '../../../src/policy/events.ts';
import type { Limit } from '../../../src/policy/limit.ts';
import type { LimitRef } from '../../../src/policy/limit-ref.ts';
import { Nests } from '../../../src/policy/nests.ts';
import type { Store, Upstream } from '../../../src/policy/store.ts';
import type { PolicySettings } from '../../../src/sim/scenario.ts';
import { UPSTREAM } from '../../../src/sim/scenario.ts';
import { ClientTable } from '../../../src/state/client-table.ts';

/** A store like that of memory, whose limits have the meter of another controller. */
export class ChosenStore implements Store {
  readonly clients: ClientStore;
  readonly #upstream: Upstream;
  readonly #makeLimit: (ref: LimitRef) => Limit;
  readonly #limits = new Map<string, Limit>();

  constructor(
    { queue, budget }: Pick<PolicySettings, 'queue' | 'budget'>,
    listen: Listen,
    makeLimit: (ref: LimitRef) => Limit,
  ) {
    this.clients = new ClientTable(100_000, listen);
    this.#makeLimit = makeLimit;
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
    const limit = this.#makeLimit(ref);
    this.#limits.set(ref.key, limit);
    return limit;
  }

  limits(): Iterable<Limit> {
    return this.#limits.values();
  }
}
