import { RecencyMap } from '../../collections/recency-map.ts';
import type { ResourceBound } from '../../overload/resource-bound.ts';
import type { Millis } from '../../scalars.ts';
import { CalendarQuota, type CalendarQuotaSettings, type QuotaView } from '../calendar/calendar-quota.ts';
import { storeTogether } from '../calendar/quota-journal.ts';
import { QuotaGroup } from '../calendar/quota-group.ts';
import { makeQuotas, type UpstreamQuotasParts } from '../calendar/upstream-quotas.ts';
import { type ForQuotasOfClient, useStoredQuota } from './client-quota-inspection.ts';
import { ClientQuotaUse } from './client-quota-use.ts';
import { ClientQuotas } from './client-quotas.ts';

/** The quotas of a class of clients at an upstream. */
export interface ClassQuotaSettings {
  readonly className: string;
  /** Of all its clients together. */
  readonly shared: readonly CalendarQuotaSettings[];
  /** Of each of its clients that has proven its name. */
  readonly perClient: readonly CalendarQuotaSettings[];
  /** None counts requests of clients that have not proven their names. */
  readonly needsProof?: boolean;
}

/** The part of a ticket by which its quotas are found. */
export interface QuotaRequester {
  /** The client's hashed identity. */
  readonly client: string;
  readonly className: string | undefined;
  /** Its client has proven its name, so that it cannot choose another one. */
  readonly isClientProven: boolean;
}

/** At one upstream, where the configuration sets no bound. */
export const MAX_CLIENTS = 100_000;
/** At most, for one request: after a reload that lowers the bound, no request waits until all counts beyond it are stored. */
export const EVICTED_AT_ONCE = 16;

interface QuotaClass {
  readonly shared: QuotaGroup;
  /** Of requests of clients that have no quotas of their own. */
  readonly quotas: ClientQuotas;
  settings: ClassQuotaSettings;
}

interface KnownClient {
  readonly key: string;
  readonly className: string;
  readonly client: string;
  readonly own: QuotaGroup;
  readonly quotas: ClientQuotas;
  /** Requests that use it. */
  uses: number;
}

/**
 * The quotas of classes of clients, and of single clients, at one upstream. The latter are made when a client is first seen. Beyond
 * `maxClients`, those of the client that has had no request for longest are closed, but never those that a request uses: what is counted
 * stays in the journal, or where it is counted.
 */
export class ClassQuotas {
  readonly #upstream: string;
  readonly #parts: UpstreamQuotasParts;
  readonly #classes = new Map<string, QuotaClass>();
  readonly #clients = new Map<string, KnownClient>();
  /** Those that no request uses. */
  readonly #idle = new RecencyMap<string, KnownClient>();
  #evictions = 0;

  constructor(upstream: string, settings: readonly ClassQuotaSettings[], parts: UpstreamQuotasParts) {
    this.#upstream = upstream;
    this.#parts = parts;
    this.reconfigure(settings);
  }

  /** Keeps the counts of quotas whose class, name and period stay the same. */
  reconfigure(settings: readonly ClassQuotaSettings[]): void {
    storeTogether(this.#parts.journal, () => this.#apply(settings));
  }

  #apply(settings: readonly ClassQuotaSettings[]): void {
    const names = new Set(settings.map(({ className }) => className));
    for (const [name, { shared }] of this.#classes) {
      if (names.has(name)) continue;
      shared.reconfigure([]);
      this.#classes.delete(name);
    }
    for (const each of settings) {
      const known = this.#classes.get(each.className);
      known?.shared.reconfigure(each.shared);
      if (known === undefined) this.#classes.set(each.className, this.#makeClass(each));
      else known.settings = each;
    }
    for (const { key, className, client, own } of this.#clients.values()) {
      const { perClient } = this.#classes.get(className)?.settings ?? { perClient: [] };
      own.reconfigure(settingsOf(perClient, client));
      if (perClient.length > 0) continue;
      this.#clients.delete(key);
      this.#idle.delete(key);
    }
  }

