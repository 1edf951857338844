import type { LimitState } from '../../core/limits/limit-state.ts';
import type { LocalMeter } from '../../core/limits/local-meter.ts';
import type { LatencyLimit } from '../../core/rate/in-flight-limiter.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import { clientHeldUntilIn, isBlockedBy } from '../../core/rate/breaker/active-block.ts';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import { areSameAttributes } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';

/** The state of a shared limit as its members see it. Times are those of the clock that the transport agrees on. */
export interface LimitTerms {
  /** Increases with each decrease of the rate: tokens of an earlier epoch are void. */
  readonly epoch: number;
  readonly phase: LimitState;
  /** Nothing limits: requests go without a token, and are only reported. */
  readonly isUnlimited: boolean;
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
  readonly concurrencyLimit: number | undefined;
  /** The concurrency limit is on requests without a response: latency has shown it. */
  readonly limitsUnanswered: boolean;
  /** See `LatencyLimit.isTest`. */
  readonly isLatencyTest: boolean;
  readonly blockedUntil: Millis | undefined;
  /** The active block; undefined if there is none. */
  readonly block: BlockStatus | undefined;
  /** When the next request is expected to leave. */
  readonly expectedAt: Millis;
  /** Another member holds the probe of a blocked limit, or the probe has been sent. */
  readonly isProbeOut: boolean;
  /** This member waits for a token until some request, of any member, has ended: as many are in flight as may be. */
  readonly awaitsPlace: boolean;
  readonly quotaLeft: number | undefined;
  /** The requesters that the quota in force applies to; undefined if no quota is in force. */
  readonly quotaOwner: QuotaOwner | undefined;
  /** Each requester has a quota of its own, which holds only that requester. */
  readonly isQuotaPerRequester: boolean;
  /** The total weight of the other members where requests wait. */
  readonly otherWeight: number;
  /** The total weight of the other members: of the clients that wait there or are to return. */
  readonly otherDemandWeight: number;
  /** Requests of the other members that have no response yet, of use only under a limit on these. */
  readonly otherUnanswered: number;
  /** Members report when a request has its response. */
  readonly countsResponses: boolean;
  /** How long a token may be used after its time. */
  readonly validFor: Millis;
}

/** The terms before the first update. With a configured rate, no request goes without a token. */
export function initialTerms({ initialRate, maxRate }: RateSettings): LimitTerms {
  const rate = Math.min(initialRate ?? Number.POSITIVE_INFINITY, maxRate);
  return {
    epoch: 0,
    phase: initialRate === undefined ? 'open' : 'restoring',
    isUnlimited: rate === Number.POSITIVE_INFINITY,
    rate,
    ceiling: rate,
    concurrencyLimit: undefined,
    limitsUnanswered: false,
    isLatencyTest: false,
    blockedUntil: undefined,
    block: undefined,
    expectedAt: Number.NEGATIVE_INFINITY,
    isProbeOut: false,
    awaitsPlace: false,
    quotaLeft: undefined,
    quotaOwner: undefined,
    isQuotaPerRequester: false,
    countsResponses: false,
    otherWeight: 0,
    otherDemandWeight: 0,
    otherUnanswered: 0,
    validFor: 0,
  };
}

/** The terms without what differs from one member to another. */
export type CommonLimitTerms = Omit<
  LimitTerms,
  'isProbeOut' | 'awaitsPlace' | 'otherWeight' | 'otherDemandWeight' | 'otherUnanswered'
>;

export function termsFromMeter(meter: LocalMeter, epoch: number, validFor: Millis, now: Millis): CommonLimitTerms {
  const { phase, ceiling, concurrencyLimit, latencyLimit, blockedUntil, quotaLeft } = meter;
  const rate = meter.rate(now);
  return {
    epoch,
    phase,
    isUnlimited: rate === Number.POSITIVE_INFINITY && concurrencyLimit === undefined && meter.delay(now) === 0,
    rate,
    ceiling,
    blockedUntil,
    block: meter.block(now),
    expectedAt: now + meter.expectedDelay(now),
    quotaLeft,
    quotaOwner: meter.quotaOwner(now),
    isQuotaPerRequester: meter.isQuotaPerRequester(now),
    countsResponses: meter.countsResponses,
    validFor,
    ...concurrencyTerms(concurrencyLimit, latencyLimit),
  };
}

