import type { LimitRef } from '../../policy/limit-ref.ts';
import type { LocalMeter } from '../../policy/meter.ts';
import type { RateSettings } from '../../policy/rate/state.ts';
import type { Millis } from '../../policy/types.ts';
import type { Terms } from './words.ts';

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
    expectedAt: now + meter.expected(now),
    quotaLeft,
    quotaOwner: meter.quotaOwner(now),
    isQuotaApart: meter.isQuotaApart(now),
    validFor,
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
    told.isProbeOut !== terms.isProbeOut ||
    told.isQuotaApart !== terms.isQuotaApart ||
    Math.abs(told.rate - terms.rate) > 0.05 * told.rate
  );
}

/** No two limits have one name, in whatever process. */
export function nameOf({ upstream, nested, scope, key }: LimitRef): string {
  return nested === '' ? `${upstream}\0${scope}\0${key}` : `${upstream}\0${scope}\0${key}\0${nested}`;
}
