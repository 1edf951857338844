import { QuotaScopeDetector } from './quota-scope.ts';
import { FixedWindowDetector } from './quota-window.ts';
import type { QuotaOwner, Requester } from './requester.ts';
import { ANY_REQUESTER } from './requester.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { Quota } from '../hints/hints.ts';

/** A quota is not paced while more than this share is left: it exists to allow bursts. */
const PACED_BELOW_SHARE = 0.5;
const MAX_ROUNDED_RESET: Millis = 2000;

/** Paces or stops requests by the quota that the upstream reports. A spent quota is a hard stop until its reset. */
export class QuotaPacing {
  /** The latest end of a stop by Retry-After. */
  #requestedStopUntil = Number.NEGATIVE_INFINITY;
  /** Until when the quota is spent, by the last report. */
  #spentUntil = Number.NEGATIVE_INFINITY;
  /** See `QuotaOwner`. */
  #isSpent = false;
  #knownUntil = Number.NEGATIVE_INFINITY;
  #rate: PerSecond = Number.POSITIVE_INFINITY;
  #left: number | undefined;
  /** When the request of the last report was sent. */
  #reportedSentAt = Number.NEGATIVE_INFINITY;
  readonly #window = new FixedWindowDetector();
  /** Created on first use: a limit of a single requester never needs it. */
  #scope: QuotaScopeDetector | undefined;

