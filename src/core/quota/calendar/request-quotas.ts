import type { Limit } from '../../limits/limit.ts';
import type { Millis, PerSecond } from '../../scalars.ts';
import type { Instant } from './calendar-quota.ts';
import type { QuotaGroup, QuotaSubject } from './quota-group.ts';
import type { EpochMillis } from './quota-period.ts';
import type { UpstreamQuota } from './upstream-quota.ts';

/**
 * Whether the quotas of the client and its class count a request. They count it once: `this_attempt` if its attempt under way is the
 * first that was sent, so that it is given back if nothing was sent after all.
 */
export type ClientCharge = 'none' | 'this_attempt' | 'earlier_attempt';

/** The part of a ticket that a quota depends on. */
export interface QuotaRequest {
  /** The weight of the class of its client; a client without a class has 1. */
  readonly classWeight: number;
  /** `none` when absent. */
  readonly clientCharge?: ClientCharge;
}

/** A quota that is used up, for a refusal. */
export interface SpentQuota {
  readonly name: string;
  readonly subject: QuotaSubject;
  readonly limit: number;
  /** Only its reserve is left, which this request may not use. */
  readonly hasReserveLeft: boolean;
  readonly untilReset: Millis;
  readonly resetAt: EpochMillis;
  /** Whether it is used up is not known, because its count is not available. */
  readonly isLost?: boolean;
}

export interface RequestQuotasParts {
  /** See `UpstreamQuotasParts.wallTimeAt`. */
  readonly wallTimeAt: (now: Millis) => EpochMillis;
  /** See `UpstreamQuotasParts.leaseWait`. */
  readonly leaseWait?: Millis | undefined;
  /** See `RequestQuotas.onWaiting`. */
  readonly onWaiting: (limit: Limit) => void;
}

/** Whether a request may use the reserves: the weight of its class is above that of clients without one. */
export function hasPriority({ classWeight }: QuotaRequest): boolean {
  return classWeight > 1;
}

/**
 * The quotas that apply to the requests of one client at one upstream: those of the upstream, of its class, and its own. A request
 * needs a part of each. The upstream counts attempts; a client pays for its request once, and not for retries.
 */
export class RequestQuotas {
  readonly #ofUpstream: QuotaGroup;
  readonly #ofClient: readonly QuotaGroup[];
  readonly #parts: RequestQuotasParts;

  /** @param ofClient those of its class and its own */
  constructor(ofUpstream: QuotaGroup, ofClient: readonly QuotaGroup[], parts: RequestQuotasParts) {
    this.#ofUpstream = ofUpstream;
    this.#ofClient = ofClient;
    this.#parts = parts;
  }

  /** None applies to any request. */
  get isEmpty(): boolean {
    return this.#ofUpstream.quotas.length === 0 && this.#ofClient.every(({ quotas }) => quotas.length === 0);
  }

  /** See `UpstreamQuotasParts.leaseWait`; 0 if no quota applies to the request. */
  leaseWait(request: QuotaRequest): Millis {
    const { leaseWait = 0 } = this.#parts;
    return leaseWait > 0 && this.#applying(request).length > 0 ? leaseWait : 0;
  }

  /** Requests wait at this limit: it has to be served once a part that is requested has come. */
  onWaiting(limit: Limit): void {
    this.#parts.onWaiting(limit);
  }

  /** Whether requests of the same queue may differ in what they may use. */
  get hasReserve(): boolean {
    return this.#ofUpstream.quotas.some(({ settings }) => settings.reserve > 0);
  }

  /** Time until the request may be sent; 0 if it may be now. */
  delay(request: QuotaRequest, now: Millis): Millis {
    const instant = this.#instant(now);
    let longest = 0;
    for (const quota of this.#applying(request)) {
      longest = Math.max(longest, quota.delay(hasPriority(request), instant));
    }
    return longest;
  }

