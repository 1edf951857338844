import { QuotaAudience } from './quota-scope.ts';
import { WindowEvidence } from './quota-window.ts';
import type { QuotaOwner, Requester } from './requester.ts';
import { ANYBODY } from './requester.ts';
import type { Millis, PerSecond, Quota } from '../exchange/attempt-outcome.ts';

/** While more than this share of a quota is left, it is not rationed: a burst is what a quota is for. */
const RATIONED_BELOW = 0.5;
const COARSE: Millis = 2000;

/** What the upstream itself tells of its quota. A hint beats learning: an empty quota is a hard stop until its reset. */
export class QuotaPace {
  /** Asked for by a Retry-After: the longest holds. */
  #askedUntil = Number.NEGATIVE_INFINITY;
  /** The quota is spent until then, as far as the last word on it goes. */
  #spentUntil = Number.NEGATIVE_INFINITY;
  /** As of `QuotaOwner`. */
  #isSpent = false;
  #freshUntil = Number.NEGATIVE_INFINITY;
  #rate: PerSecond = Number.POSITIVE_INFINITY;
  #left: number | undefined;
  /** When the request was sent whose answer had the last word. */
  #toldAt = Number.NEGATIVE_INFINITY;
  readonly #window = new WindowEvidence();
  /** Made when first needed: of a limit that is one requester's own it never is. */
  #audience: QuotaAudience | undefined;

  /**
   * Returns false where requesters have quotas of their own: then it is this one's, and nothing of it is kept here.
   * @param sentAt when the request was sent that was answered so: answers may overtake each other
   */
  note(quota: Quota, sentAt: Millis, now: Millis, requester: Requester = ANYBODY): boolean {
    if (!this.#isOfAll(quota, requester, sentAt, now)) {
      this.#forget();
      return false;
    }
    if (sentAt < this.#toldAt) return true;
    this.#toldAt = sentAt;
    const { remaining, limit, resetIn } = quota;
    this.#left = limit === undefined || limit === 0 ? undefined : Math.min(1, remaining / limit);
    this.#isSpent = (quota.told ?? remaining) === 0;
    if (remaining > 0) this.#spentUntil = Number.NEGATIVE_INFINITY;
    if (resetIn === undefined) return true;
    this.#freshUntil = now + resetIn;
    const isWindow = this.#window.note(remaining, limit, now + resetIn, now);
    if (remaining === 0) this.#spentUntil = isWindow ? now + resetIn : stopOf(quota, resetIn, sentAt, now);
    this.#rate = ration(quota, resetIn, this.#left, isWindow);
    return true;
  }

  /** Nothing leaves before this, whoever asked for it. */
  stop(until: Millis): void {
    this.#askedUntil = Math.max(this.#askedUntil, until);
  }

  /** It is spent, as another process was told. */
  resume(owner: QuotaOwner, now: Millis): void {
    if (this.isApart(now) || owner.until <= Math.max(now, this.#spentUntil)) return;
    this.#audience ??= new QuotaAudience();
    this.#audience.resume(owner, now);
    this.#spentUntil = owner.until;
    this.#isSpent = owner.isSpent;
  }

  /** Whether it holds anything back: then it is to be asked whom it is about. */
  isInForce(now: Millis): boolean {
    return now < this.#spentUntil || (now < this.#freshUntil && this.#rate < Number.POSITIVE_INFINITY);
  }

  /** Whether what is in force is about this one too. */
  includes(requester: Requester): boolean {
    return this.#audience?.includes(requester) ?? true;
  }

  /** Whom it is about; undefined where nothing is in force. */
  owner(now: Millis): QuotaOwner | undefined {
    if (!this.isInForce(now)) return undefined;
    const stop = { until: this.#spentUntil, isSpent: this.#isSpent };
    if (this.#audience === undefined) return { ...ANYBODY, isCommon: true, ...stop };
    const { credential, client, isCommon } = this.#audience;
    return { credential, client, isCommon, ...stop };
  }

  /** Requesters have quotas of their own. */
  isApart(now: Millis): boolean {
    return this.#audience?.isApart(now) ?? false;
  }

  /** It holds nobody here any longer. @param isApart as is known now, requesters have quotas of their own */
  disown(isApart: boolean, now: Millis): void {
    if (isApart) {
      this.#audience ??= new QuotaAudience();
      this.#audience.part(now);
    }
    this.#forget();
  }

  /** No stop holds any longer. */
  release(): void {
    this.#askedUntil = Number.NEGATIVE_INFINITY;
    this.#spentUntil = Number.NEGATIVE_INFINITY;
  }

  /** How long until the stop ends; 0 when there is none. */
  delay(now: Millis): Millis {
    return Math.max(0, this.stopUntil - now);
  }

  /** What the quota allows; Infinity where nothing is known, or what was known is over. */
  rate(now: Millis): PerSecond {
    return now < this.#freshUntil ? this.#rate : Number.POSITIVE_INFINITY;
  }

  /** How long until what is known is over; 0 when nothing is known. */
  holdsFor(now: Millis): Millis {
    return Math.max(0, this.#freshUntil - now);
  }

  get left(): number | undefined {
    return this.#left;
  }

  get stopUntil(): Millis {
    return Math.max(this.#askedUntil, this.#spentUntil);
  }

  #isOfAll(quota: Quota, requester: Requester, sentAt: Millis, now: Millis): boolean {
    if (this.#audience === undefined) {
      if (requester.credential === undefined && requester.client === undefined) return true;
      this.#audience = new QuotaAudience();
    }
    return this.#audience.note(requester, quota, sentAt, now);
  }

  #forget(): void {
    this.#spentUntil = Number.NEGATIVE_INFINITY;
    this.#freshUntil = Number.NEGATIVE_INFINITY;
    this.#rate = Number.POSITIVE_INFINITY;
    this.#left = undefined;
  }
}

/** Whether so little is left that it may stop or pace. */
export function isScarce({ remaining, limit, resetIn }: Quota): boolean {
  if (resetIn === undefined || resetIn === 0) return false;
  return remaining === 0 || (limit !== undefined && remaining <= RATIONED_BELOW * limit);
}

/** When a quota may be had again that is spent, and is not known to be a window's. */
export function stopOf(quota: Quota, resetIn: Millis, sentAt: Millis, now: Millis): Millis {
  return isCoarse(resetIn) ? sentAt + tokenTime(quota) : now + resetIn;
}

/** Told in whole seconds, and so short that this says no more than "soon": a bucket's next token may be milliseconds away. */
function isCoarse(resetIn: Millis): boolean {
  return resetIn <= COARSE && resetIn % 1000 === 0;
}

/** How long one request's part of the quota takes to come back; 0 where that is not told. */
function tokenTime({ limit, window }: Quota): Millis {
  return limit === undefined || limit === 0 || window === undefined ? 0 : window / limit;
}

/**
 * Once half of it is gone, what is left is spread over the time that is left. Of a bucket, whose reset is when it would
 * be full, it may be had again before: there quota ÷ window is the least. Where neither is known nothing is rationed.
 */
function ration(quota: Quota, resetIn: Millis, left: number | undefined, isWindow: boolean): PerSecond {
  const { remaining, limit, window } = quota;
  if (resetIn === 0 || remaining === 0) return Number.POSITIVE_INFINITY;
  if (left === undefined || left > RATIONED_BELOW) return Number.POSITIVE_INFINITY;
  const spread = (1000 * remaining) / resetIn;
  if (isWindow) return spread;
  if (limit === undefined || window === undefined || window === 0) return Number.POSITIVE_INFINITY;
  return Math.max(spread, (1000 * limit) / window);
}
