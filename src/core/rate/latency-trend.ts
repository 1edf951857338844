import type { Millis } from '../scalars.ts';

/** Answers over which the mean latency and the usual one are averaged. With fewer, the lowest usual one would be due to chance. */
export const LATENCY_SPAN = 64;
export const USUAL_SPAN = 256;
/** A latency counts as at most this many times the mean. */
const MAX_COUNTED = 4;
/** The share of requests that are fast. */
const FAST_SHARE = 0.25;
/** The step of the estimate of the fast latency with each answer, and of its usual value. */
const FAST_GAIN = 0.1;
const USUAL_FAST_GAIN = 0.03;
/** The step of the share of requests without an answer with each request. */
const TIMEOUT_GAIN = 1 / 16;
/** A request that its client abandons counts if it took this many times the lowest usual mean. */
const ABANDONED_GROWTH = 2;
/**
 * After at least so many of them without an answer, this many times the lowest usual latency of the fast quarter: where a service is
 * overloaded from the start, no mean is low.
 */
const MIN_COLLAPSE = 16;
/** The lowest usual latencies rise by this factor at most after each test that finds no queue. */
const MAX_RAISE = 1.5;

/**
 * How the latency of an upstream changes: its mean, and the quantile of the fast quarter. A queue delays all requests; if slow requests
 * only become more frequent, the fast ones are as fast as before. The quantile is a stochastic approximation (Robbins and Monro, 1951) in
 * logarithms, which outliers do not move far.
 */
export class LatencyTrend {
  #answers = 0;
  #timeoutShare = 0;
  /** Requests abandoned after a long time since the last answer. */
  #abandoned = 0;
  #isCollapsed = false;
  #mean: Millis = 0;
  #usualMean: Millis = 0;
  /** The least usual mean so far, raised by tests. */
  #base: Millis = Number.POSITIVE_INFINITY;
  #fast: Millis = 0;
  #usualFast: Millis = 0;
  #fastBase: Millis = Number.POSITIVE_INFINITY;

  get answers(): number {
    return this.#answers;
  }

  get mean(): Millis {
    return this.#mean;
  }

  /** The share of the last requests that ended without an answer. */
  get timeoutShare(): number {
    return this.#timeoutShare;
  }

  /** Infinity before the first call of `updateBase`. */
  get base(): Millis {
    return this.#base;
  }

  onAnswer(latency: Millis): void {
    this.#abandoned = 0;
    this.#isCollapsed = false;
    this.#timeoutShare -= TIMEOUT_GAIN * this.#timeoutShare;
    this.#add(latency);
  }

  /** Whether a request that ended without an answer took so long that the upstream may be slow: a refused connection does not. */
  isSlow(latency: Millis): boolean {
    return this.#answers > 0 && latency > this.#fast;
  }

  /**
   * A client has abandoned its request. Returns whether that took so long that the upstream may be slow: a client may be too impatient
   * for an upstream that is as fast as ever.
   */
  onAbandoned(latency: Millis, inFlight: number): boolean {
    if (latency <= ABANDONED_GROWTH * this.#fastBase) return false;
    this.#abandoned += 1;
    if (this.#abandoned > Math.max(MIN_COLLAPSE, inFlight)) this.#isCollapsed = true;
    return this.#isCollapsed || latency > ABANDONED_GROWTH * this.#base;
  }

  /** As many requests as are in flight were abandoned after a long time, and none was answered: the upstream works for nobody. */
  get isCollapsed(): boolean {
    return this.#isCollapsed;
  }

  /** Such a request has ended. Its latency would have been higher: that counts only if it is longer than the mean. */
  onTimeout(latency: Millis): void {
    this.#timeoutShare += TIMEOUT_GAIN * (1 - this.#timeoutShare);
    if (latency > this.#mean) this.#add(latency);
  }

  /** The number in flight has changed: what ended before says nothing of it. */
  forgetTimeouts(): void {
    this.#timeoutShare = 0;
  }

  #add(latency: Millis): void {
    this.#answers += 1;
    // A few answers that a pause has delayed, here or at the upstream, do not double the mean.
    const counted = this.#answers === 1 ? latency : Math.min(latency, MAX_COUNTED * this.#mean);
    this.#mean += (counted - this.#mean) / Math.min(this.#answers, LATENCY_SPAN);
    this.#usualMean += (counted - this.#usualMean) / Math.min(this.#answers, USUAL_SPAN);
    this.#fast = approach(this.#answers === 1 ? latency : this.#fast, latency, FAST_GAIN);
    this.#usualFast = approach(this.#answers === 1 ? latency : this.#usualFast, latency, USUAL_FAST_GAIN);
  }

  /** @param isFirst true at the start, when the fast answers arrive first: earlier values are replaced */
  updateBase(isFirst: boolean): void {
    this.#base = isFirst ? this.#usualMean : Math.min(this.#base, this.#usualMean);
    this.#fastBase = isFirst ? this.#usualFast : Math.min(this.#fastBase, this.#usualFast);
  }

  /** A test has found no queue: the requests themselves have become slower. One test may be wrong, so a part of the growth counts. */
  raiseBase(): void {
    this.#base = Math.min(this.#usualMean, MAX_RAISE * this.#base);
    this.#fastBase = Math.min(this.#usualFast, MAX_RAISE * this.#fastBase);
  }

  /** Whether the mean and the latency of the fast quarter are at least `factor` times their lowest usual values. */
  hasGrown(factor: number): boolean {
    return this.#mean >= factor * this.#base && this.#fast >= factor * this.#fastBase;
  }
}

function approach(quantile: Millis, latency: Millis, gain: number): Millis {
  return quantile * (latency < quantile ? 1 - gain * (1 - FAST_SHARE) : 1 + gain * FAST_SHARE);
}
