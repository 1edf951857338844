import type { CalendarQuotaSettings, Instant, QuotaView } from '../../core/quota/calendar/calendar-quota.ts';
import { ConsumptionRate } from '../../core/quota/calendar/consumption-rate.ts';
import { type EpochMillis, periodId } from '../../core/quota/calendar/quota-period.ts';
import type { UpstreamQuota } from '../../core/quota/calendar/upstream-quota.ts';
import type { Clock, Millis, PerSecond } from '../../core/scalars.ts';
import { denialOf, denialWithoutReply, isHeldBack, type LeaseDenial, RETRY_AFTER, UNKNOWN } from './lease-denial.ts';
import { LeasedParts } from './leased-parts.ts';
import type { CallKeeper, QuotaReturn, QuotaTerms } from './quota-protocol.ts';

export interface LeasedQuotaParts {
  readonly upstream: string;
  readonly clock: Clock;
  readonly call: CallKeeper;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  /** A lease was granted or denied: serves or refuses the requests that wait for it. */
  readonly onSupplied: () => void;
  /** The keeper may lose its counts, so this process reports them each second, and shows them. Otherwise the keeper does. */
  readonly isKeeperForgetful: boolean;
}

/** For how long at the recent rate parts are leased ahead. */
const LEASED_FOR: Millis = 500;
const AVERAGING_TIME: Millis = 2000;
/** Parts that were not used for this time are returned. */
const SYNC_INTERVAL: Millis = 1000;
/** As in `CalendarQuota`: after this time, most admitted requests have been sent, and idle processes have returned their parts. */
const RESERVED_FOR: Millis = 1000;

/**
 * A quota that other processes use, too. One keeper counts it, and this process leases parts of what is left: a few ahead while
 * requests are frequent, one at a time otherwise, so that few leases are idle when the quota runs out.
 */
export class LeasedQuota implements UpstreamQuota {
  readonly #parts: LeasedQuotaParts;
  readonly #leased = new LeasedParts();
  readonly #consumption = new ConsumptionRate(AVERAGING_TIME);
  #settings: CalendarQuotaSettings;
  #terms: QuotaTerms | undefined = undefined;
  /** The part of the period to which `#leased` belongs; undefined before the first terms. */
  #since: EpochMillis | undefined = undefined;
  #beganAt: Millis = 0;
  #validUntil: Millis = Number.NEGATIVE_INFINITY;
  #denials: Readonly<Record<'ordinary' | 'priority', LeaseDenial>> = { ordinary: UNKNOWN, priority: UNKNOWN };
  #returns: QuotaReturn[] = [];
  /** Not reported for certain. */
  #overdrawn = 0;
  #isCalling = false;
  #wants = { ordinary: false, priority: false };
  /** While at most this many are in hand, more are leased. */
  #lowWater = Number.NEGATIVE_INFINITY;
  #usedAt: Millis = Number.NEGATIVE_INFINITY;
  #isHolding = false;
  #isClosed = false;
  #cancelSync: (() => void) | undefined = undefined;
  #hasNoCount = false;

  constructor(settings: CalendarQuotaSettings, parts: LeasedQuotaParts) {
    this.#settings = settings;
    this.#parts = parts;
    if (parts.isKeeperForgetful) this.#scheduleSync(0);
  }

  get settings(): CalendarQuotaSettings {
    return this.#settings;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get isAwaited(): boolean {
    return this.#isCalling;
  }

  get isLost(): boolean {
    return this.#hasNoCount || (this.#terms !== undefined && isHeldBack(this.#terms));
  }

  reconfigure(settings: CalendarQuotaSettings): void {
    this.#settings = settings;
    this.#denials = { ordinary: UNKNOWN, priority: UNKNOWN };
  }

