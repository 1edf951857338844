import type { CutCause } from '../limits/limit-state.ts';
import type { Millis, PerSecond } from '../scalars.ts';
import type { SendHistory } from './send-history.ts';
import type { RevertibleRateState, RateSettings, RateState } from './rate-state.ts';
import { cutByPenalty } from './penalty.ts';
import { clamp, feedbackDelay, largestSample, MIN_MEAN_COST, recordCost, smoothRtt } from './rate-state.ts';

/** δ: the size of a small cut, and how far growth goes above the ceiling within half of K. */
export const DELTA = 0.05;
/** The shortest epoch: rejections within it, or within a round trip if that is longer, are one signal. */
const MIN_EPOCH: Millis = 200;
/** The deepest single cut: rejections arrive sooner than successes, so that their share is overestimated. */
const MAX_DECREASE_TO = 0.7;
/** The least first ceiling, in requests: a 429 after few accepted requests says little about the rate. */
const MIN_FIRST_CEILING: PerSecond = 5;
/** The shortest span over which a rate is measured: a burst is no rate. */
const MIN_MEASURED_SPAN: Millis = 250;

/** The result of a cut. */
export interface RateDecrease {
  readonly rate: PerSecond;
  readonly ceiling: PerSecond;
  readonly cause: CutCause;
}

/**
 * Whether a rejection belongs to the epoch of the last cut: one cut per epoch. A request that was sent before that cut, or
 * within a round trip of it, does not reflect it; and until one is accepted that does, the effect of the cut is unknown.
 */
export function isSameEpoch(state: RateState, sentAt: Millis): boolean {
  const { phase, decreasedAt } = state;
  if (phase === 'open') return false;
  return phase === 'backoff' || sentAt <= decreasedAt + Math.max(feedbackDelay(state), MIN_EPOCH);
}

/** For this long after a calm limit became unlimited, its rate before is better evidence than what passes in a calm second. */
const REOPENED_SPAN: Millis = 120_000;

/**
 * The cut at the first rejection while open: the recently accepted rate is the ceiling, and the rate is 10 % below. If a calm limit has
 * become unlimited too soon, the cut is a small one of its rate before, at which nothing was rejected.
 */
export function computeFirstDecrease(state: RateState, recent: SendHistory, now: Millis): RateDecrease {
  const { rate, reopenedAt, rateBeforeReopening, meanCost } = state;
  const ceiling = Math.min(rate, Math.max(MIN_FIRST_CEILING * meanCost, recentAcceptedRate(recent, now)));
  const before = Math.min(rate, now - reopenedAt <= REOPENED_SPAN ? rateBeforeReopening : 0);
  if (before > ceiling) return { rate: (1 - DELTA) * before, ceiling: before, cause: 'first' };
  return { rate: 0.9 * ceiling, ceiling, cause: 'first' };
}

/** Repeats `computeFirstDecrease` after more of the accepted requests before the cut were reported. It only raises the rate. */
export function reviseFirstDecrease(state: RateState, settings: RateSettings, recent: SendHistory): void {
  const isJustCut = state.phase === 'backoff' || state.phase === 'cooldown';
  if (!isJustCut || state.lastFinding !== 'first') return;
  const { rate, ceiling } = computeFirstDecrease({ ...state, rate: settings.maxRate }, recent, state.decreasedAt);
  if (rate <= state.rate) return;
  state.rate = rate;
  state.rateAfterDecrease = rate;
  state.ceiling = ceiling;
}

/** The accepted rate over the last second, or since requests began to arrive, if that is less. */
export function recentAcceptedRate(recent: SendHistory, now: Millis): PerSecond {
  return recent.acceptedRate(now, clamp(recent.activeFor(now, 1000), MIN_MEASURED_SPAN, 1000));
}

/** Fewer rejections since the last cut, of the mean cost, give no reliable share. */
const MIN_REJECTIONS = 3;
/** How far a rejection below the ceiling, which may be chance, lowers the ceiling. */
const CEILING_STEP = 0.03;

/**
 * The cut at a later rejection: a small step below the rate. Fewer than three rejections below the ceiling may be chance,
 * and lower the ceiling only a little. If the last cut was not enough, so that more rejections follow before half of K,
 * the cut is deep: to the accepted share of the units sent since. What is rejected may cost more than what is accepted.
 */
