import type { AccountNotice } from '../../core/accounts/account-notice.ts';
import type { ClientHold } from '../../core/limits/client-holds.ts';
import { limitId } from '../../core/limits/limit-ref.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Millis } from '../../core/scalars.ts';
import type { SharingHooks } from '../../store/memory-store-options.ts';
import { applyAccountNotice } from '../protocol/apply-account-notice.ts';
import type { StoreBinding } from '../protocol/store-binding.ts';
import type { ReportUrgency } from '../protocol/usage-recorder.ts';
import { LeasedMeter } from '../protocol/leased-meter.ts';
import { initialTerms } from '../protocol/limit-terms.ts';
import { countTokensNeeded } from '../protocol/token-demand.ts';
import { NoticeOutbox } from '../protocol/notice-outbox.ts';
import { countDemand, DemandSampler } from '../protocol/demand-groups.ts';
import type { LimitUsageReport, LimitUpdate, UsageReport, LimitUpdates } from './worker-protocol.ts';

/**
 * The delay of a report, in which others join it. Each report costs the primary processor time that a worker could use to
 * serve, so that reports that nothing waits for are rarer still.
 */
const REPORT_WITHIN: Readonly<Record<ReportUrgency, Millis>> = { now: 0, soon: 5, 'with-next-report': 5, later: 50 };
/** How often the groups that wait are reported, and those that are to return. */
const GROUPS_REPORT_INTERVAL = { waiting: 50, returning: 500 } as const;
/** How often the weight of the groups is compared with the reported one, and at least how often those that wait are reported. */
const DEMAND_CHECK_INTERVAL: Millis = 200;
/** How often unused tokens are looked for. */
const SURPLUS_CHECK_INTERVAL: Millis = 10;

export interface LimitClientParts {
  /** Arranges that `flush` is called within this time; 0: at the end of this turn of the event loop. May be called often. */
  readonly schedule: (within: Millis) => void;
  readonly send: (report: UsageReport) => void;
}

/** Shares the limits of one worker with the limit server: collects reports, and applies updates. */
export class LimitClient implements SharingHooks {
  readonly #parts: LimitClientParts;
  readonly #meters = new Map<string, LeasedMeter>();
  /** Meters that have something to report. */
  readonly #changed = new Set<LeasedMeter>();
  /** Meters that have tokens in hand. */
  readonly #withTokens = new Set<LeasedMeter>();
  /** Meters of limits that are divided by clients, where groups wait or are to return. */
  readonly #withDemand = new Set<LeasedMeter>();
  #demandCheckedAt: Millis = Number.NEGATIVE_INFINITY;
  readonly #samplers = new Map<LeasedMeter, DemandSampler>();
  #unsentHolds: ClientHold[] = [];
  readonly #notices = new NoticeOutbox();
  #binding: StoreBinding | undefined;
  readonly #earlyUpdates: LimitUpdates[] = [];
  /** The shortest delay requested since the last report. */
  #reportWithin: Millis = Number.POSITIVE_INFINITY;

  constructor(parts: LimitClientParts) {
    this.#parts = parts;
  }