  /** Begins the use of the quotas that count a request, until `ClientQuotaUse.end`; undefined if none does. */
  use({ client, className, isClientProven }: QuotaRequester): ClientQuotaUse | undefined {
    const ofClass = className === undefined ? undefined : this.#classes.get(className);
    if (className === undefined || ofClass === undefined) return undefined;
    const { settings, shared, quotas } = ofClass;
    if (settings.needsProof === true && !isClientProven) return undefined;
    if (isClientProven && settings.perClient.length > 0) return this.#useClient(className, client, ofClass);
    return shared.quotas.length === 0 ? undefined : new ClientQuotaUse(quotas);
  }

  #useClient(className: string, client: string, { settings, shared }: QuotaClass): ClientQuotaUse {
    const key = keyOf(className, client);
    let known = this.#clients.get(key);
    if (known === undefined) {
      const own = new QuotaGroup('client', settingsOf(settings.perClient, client), this.#make);
      const quotas = new ClientQuotas([shared, own], this.#parts.wallTimeAt);
      known = { key, className, client, own, quotas, uses: 0 };
      this.#clients.set(key, known);
    }
    this.#idle.delete(key);
    const used = known;
    used.uses += 1;
    this.#evictIdle();
    return new ClientQuotaUse(used.quotas, () => this.#onUnused(used));
  }

  #onUnused(known: KnownClient): void {
    known.uses -= 1;
    if (known.uses > 0 || this.#clients.get(known.key) !== known) return;
    this.#idle.set(known.key, known);
    this.#evictIdle();
  }

  #evictIdle(): void {
    const count = Math.min(EVICTED_AT_ONCE, this.#idle.size, this.#clients.size - this.#maxClients);
    if (count > 0) storeTogether(this.#parts.journal, () => this.#evictOldest(count));
  }

  #evictOldest(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const oldest = this.#idle.deleteOldest();
      if (oldest === undefined) return;
      this.#clients.delete(oldest.key);
      oldest.own.close();
      this.#evictions += 1;
    }
  }

  /** Those of classes: single clients may be many. */
  views(now: Millis): QuotaView[] {
    const instant = { now, at: this.#parts.wallTimeAt(now) };
    const groups = [...this.#classes.values()].map(({ shared }) => shared);
    return groups.flatMap(({ quotas }) => quotas.flatMap((quota) => quota.view(instant) ?? []));
  }

  /** Of this process alone: what is counted elsewhere is left out. */
  readonly forClient: ForQuotasOfClient = (client, use) =>
    this.perClient.flatMap(({ className, settings }) => {
      const known = this.#clients.get(keyOf(className, client));
      const quota = known?.own.quotas.find((each) => each.settings.name === settings.name);
      if (quota !== undefined) return quota instanceof CalendarQuota ? use(this.#upstream, quota) : [];
      const own = { ...settings, key: client };
      return useStoredQuota(this.#upstream, own, this.#parts.journal, (each) => use(this.#upstream, each)) ?? [];
    });

  /** The settings of the quotas of each client, without its key. */
  get perClient(): { readonly className: string; readonly settings: CalendarQuotaSettings }[] {
    return [...this.#classes.values()].flatMap(({ settings: { className, perClient } }) =>
      perClient.map((settings) => ({ className, settings })),
    );
  }

  /** See `UpstreamQuotasParts.leaseWait`. */
  get leaseWait(): Millis {
    return this.#parts.leaseWait ?? 0;
  }

  /** Undefined if no class has quotas of single clients. */
  get bound(): ResourceBound | undefined {
    if (![...this.#classes.values()].some(({ settings }) => settings.perClient.length > 0)) return undefined;
    return { name: 'client_quotas', used: this.#clients.size / this.#maxClients, reached: this.#evictions };
  }

  get #maxClients(): number {
    return this.#parts.maxClients?.() ?? MAX_CLIENTS;
  }

  get #make(): ReturnType<typeof makeQuotas> {
    return makeQuotas(this.#upstream, this.#parts);
  }

  #makeClass(settings: ClassQuotaSettings): QuotaClass {
    const shared = new QuotaGroup('class', settings.shared, this.#make);
    return { shared, quotas: new ClientQuotas([shared], this.#parts.wallTimeAt), settings };
  }
}

function keyOf(className: string, client: string): string {
  return `${className}\0${client}`;
}

function settingsOf(perClient: readonly CalendarQuotaSettings[], client: string): CalendarQuotaSettings[] {
  return perClient.map((each) => ({ ...each, key: client }));
}
