import { ActiveClients } from '../../../src/core/admission/active-clients.ts';
import { AddressGroups } from '../../../src/core/admission/address-groups.ts';
import type { ClientStore } from '../../../src/core/admission/client-allowance.ts';
import type { GateStore, GateUpstream } from '../../../src/core/admission/gate-store.ts';
import { QueueOccupancy } from '../../../src/core/admission/queue-occupancy.ts';
import type { EventSink } from '../../../src/core/events/proxy-events.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { Limit } from '../../../src/core/limits/limit.ts';
import type { Meter } from '../../../src/core/limits/meter.ts';
import { UnmeteredSuccesses } from '../../../src/core/quota/unmetered-successes.ts';
import { RetryTokenBucket } from '../../../src/core/retry/retry-token-bucket.ts';
import { ClientTable } from '../../../src/store/clients/client-table.ts';
import { upstreamSettings } from './policy-builders.ts';

/** A store of one upstream whose limits and meters are given by the test. */
export class FixedMeterStore implements GateStore {
  readonly clients: ClientStore;
  readonly #upstream: GateUpstream;
  readonly #limits = new Map<string, Limit>();

  constructor(meters: Readonly<Record<string, Meter>>, listen: EventSink, settings = upstreamSettings()) {
    const { name, queue, budget } = settings;
    this.clients = new ClientTable(1000, listen);
    const parts = {
      retryBudget: new RetryTokenBucket(budget),
      activeClients: new ActiveClients(),
      addressGroups: new AddressGroups(),
      unmeteredSuccesses: new UnmeteredSuccesses(),
    };
    this.#upstream = { name, queue, queueOccupancy: new QueueOccupancy(), queueOverflows: 0, ...parts };
    for (const [key, meter] of Object.entries(meters)) {
      this.#limits.set(
        key,
        new Limit({ upstream: name, nested: key, scope: key === '' ? 'upstream' : 'credential', key }, meter),
      );
    }
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

  findLimit({ key }: LimitRef): Limit | undefined {
    return this.#limits.get(key);
  }

  findOrCreateLimit({ key }: LimitRef): Limit {
    throw new Error(`no limit '${key}' was chosen`);
  }

  holdClientAt(limit: Limit, key: string, until: Millis, now: Millis): void {
    limit.holdClient(key, until, now);
  }

  limits(): Iterable<Limit> {
    return this.#limits.values();
  }
}
