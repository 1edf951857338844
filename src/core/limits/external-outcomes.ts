import type { Millis } from '../scalars.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import { isGatewayError, isThrottled } from '../exchange/attempt-outcome.ts';
import type { Limit } from './limit.ts';
import type { Learner, MeterView } from './meter.ts';

/** How many granted requests without a report are remembered. */
const MAX_UNREPORTED = 256;
/** A request counts as never reported after this many times the usual delay of a report. */
const SILENCE_FACTOR = 4;
const MIN_SILENCE: Millis = 1000;
const MAX_SILENCE: Millis = 30_000;
/** How exactly a report gives the time of its grant. */
const REPORT_PRECISION: Millis = 1;

/**
 * Infers the results of requests that were admitted here and sent by the requester itself. Only reported results are known, and
 * rejections are reported sooner than successes, or alone. So silence counts as success, after a delay:
 *
 * - A reported rejection means that the requests sent before it, and not reported, were accepted.
 * - In `backoff` and `blocked`, a request without a report for long enough was accepted.
 *
 * Inferred successes let a rate return to its ceiling. They do not let it grow beyond: see `FeedbackFreshness`.
 */
export class ExternalOutcomes {
  /** When the requests without a report were granted, oldest first. */
  readonly #unreported: Millis[] = [];
  #rejectedAt = Number.NEGATIVE_INFINITY;
  /** Time from a grant to the report of its rejection, smoothed; 0 before the first one. */
  #reportDelay: Millis = 0;

  onGranted(now: Millis): void {
    this.#unreported.push(now);
    if (this.#unreported.length > MAX_UNREPORTED) this.#unreported.splice(0, MAX_UNREPORTED / 2);
  }

  /** Counts a request as accepted if nothing was reported for long enough. */
  presumeAccepted(meter: Pick<MeterView, 'phase'> & Pick<Learner, 'onAccepted'>, now: Millis): void {
    const { phase } = meter;
    if (phase !== 'blocked' && phase !== 'backoff') return;
    const silence = Math.min(MAX_SILENCE, Math.max(MIN_SILENCE, SILENCE_FACTOR * this.#reportDelay));
    const first = this.#unreported.find((at) => at > this.#rejectedAt);
    if (first === undefined || now - first < silence) return;
    // After a block, the send time of the probe says when the blackout ended. After a cut, assume a usual response time.
    meter.onAccepted(phase === 'blocked' ? first : Math.max(first, now - this.#reportDelay), 0, now);
  }

  /** Call it before the meter learns of the report. @param sentAt when the reported request was sent */
  onReported(isRejected: boolean, sentAt: Millis, learner: Pick<Learner, 'onAccepted'>, now: Millis): void {
    const took = Math.max(0, now - sentAt);
    const own = this.#unreported.findIndex((at) => at >= sentAt - REPORT_PRECISION);
    if (own >= 0) this.#unreported.splice(own, 1);
    if (!isRejected) return;
    this.#reportDelay = this.#reportDelay === 0 ? took : this.#reportDelay + (took - this.#reportDelay) / 8;
    this.#rejectedAt = now;
    const firstAfter = this.#unreported.findIndex((at) => at >= sentAt);
    const before = this.#unreported.splice(0, firstAfter < 0 ? this.#unreported.length : firstAfter);
    for (const at of before) learner.onAccepted(at, 0, Math.min(now, at + took));
  }
}

export function recordGranted(limits: readonly Limit[], now: Millis): void {
  for (const limit of limits) {
    limit.externalOutcomes ??= new ExternalOutcomes();
    limit.externalOutcomes.onGranted(now);
  }
}

export function presumeAccepted(limits: readonly Limit[], now: Millis): void {
  for (const { externalOutcomes, meter } of limits) externalOutcomes?.presumeAccepted(meter, now);
}

export function recordReported(limits: readonly Limit[], outcome: AttemptOutcome, sentAt: Millis, now: Millis): void {
  const isRejected =
    outcome.kind === 'error' || isThrottled(outcome.status, outcome.hints) || isGatewayError(outcome.status);
  for (const { externalOutcomes, meter } of limits) externalOutcomes?.onReported(isRejected, sentAt, meter, now);
}
