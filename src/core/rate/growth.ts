import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';
import type { SendAccount } from './send-history.ts';
import { DELTA } from './decrease.ts';
import type { RateState } from './rate-state.ts';

/** Below this share of the rate, with nothing queued, demand is the limit and growth would say nothing. */
const USED_SHARE = 0.6;
const USED_UP = 0.9;
/** Without a rejection for this long, at a rate that nobody fills, the limit counts as gone. */
const CALM: Millis = 120_000;

/**
 * Cubic growth (the window curve of RFC 9438, over a rate): flat where the limit was felt, steep away from it.
 * Restore: ceiling − (ceiling − cut)(1 − u/K)³ for u < K. Probe: ceiling · (1 + δ((u − K)/(K/2))³) above.
 */
export function rateOnCurve({ ceiling, rateAtCut, grown, growFor }: RateState): PerSecond {
  if (grown < growFor) return ceiling - (ceiling - rateAtCut) * (1 - grown / growFor) ** 3;
  return ceiling * (1 + DELTA * ((grown - growFor) / (growFor / 2)) ** 3);
}

/** So far beyond the ceiling without a rejection, and it says nothing any more. */
const STALE = 1.2;

/** Whether the limit is far above where it was felt. */
export function isStale({ rate, ceiling, grown, growFor }: RateState): boolean {
  return grown > growFor && rate > STALE * ceiling;
}

/** The ceiling is a guess now: growth goes on from the same point of the curve with the K of one. */
export function hasten(state: RateState, growFor: Millis): void {
  if (growFor >= state.growFor) return;
  state.grown *= growFor / state.growFor;
  state.growFor = growFor;
}

/**
 * Whether demand is the limit, so that growth would say nothing. Back to the ceiling a rate may grow while it is used at
 * all; beyond it only while it is used up, or a higher rate would be believed that nobody has tried.
 */
export function isApplicationLimited(state: RateState, recent: SendAccount, now: Millis, queued: boolean): boolean {
  const sent = recent.sentRate(now, 1000);
  if (state.grown >= state.growFor) return sent + 1 < USED_UP * state.rate;
  return !queued && sent < USED_SHARE * state.rate;
}

export function isCalm(state: RateState, now: Millis): boolean {
  return now - Math.max(state.lastRejectedAt, state.cutAt) > CALM;
}
