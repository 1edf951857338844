import type { LimitState } from '../limits/limit-state.ts';
import type { RateCycle } from './background-rejections.ts';
import type { Millis, PerSecond } from '../scalars.ts';

export interface RateSettings {
  /** A known limit to start from; undefined if it has to be learned. */
  readonly initialRate: PerSecond | undefined;
  /** The upper bound; Infinity for none. */
  readonly maxRate: PerSecond;
  /** The lower bound, > 0. */
  readonly minRate: PerSecond;
  /** The shortest time without growth after a cut. */
  readonly cooldown: Millis;
  /** The longest interval between probes while blocked; 30 s when absent. */
  readonly maxProbeDelay?: Millis | undefined;
  /** Whether it belongs to one client or credential. There may be thousands of such limits: they detect no rejected parts. */
  readonly isPerClient?: boolean;
  /** Whether requests in flight are limited when latency shows a queue at the upstream; false when absent. */
  readonly learnsFromLatency?: boolean;
  /** Identifies the unit of the rates; a request when absent. What was learned in another unit is dropped. */
  readonly unit?: string | undefined;
}

/** The default of `maxProbeDelay`. */
export const MAX_PROBE_DELAY: Millis = 30_000;

/** Where a cut found the limit, compared with the ceiling. */
export type LimitFinding =
  /** The rate was unlimited before: the ceiling is a guess, and the loss says nothing about the cost of probing. */
  | 'first'
  /** The first rejection led to a blackout after few requests: more likely a penalty than a window that was used up. */
  | 'first-penalty'
  /** Far below the ceiling: the new ceiling is a guess. */
  | 'moved'
  /** Near the ceiling. */
  | 'near'
  /** Near the ceiling, with a penalty: exceeding it blocks all requests for a while. */
  | 'penalty';

/** The part of the state that a cut changes, and that a block may restore. */
export interface RevertibleRateState {
  phase: LimitState;
  /** Units a second, requests unless a cost is configured; Infinity while no limit has been met and none is set. */
  rate: PerSecond;
  /** The rate at which the limit was last met. */
  ceiling: PerSecond;
  rateAfterDecrease: PerSecond;
  decreasedAt: Millis;
  /** The last cut that helped. Since then, only cuts after which nothing was accepted have lowered the rate. */
  risingSince: Millis;
  /** No growth before this. */
  growthPausedUntil: Millis;
  /** K: how long growth takes from the rate after a cut to the ceiling. */
  growthPeriod: Millis;
  /** u: how long the rate has grown, without application-limited time. */
  growthElapsed: Millis;
  /** Rejections since the last cut out of a calm state: what finding the limit has cost this time. */
  probeLoss: number;
  /** The finding of the last cut out of a calm state. */
  lastFinding: LimitFinding;
}

/** The learned state of one limit. The rules are functions over it; only `AdaptiveRate` keeps one. */
export interface RateState extends RevertibleRateState {
  /** The smoothed `probeLoss` of the times before. */
  usualProbeLoss: number;
  /** Seconds lost per rejection, smoothed: the more a probe costs, the less often the rate probes. */
  secondsPerRejection: number;
  /** The duration of the last blackout; 0 before the first. */
  lastBlackout: Millis;
  /** The Retry-After of the last rejection out of a calm state; 0 without one. */
  lastRetryAfterMs: Millis;
  /** Results of requests sent since the last cut. */
  acceptedSinceDecrease: number;
  rejectedSinceDecrease: number;
  /** What the rejected ones cost beyond one unit each. */
  rejectedExcess: number;
  /** The same, with decay. */
  recentAccepted: number;
  recentRejected: number;
  /** The share of rejections that does not depend on the rate, in [0, 1]. */
  backgroundShare: number;
  /** The results of the last cycles, oldest first. */
  readonly cycles: RateCycle[];
  lastRejectedAt: Millis;
  /** When the limit became unlimited last, and its rate before if it was calm; 0 if it is unknown. */
  reopenedAt: Millis;
  rateBeforeReopening: PerSecond;
  /** Rejections since the last accepted response. */
  consecutiveRejections: number;
  smoothedRtt: Millis;
  /** The same for rejections: some upstreams delay them. */
  rejectionRtt: Millis;
  /** Units of a request, > 0, averaged over the last known costs; and how many these are. */
  meanCost: number;
  costSamples: number;
  /** See `RateSettings`. */
  unit: string | undefined;
}