  /**
   * Applies a report. Returns false if requesters have quotas of their own: then nothing of it is kept here.
   * @param sentAt when the request of the report was sent: responses may arrive out of order
   */
  onQuota(quota: Quota, sentAt: Millis, now: Millis, requester: Requester = ANY_REQUESTER): boolean {
    if (!this.#appliesToAll(quota, requester, sentAt, now)) {
      this.#clear();
      return false;
    }
    if (sentAt < this.#reportedSentAt) return true;
    this.#reportedSentAt = sentAt;
    const { remaining, limit, resetIn } = quota;
    this.#left = limit === undefined || limit === 0 ? undefined : Math.min(1, remaining / limit);
    this.#isSpent = (quota.reportedRemaining ?? remaining) === 0;
    if (remaining > 0) this.#spentUntil = Number.NEGATIVE_INFINITY;
    if (resetIn === undefined) return true;
    this.#knownUntil = now + resetIn;
    const isWindow = this.#window.onQuota(remaining, limit, now + resetIn, now);
    if (remaining === 0) this.#spentUntil = isWindow ? now + resetIn : spentUntil(quota, resetIn, sentAt, now);
    this.#rate = pacedRate(quota, resetIn, this.#left, isWindow);
    return true;
  }

  /** Nothing is sent before `until`. */
  stop(until: Millis): void {
    this.#requestedStopUntil = Math.max(this.#requestedStopUntil, until);
  }

  /** Continues with a spent quota that another process knew of. */
  resume(owner: QuotaOwner, now: Millis): void {
    if (this.isPerRequester(now) || owner.until <= Math.max(now, this.#spentUntil)) return;
    this.#scope ??= new QuotaScopeDetector();
    this.#scope.resume(owner, now);
    this.#spentUntil = owner.until;
    this.#isSpent = owner.isSpent;
  }

  /** Whether the quota stops or paces requests. */
  isInForce(now: Millis): boolean {
    return now < this.#spentUntil || (now < this.#knownUntil && this.#rate < Number.POSITIVE_INFINITY);
  }

  /** Whether the quota in force covers this requester. */
  appliesTo(requester: Requester): boolean {
    return this.#scope?.appliesTo(requester) ?? true;
  }

  /** The requester that the quota covers; undefined if none is in force. */
  owner(now: Millis): QuotaOwner | undefined {
    if (!this.isInForce(now)) return undefined;
    const stop = { until: this.#spentUntil, isSpent: this.#isSpent };
    if (this.#scope === undefined) return { ...ANY_REQUESTER, isCommon: true, ...stop };
    const { credential, client, isCommon } = this.#scope;
    return { credential, client, isCommon, ...stop };
  }

  /** Whether requesters have quotas of their own. */
  isPerRequester(now: Millis): boolean {
    return this.#scope?.isPerRequester(now) ?? false;
  }

  /** Discards the quota. @param isPerRequester requesters are known to have quotas of their own */
  drop(isPerRequester: boolean, now: Millis): void {
    if (isPerRequester) {
      this.#scope ??= new QuotaScopeDetector();
      this.#scope.markPerRequester(now);
    }
    this.#clear();
  }

  /** Ends all stops. */
  clearStops(): void {
    this.#requestedStopUntil = Number.NEGATIVE_INFINITY;
    this.#spentUntil = Number.NEGATIVE_INFINITY;
  }

  /** Time until the stop ends; 0 if there is none. */
  delay(now: Millis): Millis {
    return Math.max(0, this.stopUntil - now);
  }

  /** The rate that the quota allows; Infinity if unknown or after its reset. */
  rate(now: Millis): PerSecond {
    return now < this.#knownUntil ? this.#rate : Number.POSITIVE_INFINITY;
  }

  /** Time until the reset of the known quota; 0 if unknown. */
  knownFor(now: Millis): Millis {
    return Math.max(0, this.#knownUntil - now);
  }

  get left(): number | undefined {
    return this.#left;
  }

  get stopUntil(): Millis {
    return Math.max(this.#requestedStopUntil, this.#spentUntil);
  }

  #appliesToAll(quota: Quota, requester: Requester, sentAt: Millis, now: Millis): boolean {
    if (this.#scope === undefined) {
      if (requester.credential === undefined && requester.client === undefined) return true;
      this.#scope = new QuotaScopeDetector();
    }
    return this.#scope.onQuota(requester, quota, sentAt, now);
  }

  #clear(): void {
    this.#spentUntil = Number.NEGATIVE_INFINITY;
    this.#knownUntil = Number.NEGATIVE_INFINITY;
    this.#rate = Number.POSITIVE_INFINITY;
    this.#left = undefined;
  }
}

/** Whether so little is left that the quota may stop or pace requests. */
export function isQuotaScarce({ remaining, limit, resetIn }: Quota): boolean {
  if (resetIn === undefined || resetIn === 0) return false;
  return remaining === 0 || (limit !== undefined && remaining <= PACED_BELOW_SHARE * limit);
}

/** When a spent quota is available again, if it is not known to be a fixed window. */
export function spentUntil(quota: Quota, resetIn: Millis, sentAt: Millis, now: Millis): Millis {
  return isRoundedReset(resetIn) ? sentAt + tokenTime(quota) : now + resetIn;
}

/** Whether the reset is so short a time in whole seconds that it only means "soon": the next token may be milliseconds away. */
function isRoundedReset(resetIn: Millis): boolean {
  return resetIn <= MAX_ROUNDED_RESET && resetIn % 1000 === 0;
}

/** The time in which a bucket regains one token; 0 if unknown. */
function tokenTime({ limit, window }: Quota): Millis {
  return limit === undefined || limit === 0 || window === undefined ? 0 : window / limit;
}

/**
 * The rate that spreads the remaining quota over the time until its reset, once half of it is used. A bucket, whose reset
 * is when it is full, refills before that: there the rate is at least quota ÷ window. Infinity if neither is known.
 */
function pacedRate(quota: Quota, resetIn: Millis, left: number | undefined, isWindow: boolean): PerSecond {
  const { remaining, limit, window } = quota;
  if (resetIn === 0 || remaining === 0) return Number.POSITIVE_INFINITY;
  if (left === undefined || left > PACED_BELOW_SHARE) return Number.POSITIVE_INFINITY;
  const spread = (1000 * remaining) / resetIn;
  if (isWindow) return spread;
  if (limit === undefined || window === undefined || window === 0) return Number.POSITIVE_INFINITY;
  return Math.max(spread, (1000 * limit) / window);
}
