import type { Millis, PerSecond } from '../scalars.ts';
import type { AdaptiveRate } from './adaptive-rate.ts';
import { recentAcceptedRate } from './decrease.ts';

/**
 * Decides at the first rejection of an epoch whether the limit is on the number in flight, and cuts the rate to what the places allow if
 * so. Returns whether it is.
 */
export function detectPlaces(rate: AdaptiveRate, inFlightAtSend: number, now: Millis): boolean {
  const { history, inFlightLimiter, state } = rate;
  const wasLimited = inFlightLimiter.isLimited;
  if (inFlightLimiter.detectLimit(inFlightAtSend, now)) {
    const implied = impliedRate(rate, now);
    rate.applyDecrease({ rate: implied, ceiling: implied }, now);
    return true;
  }
  // The upstream may allow less than the rate of the refuted places.
  if (wasLimited) state.rate = Math.min(state.rate, recentAcceptedRate(history.recent, now));
  return false;
}

/** The upstream has accepted more in flight than the limit allows: continues at the rate that the places have reached, as a guess. */
export function discardPlaces(rate: AdaptiveRate, now: Millis): void {
  const { history, inFlightLimiter, state } = rate;
  inFlightLimiter.discardLimit();
  const reached = Math.min(state.rate, recentAcceptedRate(history.recent, now));
  state.lastFinding = 'moved';
  rate.applyDecrease({ rate: reached, ceiling: state.rate }, now);
}

/** The units a second that the measured turnover of the places allows; undefined if there is none. */
export function placeRate({ inFlightLimiter, state }: AdaptiveRate): PerSecond | undefined {
  const { turnoverRate } = inFlightLimiter;
  return turnoverRate === undefined ? undefined : turnoverRate * state.meanCost;
}

/** Estimates how long it takes until one of the requests in flight ends. */
export function timeToNextEnd({ inFlightLimiter, state }: AdaptiveRate): Millis {
  return 1000 / Math.min(state.rate / state.meanCost, inFlightLimiter.throughput);
}

/** In units. Measured, or by the mean round trip (Little's law), or else the accepted rate. */
function impliedRate(rate: AdaptiveRate, now: Millis): PerSecond {
  const { history, inFlightLimiter, state } = rate;
  const measured = placeRate(rate);
  if (measured !== undefined) return measured;
  const { limit } = inFlightLimiter;
  return state.smoothedRtt > 0
    ? (1000 * limit * state.meanCost) / state.smoothedRtt
    : history.recent.acceptedRate(now, 1000);
}
