import type { LimitState } from '../events/proxy-events.ts';
import type { Cycle } from './background-rejections.ts';
import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';

export interface RateSettings {
  /** A known limit to start from; undefined when it must be learned. */
  readonly initialRate: PerSecond | undefined;
  /** Never beyond; Infinity when there is no bound. */
  readonly maxRate: PerSecond;
  /** Never below, > 0. */
  readonly minRate: PerSecond;
  /** The shortest hold after a cut. */
  readonly cooldown: Millis;
  /** While nothing gets through, a probe is due at least so often; 30 s when absent. */
  readonly maxProbeDelay?: Millis | undefined;
  /** One client, or one credential, has it to itself, and there may be thousands: it remembers nothing of parts. */
  readonly isOfOne?: boolean;
}

/** Unless the settings say otherwise. */
export const MAX_PROBE_DELAY: Millis = 30_000;

/** Where a limit turned out to be. */
export type Found =
  /** Nothing had bounded the rate: what was lost says nothing of what a probe loses, and the ceiling is a guess. */
  | 'first'
  /** Far below where it was; the ceiling is a guess too. */
  | 'moved'
  /** Where it was expected, more or less. */
  | 'near'
  /** Where it was expected; and whoever goes beyond it is shut out for a while. */
  | 'penalty';

/** What a cut changes. */
export interface CutState {
  phase: LimitState;
  /** What may be sent a second; Infinity while no limit has been felt and none is set. */
  rate: PerSecond;
  /** The rate before the last cut: where the limit was felt. */
  ceiling: PerSecond;
  rateAtCut: PerSecond;
  cutAt: Millis;
  /** The last cut that helped: since then the rate has not fallen, but for cuts after which nothing was accepted. */
  risingSince: Millis;
  /** No growth before this. */
  holdUntil: Millis;
  /** K: how long growth takes from the cut back to the ceiling. */
  growFor: Millis;
  /** u: for how long it has grown, application-limited time left out. */
  grown: Millis;
  /** Rejections since the last cut that came out of calm: what finding the limit has cost this time. */
  lost: number;
  /** Where the limit turned out to be at the last cut out of calm. */
  found: Found;
}

/** What is remembered of one limit. Rules are functions over it; only `AdaptiveRate` keeps one. */
export interface RateState extends CutState {
  /** What it cost the times before, smoothed. */
  usualLoss: number;
  /** Seconds lost to a rejection: where probing is dear, probe rarely. */
  cost: number;
  /** How long the last blackout was; 0 before there was one. */
  lastBlackout: Millis;
  /** Accepted and rejected of what was sent since the last cut. */
  cycleAccepted: number;
  cycleRejected: number;
  /** The same, of which what is long ago counts ever less. */
  latelyAccepted: number;
  latelyRejected: number;
  /** The share of rejections that does not depend on the rate, in [0, 1]. */
  noise: number;
  /** What came of the last cycles, oldest first. */
  readonly cycles: Cycle[];
  lastRejectedAt: Millis;
  /** Rejections since the last accepted answer. */
  rejectedInRow: number;
  smoothedRtt: Millis;
  /** The same of rejections: some upstreams let those wait whom they turn away. */
  refusalRtt: Millis;
}

export function makeRateState(settings: RateSettings): RateState {
  const known = settings.initialRate;
  const start = Math.min(known ?? Number.POSITIVE_INFINITY, settings.maxRate);
  return {
    phase: known === undefined ? 'open' : 'restoring',
    rate: start,
    ceiling: start,
    rateAtCut: start,
    cutAt: Number.NEGATIVE_INFINITY,
    risingSince: Number.NEGATIVE_INFINITY,
    holdUntil: Number.NEGATIVE_INFINITY,
    growFor: SLOW_GROWTH,
    grown: SLOW_GROWTH, // a known limit is used at once, and only probed above, slowly
    lost: 0,
    found: 'near',
    usualLoss: 1,
    cost: 0,
    lastBlackout: 0,
    cycleAccepted: 0,
    cycleRejected: 0,
    latelyAccepted: 0,
    latelyRejected: 0,
    noise: 0,
    cycles: [],
    lastRejectedAt: Number.NEGATIVE_INFINITY,
    rejectedInRow: 0,
    smoothedRtt: 0,
    refusalRtt: 0,
  };
}

/** The shortest K. */
export const FAST_GROWTH: Millis = 3000;

/** The longest K. Where a second rejection would be as dear as the last, up to ten times that. */
export const SLOW_GROWTH: Millis = 60_000;

/** RFC 6298: the first sample is the average, and each later one counts for an eighth. */
export function smoothRtt(smoothed: Millis, rtt: Millis): Millis {
  return smoothed === 0 ? rtt : smoothed + (rtt - smoothed) / 8;
}

/** An answer that takes longer says more of the upstream than of the way there: growth must not wait for hours. */
const LONGEST_RTT: Millis = 10_000;

/** How long it takes until a change of the rate can be felt; at most 10 s. */
export function feltAfter({ smoothedRtt, refusalRtt }: RateState): Millis {
  return Math.min(LONGEST_RTT, Math.max(smoothedRtt, refusalRtt));
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/**
 * Settings may have changed since the last look: bounds hold at once, and a limit that is known now and was never felt is
 * used from the next request on. What was learned within them stays.
 */
export function keepWithin(state: RateState, settings: RateSettings): void {
  const { initialRate, minRate, maxRate } = settings;
  if (state.phase !== 'open') {
    if (state.rate > maxRate) state.rate = maxRate;
    else if (state.rate < minRate) state.rate = minRate;
    if (state.ceiling > maxRate) state.ceiling = maxRate;
  } else if (initialRate !== undefined) {
    const { smoothedRtt, refusalRtt, noise } = state;
    Object.assign(state, makeRateState(settings), { smoothedRtt, refusalRtt, noise });
  } else if (state.rate !== maxRate) {
    state.rate = maxRate;
    state.ceiling = maxRate;
    state.rateAtCut = maxRate;
  }
}

/** Of the limit nothing is known any more but the settings. */
export function beginAnew(state: RateState, settings: RateSettings): void {
  const { smoothedRtt, refusalRtt } = state;
  Object.assign(state, makeRateState(settings), { smoothedRtt, refusalRtt });
}

/** The limit counts as gone: nothing of it is remembered, but what is known of the way there. */
export function forgetLimit(state: RateState, settings: RateSettings): void {
  const { smoothedRtt, refusalRtt, noise } = state;
  Object.assign(state, makeRateState({ ...settings, initialRate: undefined }), { smoothedRtt, refusalRtt, noise });
}
