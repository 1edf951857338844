// Knowledge about a limit that arrives late or from elsewhere: after a restart, or from another process.

import type { Millis } from '../scalars.ts';
import type { AdaptiveRate } from './adaptive-rate.ts';
import type { KnownCost, LateLatency } from './failed-send.ts';
import type { RateDecrease } from './decrease.ts';
import { isCalm } from './growth.ts';
import { reviseFirstDecrease } from './decrease.ts';
import { largestSample, recordCost } from './rate-state.ts';
import { detectPlaces } from './place-detection.ts';

/**
 * Continues a known limit whose history is lost: at its rate at once, and with growth as after a cut.
 * @param concurrencyLimit how many requests may be in flight, if that was found to be limited
 */
export function resumeRate(
  rate: AdaptiveRate,
  known: Pick<RateDecrease, 'rate' | 'ceiling'>,
  now: Millis,
  concurrencyLimit?: number,
): void {
  rate.applyDecrease(known, now);
  rate.state.phase = 'cooldown';
  if (concurrencyLimit !== undefined) rate.inFlightLimiter.resume(concurrencyLimit, now);
}

/**
 * Learns, after the result, how many requests were in flight when an accepted or rejected one was sent. For rejections,
 * call it only for those that cut the rate. Returns whether this shows a concurrency limit that was not known before.
 */
export function learnInFlightAtSend(
  rate: AdaptiveRate,
  inFlightAtSend: number,
  isRejected: boolean,
  now: Millis,
): boolean {
  const { breaker, inFlightLimiter } = rate;
  if (!isRejected) inFlightLimiter.onAcceptedLate(inFlightAtSend);
  if (!isRejected || inFlightLimiter.isLimited || breaker.isActive) return false;
  return detectPlaces(rate, inFlightAtSend, now);
}

/** Learns from a latency, in the order of all of them. Returns whether it shows a queue at the upstream. */
export function learnLatency(
  { inFlightLimiter, state }: AdaptiveRate,
  { latency, unanswered, at, hasFailed, isAbandoned = false }: LateLatency,
): boolean {
  const ended = { latency, at, isRejecting: !isCalm(state, at), isAbandoned };
  if (!hasFailed) return inFlightLimiter.onAnswer(ended, unanswered);
  inFlightLimiter.onTimeout(ended, unanswered);
  return false;
}

/** Learns what a request has cost: the upstream has counted these units at the time of the send. */
export function learnCost({ history, state }: AdaptiveRate, { sentAt, counted, actual }: KnownCost): void {
  const known = Math.min(actual ?? 0, Math.max(counted, largestSample(state.meanCost)));
  history.onSettled(sentAt, known - counted);
  if (actual !== undefined) recordCost(state, actual);
}

/** Revises the first cut, after more of what was accepted before it was reported. */
export function learnAcceptedBefore({ history, inFlightLimiter, settings, state }: AdaptiveRate): void {
  if (!inFlightLimiter.isLimited) reviseFirstDecrease(state, settings, history.recent);
}
