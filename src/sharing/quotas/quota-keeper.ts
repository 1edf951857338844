import {
  CalendarQuota,
  type CalendarQuotaSettings,
  CARRIED_RETRY,
  type Instant,
  type QuotaView,
  SHARER_WINDOW,
  SILENT_AFTER,
} from '../../core/quota/calendar/calendar-quota.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import { storeTogether } from '../../core/quota/calendar/quota-journal.ts';
import { type EpochMillis, periodId } from '../../core/quota/calendar/quota-period.ts';
import type { UpstreamQuotasParts } from '../../core/quota/calendar/upstream-quotas.ts';
import { type ClassQuotaSettings, MAX_CLIENTS } from '../../core/quota/clients/class-quotas.ts';
import { type ForQuotasOfClient, useStoredQuota } from '../../core/quota/clients/client-quota-inspection.ts';
import type { Millis } from '../../core/scalars.ts';
import { KeptClientQuotas, type KeptQuota, type QuotaMember } from './kept-client-quotas.ts';
import type { QuotaCall, QuotaDelays, QuotaTerms } from './quota-protocol.ts';

/** A process holds at most this part of an equal share of what is left, or one request: leases shrink as the quota runs out. */
export const LEASE_SHARE = 1 / 8;

/** A quota of several clients, or the pattern of those of single clients. */
interface ConfiguredQuota {
  readonly upstream: string;
  readonly settings: CalendarQuotaSettings;
}

/** All quotas of an upstream, in the configuration. */
interface KeptQuotaSettings {
  readonly name: string;
  /** None when absent. */
  readonly quotas?: readonly CalendarQuotaSettings[] | undefined;
  readonly classQuotas?: readonly ClassQuotaSettings[] | undefined;
}

type QuotaKeeperParts = Pick<UpstreamQuotasParts, 'wallTimeAt' | 'journal'>;

/** Counts the quotas of several workers. A leased part counts as used, so the end of a worker never makes the count too low. */
export class QuotaKeeper {
  readonly #parts: QuotaKeeperParts;
  readonly #workers = new Set<number>();
  #quotas = new Map<string, KeptQuota>();
  #templates = new Map<string, ConfiguredQuota>();
  /** By upstream. */
  readonly #ofClients = new Map<string, KeptClientQuotas>();
  #maxClients = MAX_CLIENTS;

  constructor(parts: QuotaKeeperParts) {
    this.#parts = parts;
  }