/** The limit on requests in flight, or on those without a response. */
export function concurrencyTerms(
  concurrencyLimit: number | undefined,
  latencyLimit: LatencyLimit | undefined,
): Pick<LimitTerms, 'concurrencyLimit' | 'limitsUnanswered' | 'isLatencyTest'> {
  const limitsUnanswered = latencyLimit !== undefined && latencyLimit.size === concurrencyLimit;
  return { concurrencyLimit, limitsUnanswered, isLatencyTest: limitsUnanswered && latencyLimit.isTest };
}

/** Whether a block or a stop holds back a request. @param source absent if nothing is known of the request */
export function isHeldBack({ block, blockedUntil }: LimitTerms, now: Millis, source?: RequestAttributes): boolean {
  if (blockedUntil === undefined) return block !== undefined && isBlockedBy(block, source);
  if (block === undefined) return blockedUntil > now;
  // A stop ends later than the next probe of the block.
  return isBlockedBy(block, source) || blockedUntil > (block.isPartial ? now : block.probeAt);
}

/** How long a request is expected to wait. @param token how long it would wait for a token alone */
export function expectedDelayUnder(
  { block }: LimitTerms,
  token: Millis,
  now: Millis,
  source?: RequestAttributes,
): Millis {
  if (block === undefined) return token;
  if (!isBlockedBy(block, source)) return block.isPartial ? token : 0;
  const probe = block.isPartial ? Math.max(token, block.expectedAt - now) : token;
  return Math.max(probe, clientHeldUntilIn(block, source) - now);
}

/** For how long a probe has been due and has not left; 0 while none is due. */
export function probeOverdue({ block, phase, blockedUntil, isProbeOut }: LimitTerms, now: Millis): Millis {
  if (block?.isPartial === true) return Math.max(0, now - block.probeAt);
  if (phase !== 'blocked' || blockedUntil === undefined || isProbeOut) return 0;
  return Math.max(0, now - blockedUntil);
}

/** These terms without their quota, which belongs to another requester. @param isPerRequester each requester has its own */
export function withoutQuota(terms: LimitTerms, isPerRequester: boolean, now: Millis): LimitTerms {
  const { blockedUntil, quotaOwner, expectedAt } = terms;
  return {
    ...terms,
    quotaOwner: undefined,
    isQuotaPerRequester: terms.isQuotaPerRequester || isPerRequester,
    blockedUntil: blockedUntil === quotaOwner?.until ? undefined : blockedUntil,
    expectedAt: Math.min(expectedAt, now),
  };
}

/** Whether a limit has changed so much that all its members need the new terms before they ask. */
export function hasLimitChanged(before: LimitTerms, after: LimitTerms): boolean {
  return (
    before.epoch !== after.epoch ||
    before.phase !== after.phase ||
    before.isUnlimited !== after.isUnlimited ||
    before.concurrencyLimit !== after.concurrencyLimit ||
    before.limitsUnanswered !== after.limitsUnanswered ||
    before.isLatencyTest !== after.isLatencyTest ||
    before.isQuotaPerRequester !== after.isQuotaPerRequester ||
    !isSameBlock(before.block, after.block)
  );
}

/**
 * Whether a member that has the terms `before` needs those of `after`: also for a new stop or probe, if it now waits for a
 * place or no longer, for 5 % of the rate, or for a quarter of the requests that may be without a response.
 */
export function haveTermsChanged(before: LimitTerms, after: LimitTerms): boolean {
  return (
    hasLimitChanged(before, after) ||
    before.blockedUntil !== after.blockedUntil ||
    before.isProbeOut !== after.isProbeOut ||
    before.awaitsPlace !== after.awaitsPlace ||
    Math.abs(before.rate - after.rate) > 0.05 * before.rate ||
    (after.limitsUnanswered &&
      Math.abs(before.otherUnanswered - after.otherUnanswered) > 0.25 * (after.concurrencyLimit ?? 0))
  );
}

function isSameBlock(before: BlockStatus | undefined, after: BlockStatus | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  const isSameSpan = before.since === after.since && before.probeAt === after.probeAt;
  return isSameSpan && before.isPartial === after.isPartial && areSameAttributes(before.scope, after.scope);
}
