import { RecencyMap } from '../../collections/recency-map.ts';
import type { Limit } from '../../limits/limit.ts';
import type { ResourceBound } from '../../overload/resource-bound.ts';
import type { Millis } from '../../scalars.ts';
import { CalendarQuota, type CalendarQuotaSettings, type QuotaView } from './calendar-quota.ts';
import { QuotaGroup } from './quota-group.ts';
import type { QuotaJournal } from './quota-journal.ts';
import type { EpochMillis } from './quota-period.ts';
import { RequestQuotas, type RequestQuotasParts } from './request-quotas.ts';
import type { UpstreamQuota } from './upstream-quota.ts';

export interface UpstreamQuotasParts {
  /** The wall clock at a time of the gate's clock, as it is now: later, somebody may set it. */
  readonly wallTimeAt: (now: Millis) => EpochMillis;
  /** Undefined if the counts end with the process. */
  readonly journal?: QuotaJournal | undefined;
  /** Makes a quota that is counted elsewhere; absent if this process counts them. */
  readonly makeQuota?: ((upstream: string, settings: CalendarQuotaSettings) => UpstreamQuota) | undefined;
  /** How long a request waits for its part at least, whatever `maxWait` is: the time that a response of the count takes; 0 when absent. */
  readonly leaseWait?: Millis | undefined;
  /** The maximum number of clients whose quotas are in memory; `MAX_CLIENTS` when absent. */
  readonly maxClients?: number | undefined;
}

/** The quotas of a class of clients at an upstream. */
export interface ClassQuotaSettings {
  readonly className: string;
  /** Of all its clients together. */
  readonly shared: readonly CalendarQuotaSettings[];
  /** Of each of its clients that has proven its name. */
  readonly perClient: readonly CalendarQuotaSettings[];
}

/** All quotas of an upstream, in the configuration. */
export interface UpstreamQuotaSettings {
  /** None when absent. */
  readonly quotas?: readonly CalendarQuotaSettings[] | undefined;
  /** None when absent. */
  readonly classQuotas?: readonly ClassQuotaSettings[] | undefined;
}

/** The part of a ticket by which its quotas are found. */
export interface QuotaRequester {
  /** The client's hashed identity. */
  readonly client: string;
  readonly className: string | undefined;
  /** Its client has proven its name, so that it cannot choose another one. */
  readonly isClientProven: boolean;
}

export const MAX_CLIENTS = 100_000;

interface ClassQuotas {
  readonly shared: QuotaGroup;
  /** Of requests of clients that have not proven their names. */
  readonly unproven: RequestQuotas;
  perClient: readonly CalendarQuotaSettings[];
}

interface ClientQuotas {
  readonly className: string;
  readonly client: string;
  readonly own: QuotaGroup;
  readonly requests: RequestQuotas;
}

/**
 * The calendar quotas at one upstream: its own, those of the classes of clients, and those of single clients. The latter are made when
 * a client is first seen. Beyond `maxClients`, those of the client that was not seen for longest are closed: what is counted stays in
 * the journal, or where it is counted.
 */
export class UpstreamQuotas {
  readonly #upstream: string;
  readonly #parts: UpstreamQuotasParts;
  readonly #requestParts: RequestQuotasParts;
  readonly #own: QuotaGroup;
  /** Of requests of clients whose class has no quotas. */
  readonly unclassed: RequestQuotas;
  readonly #classes = new Map<string, ClassQuotas>();
  readonly #clients = new RecencyMap<string, ClientQuotas>();
  #evictions = 0;
  /** Limits at which requests wait for a part that was requested. */
  readonly #awaiting = new Set<Limit>();

