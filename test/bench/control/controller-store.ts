import { ActiveClients } from '../../../src/core/admission/active-clients.ts';
import { RetryTokenBucket } from '../../../src/core/retry/retry-token-bucket.ts';
import type { ClientStore } from '../../../src/core/admission/client-allowance.ts';
import type { EventSink } from '../../../src/core/events/proxy-events.ts';
import { Limit } from '../../../src/core/limits/limit.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { Meter } from '../../../src/core/limits/meter.ts';
import { AddressGroups } from '../../../src/core/admission/address-groups.ts';
import { UnmeteredSuccesses } from '../../../src/core/quota/unmetered-successes.ts';
import { QueueOccupancy } from '../../../src/core/admission/queue-occupancy.ts';
import type { GateStore, GateUpstream } from '../../../src/core/admission/gate-store.ts';
import type { ScenarioPolicy } from '../../../src/simulator/scenario.ts';
import { UPSTREAM_NAME } from '../../../src/simulator/scenario.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { ClientTable } from '../../../src/store/clients/client-table.ts';

interface ChosenParts {
  readonly policy: Pick<ScenarioPolicy, 'queue' | 'budget'>;
  readonly listen: EventSink;
  readonly makeMeter: () => Meter;
  readonly makeLimit?: (ref: LimitRef, meter: Meter) => Limit;
  readonly clients?: ClientStore;
}

/** A memory store whose limits use the meter of another controller. */
export class ControllerStore implements GateStore {
  readonly clients: ClientStore;
  readonly #upstream: GateUpstream;
  readonly #limits = new Map<string, Limit>();
  readonly #makeLimit: (ref: LimitRef) => Limit;

  constructor({ policy, listen, makeMeter, makeLimit = plainLimit, clients }: ChosenParts) {
    const { queue, budget } = policy;
    this.clients = clients ?? new ClientTable(100_000, listen);
    this.#makeLimit = (ref) => makeLimit(ref, makeMeter());
    this.#upstream = {
      name: UPSTREAM_NAME,
      queue,
      queueOccupancy: new QueueOccupancy(),
      queueOverflows: 0,
      retryBudget: new RetryTokenBucket(budget),
      activeClients: new ActiveClients(),
      addressGroups: new AddressGroups(),
      unmeteredSuccesses: new UnmeteredSuccesses(),
    };
  }

  upstream(): GateUpstream {
    return this.#upstream;
  }

  has(): boolean {
    return true;
  }

  upstreams(): Iterable<GateUpstream> {
    return [this.#upstream];
  }

  findLimit(ref: LimitRef): Limit {
    return this.#limits.get(ref.key) ?? this.findOrCreateLimit(ref);
  }

  findOrCreateLimit(ref: LimitRef): Limit {
    const limit = this.#makeLimit(ref);
    this.#limits.set(ref.key, limit);
    return limit;
  }

  holdClientAt(limit: Limit, key: string, until: Millis, now: Millis): void {
    limit.holdClient(key, until, now);
  }

  limits(): Iterable<Limit> {
    return this.#limits.values();
  }
}

function plainLimit(ref: LimitRef, meter: Meter): Limit {
  return new Limit(ref, meter);
}

/** Applies a Retry-After only to its own request, as libraries without a gate do. */
export class ForgetfulClients extends ClientTable {
  override hold(): void {}
}
