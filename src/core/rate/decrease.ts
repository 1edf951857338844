import type { CutCause } from '../events/proxy-events.ts';
import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';
import type { SendAccount } from './send-history.ts';
import type { CutState, RateSettings, RateState } from './rate-state.ts';
import { clamp, feltAfter, smoothRtt } from './rate-state.ts';

/** δ: how far a small cut goes, and how far a probe reaches above the ceiling in half of K. */
export const DELTA = 0.05;
/** Rejections come in flocks: those of one round trip, and at least of this, are one signal. */
const EPOCH: Millis = 200;
/** One cut goes no deeper: what is refused is answered sooner than what is done. */
const DEEPEST_CUT = 0.7;
/** With next to nothing accepted to go by, start from here: a 429 out of the blue says little about a rate. */
const FLOOR: PerSecond = 5;
/** A rate is not judged by less than this: a burst is no rate. */
const SHORTEST_SPAN: Millis = 250;

/** What a cut comes to. */
export interface Cut {
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
  readonly cause: CutCause;
}

/**
 * One cut per epoch: a request that left before the last cut, or within a round trip of it, did not feel that cut yet;
 * and until something has been accepted that did, nobody knows whether it was enough.
 */
export function isSameEpoch(state: RateState, sentAt: Millis): boolean {
  const { phase, cutAt } = state;
  if (phase === 'open') return false;
  return phase === 'backoff' || sentAt <= cutAt + Math.max(feltAfter(state), EPOCH);
}

/**
 * The first 429 while open: what was accepted lately is the limit, and a little below it is safe.
 */
export function cutFirst({ rate }: RateState, recent: SendAccount, now: Millis): Cut {
  const ceiling = Math.min(rate, Math.max(FLOOR, acceptedLately(recent, now)));
  return { rate: 0.9 * ceiling, ceiling, cause: 'first' };
}

/**
 * As `cutFirst`, of the cut that was made: some of what had been accepted by then was told of since. Never
 * lower.
 */
export function reviseFirst(state: RateState, settings: RateSettings, recent: SendAccount): void {
  const isJustCut = state.phase === 'backoff' || state.phase === 'cooldown';
  if (!isJustCut || state.found !== 'first') return;
  const { rate, ceiling } = cutFirst({ ...state, rate: settings.maxRate }, recent, state.cutAt);
  if (rate <= state.rate) return;
  state.rate = rate;
  state.rateAtCut = rate;
  state.ceiling = ceiling;
}

/** Accepted a second over the last one, or since requests began to come, if that is less. */
export function acceptedLately(recent: SendAccount, now: Millis): PerSecond {
  return recent.acceptedRate(now, clamp(recent.busyFor(now, 1000), SHORTEST_SPAN, 1000));
}

/** Fewer rejections since the last cut, out of all that was answered, make no share. */
const FELT = 3;
/** How far the ceiling gives way to a rejection below it that may be chance. */
const GIVES_WAY = 0.03;

/**
 * A later 429: a small step below where it was felt. Below the ceiling, fewer than three may be chance, and the ceiling
 * stays nearly where it was. Where the last cut was not enough, and this is felt before half of K, a deep one: to the
 * share of what was sent since then that was accepted.
 */
export function cutAgain({ rate, ceiling, cycleAccepted, cycleRejected, grown, growFor }: RateState): Cut {
  const small = (1 - DELTA) * rate;
  if (cycleRejected < FELT) {
    const left = grown < growFor ? (1 - GIVES_WAY) * ceiling : 0;
    return { rate: small, ceiling: Math.max(rate, left), cause: 'small' };
  }
  if (grown >= growFor / 2) return { rate: small, ceiling: rate, cause: 'small' };
  const share = cycleAccepted / (cycleAccepted + cycleRejected);
  return { rate: clamp(share * rate, DEEPEST_CUT * rate, small), ceiling: rate, cause: 'heavy' };
}

/** How it stands before a cut that may turn out to be none. */
export function uncutOf(state: RateState): CutState {
  const { phase, rate, ceiling, rateAtCut, cutAt, risingSince, holdUntil, growFor, grown, lost, found } = state;
  return { phase, rate, ceiling, rateAtCut, cutAt, risingSince, holdUntil, growFor, grown, lost, found };
}

/** What every cut does: hold, and forget the growth so far. Its phase is `backoff`, until something is accepted. */
export function settleCut(
  state: RateState,
  settings: RateSettings,
  { rate, ceiling }: Pick<Cut, 'rate' | 'ceiling'>,
  now: Millis,
): void {
  state.rate = clamp(rate, settings.minRate, settings.maxRate);
  state.rateAtCut = state.rate;
  state.ceiling = clamp(ceiling, settings.minRate, settings.maxRate); // from a ceiling of 0, nothing ever grows
  state.phase = 'backoff';
  state.cutAt = now;
  // What was sent before the cut goes on being rejected for a round trip, and so does what grows before it is felt.
  state.holdUntil = now + Math.max(settings.cooldown, 2 * feltAfter(state));
  state.grown = 0;
  state.cycleAccepted = 0;
  state.cycleRejected = 0;
  state.latelyAccepted = 0;
  state.latelyRejected = 0;
}

/** What every rejection tells, whether it cuts or not. */
export function noteRejection(state: RateState, sentAt: Millis, now: Millis): void {
  if (sentAt >= state.cutAt) {
    state.cycleRejected += 1;
    state.latelyRejected += 1;
  }
  // What left before anything was limited came in a flock, and is rejected in one: it says nothing of a blackout.
  if (state.phase !== 'open' && (state.found !== 'first' || sentAt > state.cutAt)) state.rejectedInRow += 1;
  state.refusalRtt = smoothRtt(state.refusalRtt, now - sentAt);
}

/** What one tells besides, that is no noise. */
export function noteFelt(
  state: RateState,
  { noteLoss }: { readonly noteLoss: (state: RateState) => void },
  now: Millis,
): void {
  if (state.phase === 'cooldown' || state.phase === 'restoring') noteLoss(state);
  if (state.phase === 'open') state.found = 'first';
  state.lost += 1;
  state.lastRejectedAt = now;
}
