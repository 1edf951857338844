import type { Limit } from './limit.ts';
import type { Meter } from './meter.ts';
import type { Millis, Outcome } from '../exchange/attempt-outcome.ts';
import { isGatewayError, isThrottled } from '../exchange/attempt-outcome.ts';

/** So many are remembered at a time, of which nothing has been heard. */
const REMEMBERED = 256;
/** Of one that nothing is heard of for so many times as long as refusals take to be reported, nothing will be. */
const SILENCES = 4;
const SHORTEST_SILENCE: Millis = 1000;
const LONGEST_SILENCE: Millis = 30_000;
/** A report tells the time of its grant as exactly as this. */
const ROUNDED: Millis = 1;

/**
 * What is made of requests that were let pass here, and sent by others: of their answers we know what we are told, and
 * refusals are told of sooner than successes, or alone. So no news is good news, but never at once:
 *
 * - when a refusal is reported, those that left before it and were not reported passed;
 * - after a cut, and while nothing passes, one passed of which nothing was heard for long enough.
 *
 * What is presumed lets a limit come back to where it was felt. It tells nothing of more: see `Told`.
 */
export class Hearsay {
  /** When those left of which nothing has been heard, oldest first. */
  readonly #unheard: Millis[] = [];
  #refusedAt = Number.NEGATIVE_INFINITY;
  /** From a grant to the report that it was refused, smoothed; 0 before there was one. */
  #delay: Millis = 0;

  granted(now: Millis): void {
    this.#unheard.push(now);
    if (this.#unheard.length > REMEMBERED) this.#unheard.splice(0, REMEMBERED / 2);
  }

  /** Time has passed in silence. */
  presume(meter: Pick<Meter, 'phase' | 'accepted'>, now: Millis): void {
    const { phase } = meter;
    if (phase !== 'blocked' && phase !== 'backoff') return;
    const silence = Math.min(LONGEST_SILENCE, Math.max(SHORTEST_SILENCE, SILENCES * this.#delay));
    const first = this.#unheard.find((at) => at > this.#refusedAt);
    if (first === undefined || now - first < silence) return;
    // Of a blackout, the probe tells when it ended. Else it is as if an answer had taken as long as they do.
    meter.accepted(phase === 'blocked' ? first : Math.max(first, now - this.#delay), 0, now);
  }

  /** To be told before the meter is. @param sentAt of the request that is spoken of */
  reported(isRefused: boolean, sentAt: Millis, meter: Pick<Meter, 'accepted'>, now: Millis): void {
    const took = Math.max(0, now - sentAt);
    const own = this.#unheard.findIndex((at) => at >= sentAt - ROUNDED);
    if (own >= 0) this.#unheard.splice(own, 1);
    if (!isRefused) return;
    this.#delay = this.#delay === 0 ? took : this.#delay + (took - this.#delay) / 8;
    this.#refusedAt = now;
    const passed = this.#unheard.findIndex((at) => at >= sentAt);
    const before = this.#unheard.splice(0, passed < 0 ? this.#unheard.length : passed);
    for (const at of before) meter.accepted(at, 0, Math.min(now, at + took));
  }
}

export function noteGranted(limits: readonly Limit[], now: Millis): void {
  for (const limit of limits) {
    limit.hearsay ??= new Hearsay();
    limit.hearsay.granted(now);
  }
}

export function presume(limits: readonly Limit[], now: Millis): void {
  for (const { hearsay, meter } of limits) hearsay?.presume(meter, now);
}

export function noteReported(limits: readonly Limit[], outcome: Outcome, sentAt: Millis, now: Millis): void {
  const isRefused =
    outcome.kind === 'error' || isThrottled(outcome.status, outcome.hints) || isGatewayError(outcome.status);
  for (const { hearsay, meter } of limits) hearsay?.reported(isRefused, sentAt, meter, now);
}
