import { RecencyMap } from '../../core/collections/recency-map.ts';
import type { CalendarQuota } from '../../core/quota/calendar/calendar-quota.ts';
import { type QuotaJournal, storeTogether } from '../../core/quota/calendar/quota-journal.ts';
import type { EpochMillis } from '../../core/quota/calendar/quota-period.ts';
import { EVICTED_AT_ONCE } from '../../core/quota/clients/class-quotas.ts';
import type { Millis } from '../../core/scalars.ts';

/** A process that leases parts of a quota. */
export interface QuotaMember {
  /** Parts that it held at its last call. */
  held: number;
  calledAt: Millis;
  /** The beginning of the part of the period in which all that it holds is counted. */
  countedSince: EpochMillis;
  wantedAt: Millis;
}

export interface KeptQuota {
  readonly upstream: string;
  readonly quota: CalendarQuota;
  readonly members: Map<number, QuotaMember>;
}

type QuotasOfClient = Map<string, KeptQuota>;

/**
 * The quotas of single clients at one upstream, by client. The client whose quotas were not used for longest makes room for others, but
 * none of whose quotas a process holds a part: when that is returned, it would have no effect.
 */
export class KeptClientQuotas {
  readonly #clients = new Map<string, QuotasOfClient>();
  /** Those of which no process holds a part. */
  readonly #idle = new RecencyMap<string, QuotasOfClient>();
  readonly #journal: QuotaJournal | undefined;
  evictions = 0;

  constructor(journal: QuotaJournal | undefined) {
    this.#journal = journal;
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Returns the quota of this id, or makes it. */
  find(client: string, id: string, make: () => KeptQuota): KeptQuota {
    const quotas: QuotasOfClient = this.#clients.get(client) ?? new Map<string, KeptQuota>();
    this.#clients.set(client, quotas);
    const kept = quotas.get(id) ?? make();
    quotas.set(id, kept);
    return kept;
  }

  /** Returns the quota of this id if it is in memory. */
  peek(client: string, id: string): KeptQuota | undefined {
    return this.#clients.get(client)?.get(id);
  }

  /** A process has called about a quota of this client. Makes room, but not of this client: its count may not be stored. */
  onCalled(client: string, maxClients: number): void {
    this.#update(client);
    const evictable = this.#idle.size - (this.#idle.has(client) ? 1 : 0);
    const count = Math.min(EVICTED_AT_ONCE, evictable, this.#clients.size - maxClients);
    if (count > 0) storeTogether(this.#journal, () => this.#evictOldest(count));
  }

  #evictOldest(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const { oldest } = this.#idle;
      if (oldest === undefined) return;
      for (const { quota } of this.#idle.deleteOldest()?.values() ?? []) quota.close();
      this.#clients.delete(oldest);
      this.evictions += 1;
    }
  }

  /** Forgets the quotas for which `isKept` returns false. */
  retain(isKept: (kept: KeptQuota) => boolean): void {
    for (const [client, quotas] of this.#clients) {
      for (const [id, kept] of quotas) if (!isKept(kept)) quotas.delete(id);
      this.#update(client);
    }
  }

  /** A process has ended. */
  leave(worker: number): void {
    for (const [client, quotas] of this.#clients) {
      const isMember = [...quotas.values()].filter(({ members }) => members.delete(worker)).length > 0;
      if (isMember) this.#update(client);
    }
  }

  #update(client: string): void {
    const quotas = this.#clients.get(client);
    if (quotas === undefined) return;
    if (quotas.size === 0) this.#clients.delete(client);
    if (quotas.size > 0 && !isHeld(quotas)) this.#idle.set(client, quotas);
    else this.#idle.delete(client);
  }
}

function isHeld(quotas: QuotasOfClient): boolean {
  for (const { members } of quotas.values()) {
    for (const { held } of members.values()) if (held > 0) return true;
  }
  return false;
}