  untilReset(hasPriority: boolean, { now }: Instant): Millis {
    if (this.#inHand(hasPriority, now) > 0) return 0;
    const { askAt, resetAt } = this.#denialFor(hasPriority);
    if (now < askAt) return Math.max(0, resetAt - now);
    return this.#hasNoCount ? RETRY_AFTER : 0;
  }

  returnDelay(hasPriority: boolean, instant: Instant): Millis {
    const untilReset = this.untilReset(hasPriority, instant);
    const mayReturn = this.#leased.reserved > 0 || (this.#terms?.heldByOthers ?? 0) > 0;
    return mayReturn ? Math.min(untilReset, RESERVED_FOR) : untilReset;
  }

  delay(hasPriority: boolean, { now }: Instant): Millis {
    if (this.#inHand(hasPriority, now) > 0) return 0;
    const { askAt, nextAt } = this.#denialFor(hasPriority);
    if (now < askAt) return Math.max(0, nextAt - now);
    this.#wants[hasPriority ? 'priority' : 'ordinary'] = true;
    if (!this.#isCalling) this.#call(now);
    return Number.POSITIVE_INFINITY;
  }

  expectedDelay(hasPriority: boolean, { now }: Instant): Millis {
    if (this.#inHand(hasPriority, now) > 0) return 0;
    const { askAt, nextAt } = this.#denialFor(hasPriority);
    return now < askAt ? Math.max(0, nextAt - now) : 0;
  }

  rate(hasPriority: boolean): PerSecond {
    if (this.#settings.pace === 'asNeeded' || this.#terms === undefined) return Number.POSITIVE_INFINITY;
    const { ordinary, priority, sharers } = this.#terms;
    return (hasPriority ? priority : ordinary).rate / Math.max(1, sharers);
  }

  reserve(hasPriority: boolean, _due: Millis, { now }: Instant): void {
    this.#leased.reserve(hasPriority);
    this.#usedAt = now;
  }

  release(): void {
    this.#leased.release();
  }

  onSent({ now }: Instant): void {
    this.#leased.onSent(now >= this.#validUntil);
    this.#consumption.onRequest(now);
    this.#usedAt = now;
    if (this.#isCalling) return;
    const left = this.#leased.inHand(false);
    if (left < 0 || (left <= this.#lowWater && now >= this.#denials.ordinary.askAt)) this.#call(now);
  }

  giveBack({ now: sentAt }: Pick<Instant, 'now'>): void {
    if (sentAt < this.#beganAt) return;
    this.#leased.giveBack();
    // The last sync may have found nothing in hand.
    this.#isHolding = true;
    if (!this.#isCalling && this.#cancelSync === undefined) this.#scheduleSync(SYNC_INTERVAL);
  }

  view(): QuotaView | undefined {
    return this.#parts.isKeeperForgetful ? this.#terms?.view : undefined;
  }

  /** Returns what is in hand, and later what is not sent after all, until it has reported that it holds nothing. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelSync?.();
    this.#cancelSync = undefined;
    this.#lowWater = Number.NEGATIVE_INFINITY;
    if (this.#isHolding || this.#leased.held > 0 || this.#returns.length > 0) this.#call(this.#parts.clock.now());
  }

  #inHand(hasPriority: boolean, now: Millis): number {
    return now < this.#validUntil ? this.#leased.inHand(hasPriority) : 0;
  }

  #denialFor(hasPriority: boolean): LeaseDenial {
    return hasPriority ? this.#denials.priority : this.#denials.ordinary;
  }

  #call(now: Millis): void {
    const { name, key, period, pace } = this.#settings;
    const ahead = pace === 'even' || this.#isClosed ? 0 : Math.floor(LEASED_FOR * this.#consumption.perMilli(now));
    this.#lowWater = ahead === 0 ? Number.NEGATIVE_INFINITY : ahead / 2;
    const isIdle = this.#isClosed || now - this.#usedAt >= SYNC_INTERVAL;
    if (isIdle) this.#returnUnused();
    const { ordinary, priority } = this.#wants;
    const missing = isIdle || now < this.#denials.ordinary.askAt ? 0 : ahead - Math.max(0, this.#inHand(false, now));
    const overdrawn = this.#overdrawn + this.#leased.settleOverdrawn();
    this.#overdrawn = 0;
    const returns = this.#returns;
    this.#returns = [];
    const { held } = this.#leased;
    this.#isHolding = held > 0;
    this.#isCalling = true;
    const want = Math.max(ordinary || priority ? 1 : 0, missing);
    this.#parts.call(
      {
        ...{ upstream: this.#parts.upstream, name, key, period: periodId(period), since: this.#since },
        ...{ want, isOrdinary: ordinary || missing > 0, mayUseReserve: priority, overdrawn, returns, held },
      },
      (terms) => {
        this.#isCalling = false;
        this.#wants = { ordinary: false, priority: false }; // requests that still lack one ask again
        if (terms === undefined) this.#onLost(overdrawn);
        else this.#onTerms(terms, now);
        this.#scheduleSync(SYNC_INTERVAL);
        this.#parts.onSupplied();
      },
      this.#settings,
    );
  }

  #onTerms(terms: QuotaTerms, sentAt: Millis): void {
    const now = this.#parts.clock.now();
    this.#hasNoCount = terms.isSettling === true;
    this.#terms = terms;
    const validUntil = sentAt + terms.validFor;
    if (terms.since !== this.#since) this.#begin(terms.since, sentAt, now);
    else if (now < validUntil) this.#leased.renew();
    this.#validUntil = validUntil;
    this.#leased.grant(terms.granted, terms.grantedReserve);
    this.#lowWater = Math.min(this.#lowWater, this.#leased.inHand(false) / 2);
    this.#isHolding ||= terms.granted + terms.grantedReserve > 0;
    this.#denials = { ordinary: denialOf(terms.ordinary, now), priority: denialOf(terms.priority, now) };
    if (this.#leased.inHand(false) < 0 || (this.#isClosed && this.#leased.inHand(true) > 0)) this.#call(now);
  }

  #begin(since: EpochMillis, sentAt: Millis, now: Millis): void {
    if (this.#since === undefined) this.#beganAt = sentAt;
    else {
      this.#returnUnused();
      this.#leased.begin();
      // If the clock of the keeper was set ahead, what was sent up to now belongs to the last part.
      this.#beganAt = this.#validUntil <= now ? this.#validUntil : now + 1;
    }
    this.#since = since;
  }

  /** What is in hand may still be used. */
  #onLost(overdrawn: number): void {
    this.#hasNoCount = true;
    this.#overdrawn += overdrawn;
    const denial = denialWithoutReply(this.#parts.clock.now());
    this.#denials = { ordinary: denial, priority: denial };
  }

  #returnUnused(): void {
    const count = this.#leased.takeUnused();
    if (count > 0 && this.#since !== undefined) this.#returns.push({ since: this.#since, count });
  }

  /** As long as something is in hand, this process reports how much. */
  #scheduleSync(delay: Millis): void {
    this.#cancelSync?.();
    this.#cancelSync = undefined;
    const isToReport = this.#parts.isKeeperForgetful || this.#returns.length > 0 || this.#overdrawn > 0;
    if (!this.#isHolding && (this.#isClosed || !isToReport)) return;
    this.#cancelSync = this.#parts.schedule(delay, () => {
      this.#cancelSync = undefined;
      if (!this.#isCalling) this.#call(this.#parts.clock.now());
    });
  }
}
