import type { CutCause } from '../events.ts';
import type { Millis, PerSecond, Random } from '../types.ts';
import type { SendAccount } from './account.ts';
import type { RateSettings, RateState } from './state.ts';
import { clamp, FAST_GROWTH } from './state.ts';

/** δ: how far a small cut goes, and how far a probe reaches above the ceiling in half of K. */
export const DELTA = 0.05;
/** Rejections come in flocks: those of one round trip, and at least of this, are one signal. */
const EPOCH: Millis = 200;
/** With next to nothing accepted to go by, start from here: a 429 out of the blue says little about a rate. */
const FLOOR: PerSecond = 5;
/** A rate is not judged by less than this: a burst is no rate. */
const SHORTEST_SPAN: Millis = 250;

/** One cut per epoch: a request that left before the last cut, or within a round trip of it, did not feel that cut yet. */
export function isSameEpoch(state: RateState, sentAt: Millis): boolean {
  return sentAt <= state.cutAt + Math.max(state.smoothedRtt, EPOCH);
}

/**
 * The first 429 while open: what was accepted over the last second is the limit, and a little below it is safe. Where
 * requests began to come less than a second ago, it is what was accepted since then.
 */
export function cutFirst(state: RateState, account: SendAccount, now: Millis): PerSecond {
  const span = clamp(account.busyFor(now, 1000), SHORTEST_SPAN, 1000);
  const accepted = Math.max(FLOOR, account.acceptedRate(now, span));
  state.ceiling = Math.min(accepted, state.rate);
  return 0.9 * state.ceiling;
}

/** A later 429: small where the ceiling is remembered, deep where much was lost or the last cut was not enough. */
export function cutAgain(state: RateState, account: SendAccount, now: Millis): { rate: PerSecond; cause: CutCause } {
  const { rate } = state;
  state.ceiling = rate;

  const cycle = clamp(now - state.cutAt, 1000, account.span);
  const accepted = account.acceptedRate(now, cycle);
  if (state.cycleRejected >= 4 && state.cycleRejected > 0.15 * state.cycleSent) {
    return { rate: clamp(0.975 * accepted, 0.5 * rate, 0.95 * rate), cause: 'heavy' };
  }
  if (state.grown < state.growFor / 2) {
    return { rate: clamp(accepted, 0.7 * rate, 0.95 * rate), cause: 'heavy' };
  }
  return { rate: (1 - DELTA) * rate, cause: 'small' };
}

/** What every cut does: hold, forget the growth so far, and plan the next. */
export function settleCut(
  state: RateState,
  settings: RateSettings,
  rate: PerSecond,
  now: Millis,
  random: Random,
): void {
  state.rate = clamp(rate, settings.minRate, settings.maxRate);
  state.rateAtCut = state.rate;
  state.phase = 'backoff';
  state.cutAt = now;
  state.holdUntil = now + settings.cooldown;
  state.growFor = planGrowth(state, random);
  state.grown = 0;
  state.cycleSent = 0;
  state.cycleRejected = 0;
}

/** What probing may cost: one rejection for so many requests sent. */
export const SENT_PER_REJECTION = 130;

/**
 * K: so long that what the next probe will lose is a small part of what is sent until then, and longer where each loss
 * is dear. Jittered, so that replicas do not probe in step.
 */
function planGrowth(state: RateState, random: Random): Millis {
  return clamp(slowGrowth(state), FAST_GROWTH, 60_000) * (0.8 + 0.4 * random());
}

function slowGrowth({ found, usualLoss, lost, cost, rate }: RateState): Millis {
  if (found !== 'near') return 5000 * cost;
  return Math.max((1000 * SENT_PER_REJECTION * Math.max(usualLoss, lost)) / rate, 10_000 * cost);
}

/** Smoothed over rejections: one long Retry-After is an accident, a series of them is a price. */
export function noteCost(state: RateState, seconds: number): void {
  state.cost = (state.cost + seconds) / 2;
}

/** A rejection out of calm: what the one before has cost in all is known now. */
export function noteLoss(state: RateState): void {
  if (state.lost > 0 && state.found === 'near') state.usualLoss = (state.usualLoss + state.lost) / 2;
  state.lost = 0;
  state.found = 'near';
}
