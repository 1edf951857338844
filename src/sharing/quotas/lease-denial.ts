import type { Millis } from '../../core/scalars.ts';
import type { QuotaDelays, QuotaTerms } from './quota-protocol.ts';

/** A denial is valid for this time at most: other processes may return parts. */
const BELIEVED_FOR: Millis = 1000;
/** Delay before the next call if one gets no response. */
export const RETRY_AFTER: Millis = 500;

/** When there may be parts to lease again, according to the keeper of the count. */
export interface LeaseDenial {
  /** By the count; in the past if it is not used up. */
  readonly resetAt: Millis;
  /** By the count and an even pace. */
  readonly nextAt: Millis;
  /** Until then, this is valid without a call. */
  readonly askAt: Millis;
}

export const UNKNOWN: LeaseDenial = { resetAt: 0, nextAt: 0, askAt: Number.NEGATIVE_INFINITY };

export function denialOf({ untilReset, delay }: QuotaDelays, now: Millis): LeaseDenial {
  const nextAt = now + delay;
  return { resetAt: now + untilReset, nextAt, askAt: Math.min(nextAt, now + BELIEVED_FOR) };
}

/** After a call without a response. */
export function denialWithoutReply(now: Millis): LeaseDenial {
  const retryAt = now + RETRY_AFTER;
  return { resetAt: retryAt, nextAt: retryAt, askAt: retryAt };
}

/** Whether nothing can be leased, although not all is used: other processes may still send the rest. */
export function isHeldBack({ ordinary, view }: QuotaTerms): boolean {
  return ordinary.untilReset > 0 && view.remaining > view.reserve;
}