  /**
   * Keeps the counts of quotas whose upstream, name and period stay the same.
   * @param maxClients whose quotas are in memory, at each upstream
   */
  configure(upstreams: Iterable<KeptQuotaSettings>, maxClients = MAX_CLIENTS): void {
    this.#maxClients = maxClients;
    storeTogether(this.#parts.journal, () => this.#apply(upstreams));
  }

  #apply(upstreams: Iterable<KeptQuotaSettings>): void {
    const before = this.#quotas;
    this.#quotas = new Map();
    this.#templates = new Map();
    const next = new Map<string, ConfiguredQuota>();
    for (const { name: upstream, quotas = [], classQuotas = [] } of upstreams) {
      for (const settings of [...quotas, ...classQuotas.flatMap(({ shared }) => shared)]) {
        next.set(idOf(upstream, settings), { upstream, settings });
      }
      for (const settings of classQuotas.flatMap(({ perClient }) => perClient)) {
        this.#templates.set(idOf(upstream, settings), { upstream, settings });
      }
    }
    // First: one with the same name and another period takes over the place in the journal.
    for (const [id, { quota }] of before) if (!next.has(id)) quota.close();
    for (const [id, { upstream, settings }] of next) {
      const known = before.get(id);
      known?.quota.reconfigure(settings);
      this.#quotas.set(id, known ?? this.#make(upstream, settings));
    }
    for (const clients of this.#ofClients.values()) clients.retain((kept) => this.#reconfigure(kept));
  }

  /** Closes the quota of a client if the configuration no longer has it, and returns false. */
  #reconfigure({ upstream, quota }: KeptQuota): boolean {
    const { key } = quota.settings;
    const template = this.#templates.get(idOf(upstream, { ...quota.settings, key: undefined }));
    if (template === undefined) quota.close();
    else quota.reconfigure({ ...template.settings, key });
    return template !== undefined;
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
    for (const { members } of this.#quotas.values()) members.delete(worker);
    for (const clients of this.#ofClients.values()) clients.leave(worker);
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
    const { start: since, end } = quota.part(instant);
    const carried = countCarried(kept, worker, since, now);
    const [granted, grantedReserve] = this.#grant(quota, call, carried, instant);
    const member = members.get(worker) ?? {
      ...{ held: 0, calledAt: now, countedSince: since, wantedAt: Number.NEGATIVE_INFINITY },
    };
    member.calledAt = now;
    if (call.held === 0 || call.since === undefined || call.since === since) member.countedSince = since;
    member.held = call.held + granted + grantedReserve;
    if (call.want > 0) member.wantedAt = now;
    if (this.#workers.has(worker)) members.set(worker, member);
    if (call.key !== undefined) this.#ofClients.get(call.upstream)?.onCalled(call.key, this.#maxClients);
    const view = quota.view(instant);
    const ordinary = delaysOf(quota, false, carried, instant);
    const priority = delaysOf(quota, true, carried, instant);
    const sharers = countSharers(members.values(), priority.rate, now);
    const heldByOthers = [...members].reduce((sum, [each, { held }]) => sum + (each === worker ? 0 : held), 0);
    const terms = { granted, grantedReserve, since, validFor: end - instant.at };
    return { ...terms, ordinary, priority, sharers, heldByOthers, view };
  }

  #find({ upstream, name, key, period }: QuotaCall): KeptQuota | undefined {
    const id = formatId(upstream, name, period, key);
    if (key === undefined) return this.#quotas.get(id);
    const template = this.#templates.get(formatId(upstream, name, period, undefined));
    if (template === undefined) return undefined;
    const clients = this.#ofClients.get(upstream) ?? new KeptClientQuotas(this.#parts.journal);
    this.#ofClients.set(upstream, clients);
    return clients.find(key, id, () => this.#make(upstream, { ...template.settings, key }));
  }

  readonly forClient: ForQuotasOfClient = (client, use) =>
    [...this.#templates.values()].flatMap(({ upstream, settings }) => {
      const own = { ...settings, key: client };
      const kept = this.#ofClients.get(upstream)?.peek(client, idOf(upstream, own));
      if (kept !== undefined) return use(upstream, kept.quota);
      return useStoredQuota(upstream, own, this.#parts.journal, (quota) => use(upstream, quota)) ?? [];
    });

  /** Of the quotas of single clients, at the upstream with the most of them; undefined if there are none. */
  get bound(): ResourceBound | undefined {
    if (this.#templates.size === 0) return undefined;
    const ofUpstreams = [...this.#ofClients.values()];
    const most = Math.max(0, ...ofUpstreams.map(({ size }) => size));
    const reached = ofUpstreams.reduce((sum, { evictions }) => sum + evictions, 0);
    return { name: 'client_quotas', used: most / this.#maxClients, reached };
  }

  /** Those of single clients may be many, and are left out. */
  views(now: Millis): QuotaView[] {
    const instant = this.#instant(now);
    return [...this.#quotas.values()].map(({ quota }) => quota.view(instant));
  }

  /** @param carried see `countCarried` */
  #grant(
    quota: CalendarQuota,
    call: QuotaCall,
    carried: number,
    instant: Instant,
  ): readonly [ordinary: number, ofReserve: number] {
    const { remaining, reserve } = quota.view(instant);
    const share = Math.floor((LEASE_SHARE * remaining) / Math.max(1, this.#workers.size));
    const most = Math.min(call.want, Math.max(1, share - call.held), remaining - reserve - carried);
    let granted = 0;
    for (; granted < most && quota.delay(false, instant) === 0; granted += 1) take(quota, !call.isOrdinary, instant);
    const lacksOne = granted === 0 && call.want > 0;
    if (!lacksOne || !call.mayUseReserve || remaining <= carried || quota.delay(true, instant) > 0) return [granted, 0];
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

/**
 * Counts the parts that other processes have held since before the reset: a request that was admitted then may be sent now, and counts in
 * this period. A process reports how many these are once it has terms of the period: with its second call in it. What was leased of a
 * rolling period still counts, unless an operator has reset the count since.
 */
function countCarried({ quota, members }: KeptQuota, worker: number, since: EpochMillis, now: Millis): number {
  const begunAt = quota.settings.period.kind === 'rolling' ? quota.resetAt : since;
  let carried = 0;
  for (const [each, { held, countedSince, calledAt }] of members) {
    if (each !== worker && countedSince < begunAt && now - calledAt <= SILENT_AFTER) carried += held;
  }
  return carried;
}

function delaysOf(quota: CalendarQuota, hasPriority: boolean, carried: number, instant: Instant): QuotaDelays {
  const { remaining, reserve } = quota.view(instant);
  const left = (hasPriority ? remaining : remaining - reserve) - carried;
  const atLeast = carried > 0 && left <= 0 ? CARRIED_RETRY : 0;
  return {
    untilReset: Math.max(atLeast, quota.untilReset(hasPriority, instant)),
    delay: Math.max(atLeast, quota.delay(hasPriority, instant)),
    rate: quota.rate(hasPriority, instant),
  };
}

/** A process that waits for its turn calls once in the interval of an even pace. */
function countSharers(members: Iterable<QuotaMember>, rate: number, now: Millis): number {
  const since = now - Math.max(SHARER_WINDOW, 2000 / rate);
  return [...members].filter(({ wantedAt }) => wantedAt >= since).length;
}

function idOf(upstream: string, { name, key, period }: CalendarQuotaSettings): string {
  return formatId(upstream, name, periodId(period), key);
}

function formatId(upstream: string, name: string, period: string, key: string | undefined): string {
  return JSON.stringify([upstream, name, period, key]);
}