  /** See `UpstreamQuota.expectedDelay`. */
  expectedDelay(request: QuotaRequest, now: Millis): Millis {
    const instant = this.#instant(now);
    let longest = 0;
    for (const quota of this.#applying(request)) {
      longest = Math.max(longest, quota.expectedDelay(hasPriority(request), instant));
    }
    return longest;
  }

  /** The rate of an even pace; Infinity if there is none. */
  rate(request: QuotaRequest, now: Millis): PerSecond {
    const instant = this.#instant(now);
    let lowest = Number.POSITIVE_INFINITY;
    for (const quota of this.#applying(request)) lowest = Math.min(lowest, quota.rate(hasPriority(request), instant));
    return lowest;
  }

  /** The quota that is used up for the longest time; one of the client or its class comes before those of the upstream. */
  findSpent(request: QuotaRequest, now: Millis): SpentQuota | undefined {
    const instant = this.#instant(now);
    if (request.clientCharge === undefined || request.clientCharge === 'none') {
      const ofClient = longestSpent(this.#ofClient, request, instant);
      if (ofClient !== undefined) return ofClient;
    }
    return longestSpent([this.#ofUpstream], request, instant);
  }

  /** Time until the request may be sent by the counts alone; 0 if it may be now. */
  untilReset(request: QuotaRequest, now: Millis): Millis {
    const instant = this.#instant(now);
    let longest = 0;
    for (const quota of this.#applying(request)) {
      longest = Math.max(longest, quota.untilReset(hasPriority(request), instant));
    }
    return longest;
  }

  /** When a client that was refused for a quota should return: at the reset, or soon if the rest of the quota is only reserved. */
  returnDelay(request: QuotaRequest, now: Millis): Millis {
    const instant = this.#instant(now);
    let longest = 0;
    for (const quota of this.#applying(request)) {
      longest = Math.max(longest, quota.returnDelay(hasPriority(request), instant));
    }
    return longest;
  }

  /** Returns the quotas to be released: a reload may change them. See `UpstreamQuota.reserve`. */
  reserve(request: QuotaRequest, due: Millis, now: Millis): readonly UpstreamQuota[] {
    const instant = this.#instant(now);
    const quotas = this.#applying(request);
    for (const quota of quotas) quota.reserve(hasPriority(request), due, instant);
    return quotas;
  }

  /** Returns the quotas that count the attempt. */
  onSent(request: QuotaRequest, now: Millis): readonly UpstreamQuota[] {
    const instant = this.#instant(now);
    const quotas = this.#applying(request);
    for (const quota of quotas) quota.onSent(instant);
    return quotas;
  }

  /** @param counted what `onSent` returned at `sentAt` */
  giveBack(counted: readonly UpstreamQuota[], sentAt: Millis): void {
    const sent = this.#instant(sentAt);
    for (const quota of counted) quota.giveBack(sent);
  }

  #applying({ clientCharge = 'none' }: QuotaRequest): readonly UpstreamQuota[] {
    const { quotas } = this.#ofUpstream;
    if (this.#ofClient.length === 0 || clientCharge !== 'none') return quotas;
    return [...quotas, ...this.#ofClient.flatMap((group) => group.quotas)];
  }

  #instant(now: Millis): Instant {
    return { now, at: this.#parts.wallTimeAt(now) };
  }
}

function longestSpent(groups: readonly QuotaGroup[], request: QuotaRequest, instant: Instant): SpentQuota | undefined {
  let spent: SpentQuota | undefined;
  for (const { subject, quotas } of groups) {
    for (const quota of quotas) {
      const untilReset = quota.untilReset(hasPriority(request), instant);
      if (untilReset <= (spent?.untilReset ?? 0)) continue;
      const { name, limit } = quota.settings;
      const hasReserveLeft = quota.untilReset(true, instant) === 0;
      const resetAt = instant.at + untilReset;
      spent = { name, subject, limit, hasReserveLeft, untilReset, resetAt, ...(quota.isLost ? { isLost: true } : {}) };
    }
  }
  return spent;
}