  constructor(upstream: string, settings: UpstreamQuotaSettings, parts: UpstreamQuotasParts) {
    this.#upstream = upstream;
    this.#parts = parts;
    const { wallTimeAt, leaseWait } = parts;
    this.#requestParts = { wallTimeAt, leaseWait, onWaiting: (limit) => this.#onWaiting(limit) };
    this.#own = new QuotaGroup('upstream', [], this.#make);
    this.unclassed = new RequestQuotas(this.#own, [], this.#requestParts);
    this.reconfigure(settings);
  }

  /** Keeps the counts of quotas whose class, name and period stay the same. */
  reconfigure({ quotas = [], classQuotas = [] }: UpstreamQuotaSettings): void {
    this.#own.reconfigure(quotas);
    const names = new Set(classQuotas.map(({ className }) => className));
    for (const [name, { shared }] of this.#classes) {
      if (names.has(name)) continue;
      shared.reconfigure([]);
      this.#classes.delete(name);
    }
    for (const { className, shared, perClient } of classQuotas) {
      const known = this.#classes.get(className);
      known?.shared.reconfigure(shared);
      if (known !== undefined) known.perClient = perClient;
      else this.#classes.set(className, this.#makeClass(shared, perClient));
    }
    for (const [key, { className, client, own }] of this.#clients) {
      const perClient = this.#classes.get(className)?.perClient ?? [];
      own.reconfigure(perClient.map((each) => ({ ...each, key: client })));
      if (perClient.length === 0) this.#clients.delete(key);
    }
  }

  /** Returns the quotas of a request; undefined if none applies. */
  select(requester: QuotaRequester): RequestQuotas | undefined {
    const selected = this.#select(requester);
    return selected.isEmpty ? undefined : selected;
  }

  #select({ client, className, isClientProven }: QuotaRequester): RequestQuotas {
    const ofClass = className === undefined ? undefined : this.#classes.get(className);
    if (className === undefined || ofClass === undefined) return this.unclassed;
    const { shared, unproven, perClient } = ofClass;
    if (!isClientProven || perClient.length === 0) return unproven;
    const key = `${className}\0${client}`;
    const known = this.#clients.use(key);
    if (known !== undefined) return known.requests;
    const settings = perClient.map((each) => ({ ...each, key: client }));
    const own = new QuotaGroup('client', settings, this.#make);
    const requests = new RequestQuotas(this.#own, [shared, own], this.#requestParts);
    this.#clients.set(key, { className, client, own, requests });
    if (this.#clients.size > this.#maxClients) this.#evictOldest();
    return requests;
  }

  /** Returns the limits to be served now that parts have come, or were denied. */
  takeAwaiting(): Limit[] {
    const limits = [...this.#awaiting];
    this.#awaiting.clear();
    return limits;
  }

  /** Those of the upstream and of classes: single clients may be many. */
  views(now: Millis): QuotaView[] {
    const instant = { now, at: this.#parts.wallTimeAt(now) };
    const groups = [this.#own, ...[...this.#classes.values()].map(({ shared }) => shared)];
    return groups.flatMap(({ quotas }) => quotas.flatMap((quota) => quota.view(instant) ?? []));
  }

  /** Undefined if no class has quotas of single clients. */
  get bound(): ResourceBound | undefined {
    if (![...this.#classes.values()].some(({ perClient }) => perClient.length > 0)) return undefined;
    return { name: 'client_quotas', used: this.#clients.size / this.#maxClients, reached: this.#evictions };
  }

  get #maxClients(): number {
    return this.#parts.maxClients ?? MAX_CLIENTS;
  }

  readonly #make = (settings: CalendarQuotaSettings): UpstreamQuota => {
    const { makeQuota, journal } = this.#parts;
    return makeQuota?.(this.#upstream, settings) ?? new CalendarQuota(this.#upstream, settings, journal);
  };

  #makeClass(settings: readonly CalendarQuotaSettings[], perClient: readonly CalendarQuotaSettings[]): ClassQuotas {
    const shared = new QuotaGroup('class', settings, this.#make);
    return { shared, unproven: new RequestQuotas(this.#own, [shared], this.#requestParts), perClient };
  }

  #evictOldest(): void {
    this.#evictions += 1;
    this.#clients.deleteOldest()?.own.close();
  }

  /** The requests of a queue may wait for parts of different clients, so any reply may concern it. */
  #onWaiting(limit: Limit): void {
    const isLeased = this.#parts.makeQuota !== undefined;
    const isAwaited = this.#classes.size > 0 ? isLeased : this.#own.quotas.some((quota) => quota.isAwaited);
    if (isAwaited) this.#awaiting.add(limit);
  }
}
