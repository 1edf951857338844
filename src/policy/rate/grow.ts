import type { Millis, PerSecond } from '../types.ts';
import type { SendAccount } from './account.ts';
import { DELTA } from './cut.ts';
import type { RateSettings, RateState } from './state.ts';
import { clamp, FAST_GROWTH } from './state.ts';

/** Below this share of the rate, with nothing queued, demand is the limit and growth would say nothing. */
const USED_SHARE = 0.6;
const USED_UP = 0.9;
/** Without a rejection for this long, at a rate that nobody fills, the limit counts as gone. */
const CALM: Millis = 120_000;

/**
 * Cubic growth (the window curve of RFC 9438, over a rate): flat where the limit was felt, steep away from it.
 * Restore: ceiling − (ceiling − cut)(1 − u/K)³ for u < K. Probe: ceiling · (1 + δ((u − K)/(K/2))³) above.
 */
export function rateOnCurve(state: RateState): PerSecond {
  const { ceiling, rateAtCut, grown, growFor } = state;
  if (grown < growFor) return ceiling - (ceiling - rateAtCut) * (1 - grown / growFor) ** 3;
  return ceiling * (1 + DELTA * ((grown - growFor) / (growFor / 2)) ** 3);
}

/** One step of growth over `elapsed`. */
export function grow(
  state: RateState,
  settings: RateSettings,
  account: SendAccount,
  now: Millis,
  elapsed: Millis,
): void {
  state.grown += elapsed;
  const target = rateOnCurve(state);
  if (target > 1.1 * state.ceiling) hasten(state);
  // Never far beyond what has been seen to pass: an idle hour proves nothing about a higher rate.
  const proven = Math.max(2 * account.acceptedRate(now, 1000), state.rateAtCut);
  state.rate = Math.min(settings.maxRate, Math.max(state.rate, Math.min(target, proven)));
}

/**
 * Whether demand is the limit, so that growth would say nothing. Back to the ceiling a rate may grow while it is used at
 * all; beyond it only while it is used up.
 */
export function isApplicationLimited(state: RateState, account: SendAccount, now: Millis, queued: boolean): boolean {
  const sent = account.sentRate(now, 1000);
  if (state.grown >= state.growFor) return sent + 1 < USED_UP * state.rate;
  return !queued && sent < USED_SHARE * state.rate;
}

export function isCalm(state: RateState, now: Millis): boolean {
  return now - Math.max(state.lastRejectedAt, state.cutAt) > CALM;
}

/** The ceiling is stale: go on from the same point of the curve with the fastest K. */
function hasten(state: RateState): void {
  const fastest = clamp(10_000 * state.cost, FAST_GROWTH, 60_000);
  if (state.growFor <= fastest) return;
  const beyond = (state.grown - state.growFor) / (state.growFor / 2);
  state.growFor = fastest;
  state.grown = fastest + beyond * (fastest / 2);
}
