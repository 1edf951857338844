import type { GateUpstream } from '../../core/admission/gate-store.ts';
import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ClientRank } from '../../store/clients/client-search.ts';
import type { MemoryStore } from '../../store/memory-store.ts';
import { ClientNames } from './client-names.ts';
import type { ClientStateView, ClientView, RefusalsView } from './process-api.ts';
import { NO_REFUSALS, RefusedClients } from './refused-clients.ts';

/** More clients are not listed one by one: each second, the list costs a millisecond or two, here and in the primary. */
const MAX_LISTED_CLIENTS = 1000;

/** The views of the clients of this process: their names, demands and shares, and who was refused recently. */
export class ClientViews {
  readonly names = new ClientNames();
  readonly #storeOf: () => MemoryStore;
  readonly #haveEqualWeights: () => boolean;
  /** By upstream. The names come from the configuration. */
  readonly #refused = new Map<string, RefusedClients>();

  /** @param haveEqualWeights whether all clients have the same weight. Otherwise the share of a client is unknown here */
  constructor(store: () => MemoryStore, haveEqualWeights: () => boolean) {
    this.#storeOf = store;
    this.#haveEqualWeights = haveEqualWeights;
  }

  get #store(): MemoryStore {
    return this.#storeOf();
  }

  onDone({ upstream, client, clientName, outcome }: RequestRecord, now: Millis): void {
    this.names.record(client, clientName);
    if ((outcome !== 'refused' && outcome !== 'queue_timeout') || client === '') return;
    const refused = this.#refused.get(upstream) ?? new RefusedClients();
    this.#refused.set(upstream, refused);
    refused.add(client, now);
  }

  view(rank: ClientRank, now: Millis): ClientView {
    const { clients } = this.#store;
    const { slot } = rank;
    const [upstream, key] = clients.nameOf(slot);
    const limit = this.#store.clientLimit(upstream, key);
    const { connectionSlots } = this.#upstream(upstream);
    const waiting =
      connectionSlots === undefined || connectionSlots.queueLimit === limit
        ? 0
        : connectionSlots.queueLimit.queue.queuedBy(slot);
    return {
      rank,
      upstream,
      key,
      name: this.names.of(key),
      state: clients.stateAt(slot, now),
      allowance: clients.allowance(slot, now),
      demand: clients.demand(slot, now),
      share: this.#share(upstream, key, now),
      queued: (limit?.queue.queuedBy(slot) ?? 0) + waiting,
      heldUntil: clients.heldUntil(slot),
      nextSlot: clients.promisedReturn(slot),
      calmAt: clients.calmAt(slot),
      lastSeen: clients.arrivedAt(slot),
    };
  }

  /** The states of all clients; undefined if there are too many. */
  states(now: Millis): readonly ClientStateView[] | undefined {
    const { clients } = this.#store;
    if (clients.tracked > MAX_LISTED_CLIENTS) return undefined;
    return Array.from({ length: clients.slots }, (_, slot) => [...clients.nameOf(slot), clients.stateAt(slot, now)]);
  }

  /** Who was refused in the last seconds. */
  refusals(upstream: string, now: Millis): RefusalsView {
    const { total, clients } = this.#refused.get(upstream)?.counts(now) ?? NO_REFUSALS;
    return {
      total,
      clients: [...clients].map(([key, count]) => {
        const slot: ClientSlot | undefined = this.#store.clients.find(upstream, key);
        return {
          key,
          name: this.names.of(key),
          count,
          demand: slot === undefined ? 0 : this.#store.clients.demand(slot, now),
          share: this.#share(upstream, key, now),
          heldUntil: slot === undefined ? Number.NEGATIVE_INFINITY : this.#store.clients.heldUntil(slot),
        };
      }),
    };
  }

  #share(upstream: string, key: string, now: Millis): number | undefined {
    const limit = this.#store.clientLimit(upstream, key);
    const rate = limit?.meter.rate(now) ?? Number.POSITIVE_INFINITY;
    if (!Number.isFinite(rate) || !this.#haveEqualWeights()) return undefined;
    return limit?.ref.scope === 'upstream' ? rate / (this.#upstream(upstream).activeClients?.count(now) ?? 1) : rate;
  }

  /** An upstream that a reload has removed has neither. */
  #upstream(name: string): Partial<GateUpstream> {
    return this.#store.scopeOf(name) === undefined ? {} : this.#store.upstream(name);
  }
}
