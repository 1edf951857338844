import {
  CalendarQuota,
  type CalendarQuotaSettings,
  type Instant,
  type QuotaView,
  SHARER_WINDOW,
} from '../../core/quota/calendar/calendar-quota.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import { periodId } from '../../core/quota/calendar/quota-period.ts';
import { RecencyMap } from '../../core/collections/recency-map.ts';
import {
  MAX_CLIENTS,
  type UpstreamQuotaSettings,
  type UpstreamQuotasParts,
} from '../../core/quota/calendar/upstream-quotas.ts';
import type { Millis } from '../../core/scalars.ts';
import type { QuotaCall, QuotaDelays, QuotaTerms } from './quota-protocol.ts';

/** A process holds at most this part of an equal share of what is left, or one request: leases shrink as the quota runs out. */
export const LEASE_SHARE = 1 / 8;

interface Member {
  /** Parts that it held at its last call. */
  held: number;
  wantedAt: Millis;
}

interface KeptQuota {
  readonly upstream: string;
  readonly quota: CalendarQuota;
  readonly members: Map<number, Member>;
}

/** Quotas of single clients, before one is known. */
interface ClientQuotaTemplate {
  readonly upstream: string;
  readonly settings: CalendarQuotaSettings;
}

type QuotaKeeperParts = Pick<UpstreamQuotasParts, 'wallTimeAt' | 'journal' | 'maxClients'>;

/** Counts the quotas of several workers. A leased part counts as used, so the end of a worker never makes the count too low. */
export class QuotaKeeper {
  readonly #parts: QuotaKeeperParts;
  readonly #workers = new Set<number>();
  #quotas = new Map<string, KeptQuota>();
  #templates = new Map<string, ClientQuotaTemplate>();
  /** Of single clients; the one that was not used for longest makes room for others. */
  readonly #ofClients = new RecencyMap<string, KeptQuota>();
  #evictions = 0;

  constructor(parts: QuotaKeeperParts) {
    this.#parts = parts;
  }