export function makeRateState(settings: RateSettings): RateState {
  const known = settings.initialRate;
  const start = Math.min(known ?? Number.POSITIVE_INFINITY, settings.maxRate);
  return {
    phase: known === undefined ? 'open' : 'restoring',
    rate: start,
    ceiling: start,
    rateAfterDecrease: start,
    decreasedAt: Number.NEGATIVE_INFINITY,
    risingSince: Number.NEGATIVE_INFINITY,
    growthPausedUntil: Number.NEGATIVE_INFINITY,
    growthPeriod: MAX_GROWTH_PERIOD,
    growthElapsed: MAX_GROWTH_PERIOD, // a known limit applies at once, and growth begins above it, slowly
    probeLoss: 0,
    lastFinding: 'near',
    usualProbeLoss: 1,
    secondsPerRejection: 0,
    lastBlackout: 0,
    lastRetryAfterMs: 0,
    acceptedSinceDecrease: 0,
    rejectedSinceDecrease: 0,
    rejectedExcess: 0,
    recentAccepted: 0,
    recentRejected: 0,
    backgroundShare: 0,
    cycles: [],
    lastRejectedAt: Number.NEGATIVE_INFINITY,
    reopenedAt: Number.NEGATIVE_INFINITY,
    rateBeforeReopening: 0,
    consecutiveRejections: 0,
    smoothedRtt: 0,
    rejectionRtt: 0,
    meanCost: 1,
    costSamples: 0,
    unit: settings.unit,
  };
}

/** The shortest K. */
export const MIN_GROWTH_PERIOD: Millis = 3000;

/** The longest K, except under penalties: there it is up to ten times as long. */
export const MAX_GROWTH_PERIOD: Millis = 60_000;

/** RFC 6298: the first sample is the average, and each later one has a weight of 1/8. */
export function smoothRtt(smoothed: Millis, rtt: Millis): Millis {
  return smoothed === 0 ? rtt : smoothed + (rtt - smoothed) / 8;
}

export const MIN_MEAN_COST = 0.001;
/** The mean is that of about so many costs. */
const COST_SPAN = 32;

/** The highest cost that counts beside this mean: a single one says little, and a client may have chosen it. */
export function largestSample(mean: number): number {
  return 10 * Math.max(1, mean);
}

/** Updates the mean by a known cost. The first costs count equally. */
export function recordCost(state: RateState, cost: number): void {
  state.costSamples = Math.min(state.costSamples + 1, COST_SPAN);
  const known = Math.min(cost, largestSample(state.meanCost));
  state.meanCost = Math.max(MIN_MEAN_COST, state.meanCost + (known - state.meanCost) / state.costSamples);
}

/** A longer response time is not delay of feedback but slow processing. Growth must not wait for it. */
const MAX_RTT: Millis = 10_000;

/** Time until a change of the rate shows in responses; at most 10 s. */
export function feedbackDelay({ smoothedRtt, rejectionRtt }: RateState): Millis {
  return Math.min(MAX_RTT, Math.max(smoothedRtt, rejectionRtt));
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/**
 * Applies settings that may have changed: bounds hold at once, and a new known limit applies to a limit that was never
 * met. What was learned within the bounds is kept.
 */
export function clampToSettings(state: RateState, settings: RateSettings): void {
  const { initialRate, minRate, maxRate } = settings;
  if (state.phase !== 'open') {
    if (state.rate > maxRate) state.rate = maxRate;
    else if (state.rate < minRate) state.rate = minRate;
    if (state.ceiling > maxRate) state.ceiling = maxRate;
  } else if (initialRate !== undefined) {
    const { smoothedRtt, rejectionRtt, backgroundShare, meanCost, costSamples } = state;
    const kept = { smoothedRtt, rejectionRtt, backgroundShare, meanCost, costSamples };
    Object.assign(state, makeRateState(settings), kept);
  } else if (state.rate !== maxRate) {
    state.rate = maxRate;
    state.ceiling = maxRate;
    state.rateAfterDecrease = maxRate;
  }
}

/** Discards what was learned, except for round-trip times and costs. */
export function resetToSettings(state: RateState, settings: RateSettings): void {
  const { smoothedRtt, rejectionRtt, meanCost, costSamples } = state;
  Object.assign(state, makeRateState(settings), { smoothedRtt, rejectionRtt, meanCost, costSamples });
}

/** Makes the limit unlimited. Keeps round-trip times, costs and the background share. @param rateBefore see `rateBeforeReopening` */
export function resetToUnlimited(state: RateState, settings: RateSettings, rateBefore: PerSecond, now: Millis): void {
  const { smoothedRtt, rejectionRtt, backgroundShare, meanCost, costSamples } = state;
  Object.assign(state, makeRateState({ ...settings, initialRate: undefined }), {
    smoothedRtt,
    rejectionRtt,
    backgroundShare,
    meanCost,
    costSamples,
    reopenedAt: now,
    rateBeforeReopening: rateBefore,
  });
}
