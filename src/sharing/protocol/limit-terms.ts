import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { LocalMeter } from '../../core/limits/meter.ts';
import type { Block } from '../../core/rate/breaker/active-block.ts';
import { awayUntil, isHeldBy } from '../../core/rate/breaker/active-block.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Source } from '../../core/rate/breaker/request-attributes.ts';
import { isSame } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Terms } from '../workers/worker-protocol.ts';

/** How a limit is taken to stand before anything was heard of it: where one is known beforehand, nothing goes without a token. */
export function startingTerms({ initialRate, maxRate }: RateSettings): Terms {
  const rate = Math.min(initialRate ?? Number.POSITIVE_INFINITY, maxRate);
  return {
    epoch: 0,
    phase: initialRate === undefined ? 'open' : 'restoring',
    isFree: rate === Number.POSITIVE_INFINITY,
    rate,
    ceiling: rate,
    places: undefined,
    blockedUntil: undefined,
    block: undefined,
    expectedAt: Number.NEGATIVE_INFINITY,
    isProbeOut: false,
    quotaLeft: undefined,
    quotaOwner: undefined,
    isQuotaApart: false,
    others: 0,
    validFor: 0,
  };
}

/** How a limit stands, but for what differs from one leaseholder to the other. */
export type CommonTerms = Omit<Terms, 'isProbeOut' | 'others'>;

export function termsOf(meter: LocalMeter, epoch: number, validFor: Millis, now: Millis): CommonTerms {
  const { phase, ceiling, places, blockedUntil, quotaLeft } = meter;
  const rate = meter.rate(now);
  return {
    epoch,
    phase,
    isFree: rate === Number.POSITIVE_INFINITY && places === undefined && meter.delay(now) === 0,
    rate,
    ceiling,
    places,
    blockedUntil,
    block: meter.block(now),
    expectedAt: now + meter.expected(now),
    quotaLeft,
    quotaOwner: meter.quotaOwner(now),
    isQuotaApart: meter.isQuotaApart(now),
    validFor,
  };
}

/** Whether a request is held back, by a block or by a stop. @param source absent where nothing is known of it */
export function isHeldUnder({ block, blockedUntil }: Terms, now: Millis, source?: Source): boolean {
  if (blockedUntil === undefined) return block !== undefined && isHeldBy(block, source);
  if (block === undefined) return blockedUntil > now;
  // Beyond its next probe, there is a stop.
  return isHeldBy(block, source) || blockedUntil > (block.isPartial ? now : block.probeAt);
}

/** How long a request may expect to wait. @param token how long it would for a token alone */
export function expectedUnder({ block }: Terms, token: Millis, now: Millis, source?: Source): Millis {
  if (block === undefined) return token;
  if (!isHeldBy(block, source)) return block.isPartial ? token : 0;
  const probe = block.isPartial ? Math.max(token, block.expectedAt - now) : token;
  return Math.max(probe, awayUntil(block, source) - now);
}

/** For how long a probe has been due and none has left; 0 when none is due. */
export function probeOverdueUnder({ block, phase, blockedUntil, isProbeOut }: Terms, now: Millis): Millis {
  if (block?.isPartial === true) return Math.max(0, now - block.probeAt);
  if (phase !== 'blocked' || blockedUntil === undefined || isProbeOut) return 0;
  return Math.max(0, now - blockedUntil);
}

/** These terms without their quota, which has turned out to be another's. @param isApart each requester has one of its own */
export function withoutQuota(terms: Terms, isApart: boolean, now: Millis): Terms {
  const { blockedUntil, quotaOwner, expectedAt } = terms;
  return {
    ...terms,
    quotaOwner: undefined,
    isQuotaApart: terms.isQuotaApart || isApart,
    blockedUntil: blockedUntil === quotaOwner?.until ? undefined : blockedUntil,
    expectedAt: Math.min(expectedAt, now),
  };
}

/** Whether a leaseholder that was told the one has to hear of the other though it asked for nothing. */
export function isNews(told: Terms, terms: Terms): boolean {
  return (
    told.epoch !== terms.epoch ||
    told.phase !== terms.phase ||
    told.isFree !== terms.isFree ||
    told.places !== terms.places ||
    told.blockedUntil !== terms.blockedUntil ||
    !isSameBlock(told.block, terms.block) ||
    told.isProbeOut !== terms.isProbeOut ||
    told.isQuotaApart !== terms.isQuotaApart ||
    Math.abs(told.rate - terms.rate) > 0.05 * told.rate
  );
}

/** Whether who was told of the one need not hear of the other. */
export function isSameBlock(told: Block | undefined, block: Block | undefined): boolean {
  if (told === undefined || block === undefined) return told === block;
  const isAsLong = told.since === block.since && told.probeAt === block.probeAt;
  return isAsLong && told.isPartial === block.isPartial && isSame(told.scope, block.scope);
}

/** No two limits have one name, in whatever process. */
export function nameOf({ upstream, nested, scope, key }: LimitRef): string {
  return nested === '' ? `${upstream}\0${scope}\0${key}` : `${upstream}\0${scope}\0${key}\0${nested}`;
}