  /** Keeps the counts of quotas whose upstream, name and period stay the same. */
  configure(upstreams: Iterable<UpstreamQuotaSettings & { readonly name: string }>): void {
    const before = this.#quotas;
    this.#quotas = new Map();
    this.#templates = new Map();
    for (const { name: upstream, quotas = [], classQuotas = [] } of upstreams) {
      for (const settings of [...quotas, ...classQuotas.flatMap(({ shared }) => shared)]) {
        const id = idOf(upstream, settings);
        const known = before.get(id);
        known?.quota.reconfigure(settings);
        this.#quotas.set(id, known ?? this.#make(upstream, settings));
      }
      for (const settings of classQuotas.flatMap(({ perClient }) => perClient)) {
        this.#templates.set(idOf(upstream, settings), { upstream, settings });
      }
    }
    for (const [id, { upstream, quota }] of this.#ofClients) {
      const { key } = quota.settings;
      const template = this.#templates.get(idOf(upstream, { ...quota.settings, key: undefined }));
      if (template !== undefined) quota.reconfigure({ ...template.settings, key });
      else if (this.#ofClients.delete(id)) quota.close();
    }
  }

  #make(upstream: string, settings: CalendarQuotaSettings): KeptQuota {
    return { upstream, quota: new CalendarQuota(upstream, settings, this.#parts.journal), members: new Map() };
  }

  join(worker: number): void {
    this.#workers.add(worker);
  }

  /** A worker has ended. What it held may have been sent. */
  leave(worker: number): void {
    this.#workers.delete(worker);
    for (const quotas of [this.#quotas, this.#ofClients]) {
      for (const { members } of quotas.values()) members.delete(worker);
    }
  }

  /** Undefined if no quota has this name and period: during a reload, the primary and its workers change at different times. */
  onCall(worker: number, call: QuotaCall, now: Millis): QuotaTerms | undefined {
    const kept = this.#find(call);
    if (kept === undefined) return undefined;
    const { quota, members } = kept;
    const instant = this.#instant(now);
    for (const { since, count } of call.returns) {
      for (let i = 0; i < count; i += 1) quota.giveBack({ at: since });
    }
    for (let i = 0; i < call.overdrawn; i += 1) quota.onSent(instant);
    const [granted, grantedReserve] = this.#grant(quota, call, instant);
    const member = members.get(worker) ?? { held: 0, wantedAt: Number.NEGATIVE_INFINITY };
    member.held = call.held + granted + grantedReserve;
    if (call.want > 0) member.wantedAt = now;
    if (this.#workers.has(worker)) members.set(worker, member);
    const { start: since, end } = quota.part(instant);
    const view = quota.view(instant);
    const ordinary = delaysOf(quota, false, instant);
    const priority = delaysOf(quota, true, instant);
    const sharers = countSharers(members.values(), priority.rate, now);
    const heldByOthers = [...members].reduce((sum, [each, { held }]) => sum + (each === worker ? 0 : held), 0);
    const terms = { granted, grantedReserve, since, validFor: end - instant.at };
    return { ...terms, ordinary, priority, sharers, heldByOthers, view };
  }

  #find({ upstream, name, key, period }: QuotaCall): KeptQuota | undefined {
    const id = formatId(upstream, name, period, key);
    if (key === undefined) return this.#quotas.get(id);
    const known = this.#ofClients.use(id);
    if (known !== undefined) return known;
    const template = this.#templates.get(formatId(upstream, name, period, undefined));
    if (template === undefined) return undefined;
    const kept = this.#make(upstream, { ...template.settings, key });
    this.#ofClients.set(id, kept);
    if (this.#ofClients.size > this.#maxClients) {
      this.#evictions += 1;
      this.#ofClients.deleteOldest()?.quota.close();
    }
    return kept;
  }

  /** Of the quotas of single clients; undefined if there are none. */
  get bound(): ResourceBound | undefined {
    if (this.#templates.size === 0) return undefined;
    return { name: 'client_quotas', used: this.#ofClients.size / this.#maxClients, reached: this.#evictions };
  }

  get #maxClients(): number {
    return this.#parts.maxClients ?? MAX_CLIENTS;
  }

  /** Those of single clients may be many, and are left out. */
  views(now: Millis): QuotaView[] {
    const instant = this.#instant(now);
    return [...this.#quotas.values()].map(({ quota }) => quota.view(instant));
  }

  #grant(quota: CalendarQuota, call: QuotaCall, instant: Instant): readonly [ordinary: number, ofReserve: number] {
    const { remaining } = quota.view(instant);
    const share = Math.floor((LEASE_SHARE * remaining) / Math.max(1, this.#workers.size));
    const most = Math.min(call.want, Math.max(1, share - call.held));
    let granted = 0;
    for (; granted < most && quota.delay(false, instant) === 0; granted += 1) take(quota, !call.isOrdinary, instant);
    const lacksOne = granted === 0 && call.want > 0;
    if (!lacksOne || !call.mayUseReserve || quota.delay(true, instant) > 0) return [granted, 0];
    take(quota, true, instant);
    return [0, 1];
  }

  #instant(now: Millis): Instant {
    return { now, at: this.#parts.wallTimeAt(now) };
  }
}

function take(quota: CalendarQuota, hasPriority: boolean, instant: Instant): void {
  quota.reserve(hasPriority, instant.now, instant);
  quota.release();
  quota.onSent(instant);
}

function delaysOf(quota: CalendarQuota, hasPriority: boolean, instant: Instant): QuotaDelays {
  return {
    untilReset: quota.untilReset(hasPriority, instant),
    delay: quota.delay(hasPriority, instant),
    rate: quota.rate(hasPriority, instant),
  };
}

/** A process that waits for its turn calls once in the interval of an even pace. */
function countSharers(members: Iterable<Member>, rate: number, now: Millis): number {
  const since = now - Math.max(SHARER_WINDOW, 2000 / rate);
  return [...members].filter(({ wantedAt }) => wantedAt >= since).length;
}

function idOf(upstream: string, { name, key, period }: CalendarQuotaSettings): string {
  return formatId(upstream, name, periodId(period), key);
}

function formatId(upstream: string, name: string, period: string, key: string | undefined): string {
  return JSON.stringify([upstream, name, period, key]);
}