  /** Makes the meter of a limit, for the store. */
  makeMeter(_ref: LimitRef, rate: RateSettings): LeasedMeter {
    return new LeasedMeter(initialTerms(rate), (meter, urgency) => this.#requestReport(meter, urgency));
  }

  onLimitCreated(limit: Limit): void {
    const { learnedMeter: meter } = limit;
    if (!(meter instanceof LeasedMeter)) return;
    meter.limit = limit;
    this.#meters.set(limitId(limit.ref), meter);
    countDemand(limit, () => {
      this.#withDemand.add(meter);
      this.#parts.schedule(DEMAND_CHECK_INTERVAL);
    });
  }

  onLimitForgotten(limit: Limit): void {
    if (!(limit.learnedMeter instanceof LeasedMeter)) return;
    const name = limitId(limit.ref);
    if (this.#meters.get(name) === limit.learnedMeter) this.#meters.delete(name); // another limit may have the name by now
    this.#samplers.delete(limit.learnedMeter);
    this.#withDemand.delete(limit.learnedMeter);
  }

  onClientHeld(hold: ClientHold): void {
    this.#unsentHolds.push(hold);
    this.#parts.schedule(REPORT_WITHIN.soon);
  }

  onAccountChanged(notice: AccountNotice): void {
    this.#notices.add(notice);
    this.#parts.schedule(REPORT_WITHIN.now);
  }

  /** Connects the store, and applies the updates that arrived before. */
  bind(binding: StoreBinding, now: Millis): void {
    this.#binding = binding;
    for (const updates of this.#earlyUpdates.splice(0)) this.onUpdates(updates, now);
  }

  /** Sends all that there is to report. */
  flush(now: Millis): void {
    this.#reportWithin = Number.POSITIVE_INFINITY;
    for (const meter of this.#withTokens) {
      meter.returnExpired(now);
      if (meter.limit !== undefined) meter.returnSurplus(countTokensNeeded(meter.limit, this.#binding?.store));
      if (meter.inHand === 0) this.#withTokens.delete(meter);
    }
    this.#checkDemand(now);
    const limits: LimitUsageReport[] = [];
    for (const meter of this.#changed) {
      const report = this.#report(meter, now);
      if (report !== undefined) limits.push(report);
    }
    this.#changed.clear();
    if (this.#withTokens.size > 0) this.#parts.schedule(SURPLUS_CHECK_INTERVAL);
    const [holds, accounts] = [this.#unsentHolds, this.#notices.take(now)];
    if (this.#notices.dueAt !== undefined) this.#parts.schedule(this.#notices.dueAt - now);
    if (limits.length === 0 && holds.length === 0 && accounts.length === 0) return;
    this.#unsentHolds = [];
    this.#parts.send(accounts.length === 0 ? { limits, holds } : { limits, holds, accounts });
  }

  onUpdates(updates: LimitUpdates, now: Millis): void {
    const binding = this.#binding;
    if (binding === undefined) {
      this.#earlyUpdates.push(updates);
      return;
    }
    for (const hold of updates.holds) binding.store.applyHold(hold, now);
    for (const notice of updates.accounts ?? []) applyAccountNotice(binding, notice, now);
    for (const update of updates.limits) this.#applyUpdate(update, binding, now);
  }

  #applyUpdate(update: LimitUpdate, { store, onTokensSupplied }: StoreBinding, now: Millis): void {
    const { ref, terms, shares } = update;
    // Requests may still wait at a limit that a reload has removed.
    const known = this.#meters.get(limitId(ref));
    // The server may know a limit before this worker does, or longer. It repeats its terms when this worker reports.
    if (!store.has(ref.upstream) || (known === undefined && !store.isConfigured(ref))) return;
    const meter = known ?? (terms.isUnlimited ? undefined : store.findOrCreateLimit(ref).learnedMeter);
    if (!(meter instanceof LeasedMeter) || meter.limit === undefined) return;
    const hasUnreported = meter.isUnlimited && !meter.usageLog.isEmpty;
    meter.applyUpdate(update);
    // The limit has just been met: the usage not reported yet shows how much of it this worker uses.
    if (hasUnreported && !meter.isUnlimited) this.#requestReport(meter, 'now');
    if (shares !== undefined) {
      meter.limit.demand?.setWaitingShares(new Map(shares.waiting));
      meter.limit.demand?.returns?.setShares(new Map(shares.returning));
    }
    if (meter.inHand > 0) this.#withTokens.add(meter);
    if (this.#withTokens.size > 0) this.#parts.schedule(SURPLUS_CHECK_INTERVAL);
    onTokensSupplied(meter.limit, now);
  }

  #checkDemand(now: Millis): void {
    if (this.#withDemand.size === 0) return;
    if (now - this.#demandCheckedAt >= DEMAND_CHECK_INTERVAL) {
      this.#demandCheckedAt = now;
      for (const meter of this.#withDemand) {
        if (this.#areGroupsDue(meter, now) || meter.hasWeightChanged(now)) this.#changed.add(meter);
        if (meter.limit?.demand?.isEmpty(now) !== false) this.#withDemand.delete(meter);
      }
    }
    this.#parts.schedule(DEMAND_CHECK_INTERVAL);
  }

  /** Whether groups wait and are to be reported again, although nothing has changed. */
  #areGroupsDue(meter: LeasedMeter, now: Millis): boolean {
    return (
      this.#withDemand.has(meter) &&
      meter.limit?.demand?.hasWaiting === true &&
      this.#samplerOf(meter).isOlderThan(DEMAND_CHECK_INTERVAL, now)
    );
  }

  #requestReport(meter: LeasedMeter, urgency: ReportUrgency): void {
    this.#changed.add(meter);
    const within = REPORT_WITHIN[urgency];
    if (within >= this.#reportWithin) return;
    this.#reportWithin = within;
    this.#parts.schedule(within);
  }

  #report(meter: LeasedMeter, now: Millis): LimitUsageReport | undefined {
    const { limit } = meter;
    if (limit === undefined) return undefined;
    const isDue = this.#areGroupsDue(meter, now);
    const demand = meter.takeDemandChange(countTokensNeeded(limit, this.#binding?.store), now, isDue);
    const usage = meter.usageLog.take();
    if (demand === undefined) return usage.length === 0 ? undefined : { ref: limit.ref, usage };
    const groups = this.#samplerOf(meter).take(limit, true, now);
    if (limit.demand?.hasWaiting === true && limit.demand.returns !== undefined) {
      this.#withDemand.add(meter);
      this.#parts.schedule(DEMAND_CHECK_INTERVAL);
    }
    return { ref: limit.ref, usage, demand: { ...demand, groups } };
  }

  #samplerOf(meter: LeasedMeter): DemandSampler {
    const known = this.#samplers.get(meter);
    if (known !== undefined) return known;
    const sampler = new DemandSampler(GROUPS_REPORT_INTERVAL);
    this.#samplers.set(meter, sampler);
    return sampler;
  }
}