export function computeLaterDecrease(state: RateState): RateDecrease {
  const { rate, ceiling, acceptedSinceDecrease, meanCost, growthElapsed, growthPeriod } = state;
  if (state.lastFinding === 'penalty') return { ...cutByPenalty(rate, state), cause: 'small' };
  const small = (1 - DELTA) * rate;
  const rejectedUnits = state.rejectedSinceDecrease + state.rejectedExcess;
  if (rejectedUnits < MIN_REJECTIONS * meanCost) {
    const leastCeiling = growthElapsed < growthPeriod ? (1 - CEILING_STEP) * ceiling : 0;
    return { rate: small, ceiling: Math.max(rate, leastCeiling), cause: 'small' };
  }
  if (growthElapsed >= growthPeriod / 2) return { rate: small, ceiling: rate, cause: 'small' };
  const acceptedUnits = acceptedSinceDecrease * meanCost;
  const share = acceptedUnits / (acceptedUnits + rejectedUnits);
  return { rate: clamp(share * rate, MAX_DECREASE_TO * rate, small), ceiling: rate, cause: 'heavy' };
}

/** Copies the state before a cut that a block may revert. */
export function saveRevertibleState(state: RateState): RevertibleRateState {
  const {
    phase,
    rate,
    ceiling,
    rateAfterDecrease,
    decreasedAt,
    risingSince,
    growthPausedUntil,
    growthPeriod,
    growthElapsed,
    probeLoss,
    lastFinding,
  } = state;
  return {
    phase,
    rate,
    ceiling,
    rateAfterDecrease,
    decreasedAt,
    risingSince,
    growthPausedUntil,
    growthPeriod,
    growthElapsed,
    probeLoss,
    lastFinding,
  };
}

/** Applies a cut: pauses growth and resets it. The phase is `backoff` until a request is accepted. */
export function applyDecrease(
  state: RateState,
  settings: RateSettings,
  { rate, ceiling }: Pick<RateDecrease, 'rate' | 'ceiling'>,
  now: Millis,
): void {
  state.rate = clamp(rate, settings.minRate, settings.maxRate);
  state.rateAfterDecrease = state.rate;
  state.ceiling = clamp(ceiling, settings.minRate, settings.maxRate); // a ceiling of 0 would allow no growth
  state.phase = 'backoff';
  state.decreasedAt = now;
  // For one round trip, requests sent before the cut are still rejected; growth needs another one to show its effect.
  state.growthPausedUntil = now + Math.max(settings.cooldown, 2 * feedbackDelay(state));
  state.growthElapsed = 0;
  state.acceptedSinceDecrease = 0;
  state.rejectedSinceDecrease = 0;
  state.rejectedExcess = 0;
  state.recentAccepted = 0;
  state.recentRejected = 0;
}

/** Records the cost of a send; until the first known cost, the mean is the expected one. Returns what the history is to count. */
export function recordSendCost(state: RateState, cost: number, expected: number, isEstimate: boolean): number {
  if (state.costSamples === 0) state.meanCost = Math.max(MIN_MEAN_COST, expected);
  if (!isEstimate) recordCost(state, cost);
  return Math.min(cost, largestSample(state.meanCost));
}

/** Records a response that is no rejection. */
export function recordAcceptance(state: RateState, sentAt: Millis, now: Millis): void {
  state.smoothedRtt = smoothRtt(state.smoothedRtt, now - sentAt);
  state.consecutiveRejections = 0;
  if (sentAt < state.decreasedAt) return;
  state.acceptedSinceDecrease += 1;
  state.recentAccepted += 1;
}

/** Records a rejection, whether it leads to a cut or not. */
export function recordRejection(state: RateState, sentAt: Millis, now: Millis, cost = 1): void {
  if (sentAt >= state.decreasedAt) {
    state.rejectedSinceDecrease += 1;
    state.rejectedExcess += cost - 1;
    state.recentRejected += 1;
  }
  // Requests sent while unlimited were a burst, and are rejected in a row: that is no sign of a blackout.
  if (state.phase !== 'open' && (state.lastFinding !== 'first' || sentAt > state.decreasedAt)) {
    state.consecutiveRejections += 1;
  }
  state.rejectionRtt = smoothRtt(state.rejectionRtt, now - sentAt);
}

/** Records in addition a rejection that is no background rejection. */
export function recordLimitRejection(
  state: RateState,
  rules: {
    readonly recordProbeLoss: (state: RateState) => void;
    readonly isPenaltyHint: (state: RateState, retryAfterMs: Millis | undefined) => boolean;
  },
  retryAfterMs: Millis | undefined,
  now: Millis,
): void {
  if (state.phase === 'cooldown' || state.phase === 'restoring') {
    rules.recordProbeLoss(state);
    if (rules.isPenaltyHint(state, retryAfterMs)) state.lastFinding = 'penalty';
  }
  if (state.phase === 'open') state.lastFinding = 'first';
  if (state.phase !== 'backoff' && state.phase !== 'blocked') state.lastRetryAfterMs = retryAfterMs ?? 0;
  state.probeLoss += 1;
  state.lastRejectedAt = now;
}
