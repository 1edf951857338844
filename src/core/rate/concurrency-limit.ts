import type { Millis, PerSecond } from '../scalars.ts';
import { PlaceTurnover } from './place-turnover.ts';
import { SENT_PER_REJECTION } from './probe-planner.ts';
import type { RateState } from './rate-state.ts';

/** The number of accepted sends that a rejection is compared with. */
const SAMPLES = 128;
/** A number in flight is extreme if at most this share of accepted sends met as many. */
const EXTREME_SHARE = 0.15;
/**
 * Wald's sequential test, in nats: an extreme number is e^1.4 times as likely under a concurrency limit as under a rate
 * limit, any other number e^2 times less. Accepted at e^7 : 1. (Annals of Mathematical Statistics 16, 1945.)
 */
const SCORE_FOR = 1.4;
const SCORE_AGAINST = 2;
const ACCEPT_SCORE = 7;
/** This many of the last extreme numbers must be about equal. */
const MIN_AGREEING = 5;

/**
 * Detects a limit on requests in flight instead of their rate: rejections then occur when unusually many requests are in
 * flight, and always at the same number.
 */
export class ConcurrencyLimitDetector {
  /** Created on first use: limits of clients are many. */
  #samples: Uint16Array | undefined;
  readonly #candidates: number[] = [];
  #count = 0;
  #score = 0;

  /** @param inFlightAtSend requests in flight when an accepted request was sent, itself included */
  onAccepted(inFlightAtSend: number): void {
    this.#samples ??= new Uint16Array(SAMPLES);
    this.#samples[this.#count % SAMPLES] = inFlightAtSend;
    this.#count += 1;
  }

  /** The first rejection of an epoch. Returns the number in flight at which rejections occur, once it is certain enough. */
  onRejected(inFlightAtSend: number): number | undefined {
    if (this.#samples === undefined || this.#count < SAMPLES) return undefined;
    let asManyInFlight = 0;
    for (const accepted of this.#samples) if (accepted >= inFlightAtSend) asManyInFlight += 1;
    if (asManyInFlight > EXTREME_SHARE * SAMPLES) {
      this.#score = Math.max(0, this.#score - SCORE_AGAINST);
      return undefined;
    }
    this.#score = Math.min(2 * ACCEPT_SCORE, this.#score + SCORE_FOR);
    this.#candidates.push(inFlightAtSend);
    if (this.#candidates.length > MIN_AGREEING) this.#candidates.shift();
    const smallest = Math.min(...this.#candidates);
    const largest = Math.max(...this.#candidates);
    const agree = this.#candidates.length === MIN_AGREEING && largest - smallest <= Math.max(1, 0.15 * largest);
    return this.#score >= ACCEPT_SCORE && agree ? smallest : undefined;
  }

  reset(): void {
    this.#score = 0;
    this.#candidates.length = 0;
  }
}

/** The share of rejections, smoothed over this many responses, above which a concurrency limit is refuted. */
const REJECTED_SHARE_SPAN = 400;
const MAX_REJECTED_SHARE = 0.04;
const MIN_CALM: Millis = 1000;
/**
 * A limit of so few is also refuted if this many requests in a row are accepted with more in flight: requests that come too soon after
 * each other are rejected by some rate limits too, and may be the only ones that are in flight together.
 */
const FEW = 3;
const MAX_ACCEPTED_BEYOND = 8;
/** Requests beyond a limit of few are spaced, as if there were so much of a place more than was detected. */
const EXTRA_PLACE = 0.5;

/** How many requests may be in flight: one less after each rejection; after calm one more, then two, then four. */
export class ConcurrencyLimit {
  #size: number;
  #step = 1;
  #calmSince: Millis;
  #rejectedShare = 0;
  /** Whether so many were in flight since the size last changed, and whether a request that was sent then has been accepted. */
  #isReached = false;
  #isConfirmed = false;
  /** The size at first: with more in flight, requests were rejected. */
  readonly #detected: number;
  #acceptedBeyond = 0;
  readonly #turnover: PlaceTurnover;

  constructor(size: number, now: Millis) {
    this.#size = Math.max(1, size);
    this.#detected = this.#size;
    this.#calmSince = now;
    this.#turnover = new PlaceTurnover(now);
  }

  get size(): number {
    return this.#size;
  }

  /** How many requests can be sent each second: as many as places become free while all are taken. Undefined before that is measured. */
  get turnoverRate(): PerSecond | undefined {
    return this.#turnover.rate(this.#isSpaced ? this.#detected + EXTRA_PLACE : this.#size);
  }

  /** The rate that spaces requests: those beyond a limit of few, so that a rejection does not mean that they came all at once. */
  get pace(): PerSecond {
    return (this.#isSpaced ? this.turnoverRate : undefined) ?? Number.POSITIVE_INFINITY;
  }

  get #isSpaced(): boolean {
    return this.#detected <= FEW && this.#size > this.#detected;
  }

  /** Whether enough requests were accepted with more in flight than were detected as the limit of few. */
  get isExceeded(): boolean {
    return this.#acceptedBeyond >= MAX_ACCEPTED_BEYOND;
  }

  /** Whether so many requests are rejected that something else must be limited. */
  get isRefuted(): boolean {
    return this.#rejectedShare > MAX_REJECTED_SHARE;
  }

  /** A request is about to be sent. @param inFlight without it */
  onSend(inFlight: number, now: Millis): void {
    this.#turnover.onChange(inFlight, now);
    if (inFlight + 1 >= this.#size) this.#isReached = true;
  }

  /** @param inFlight with the request that ends */
  onEnded(inFlight: number, now: Millis): void {
    this.#turnover.onEnded(inFlight, now);
  }

  /** The next end is that of a request that the upstream rejected, for whatever reason: it held no place there. */
  discountEnd(): void {
    this.#turnover.onRejected();
  }

  /** @param inFlightAtSend 0 if unknown */
  onAccepted(inFlightAtSend: number): void {
    if (this.#isReached && (inFlightAtSend === 0 || inFlightAtSend >= this.#size)) this.#isConfirmed = true;
    if (this.#detected <= FEW && inFlightAtSend > this.#detected) this.#acceptedBeyond += 1;
    this.#rejectedShare -= this.#rejectedShare / REJECTED_SHARE_SPAN;
  }

  onRejected(now: Millis): void {
    this.#size = Math.max(1, this.#size - 1);
    this.#step = 1;
    this.#calmSince = now;
    this.#acceptedBeyond = 0;
    this.#rejectedShare += (1 - this.#rejectedShare) / REJECTED_SHARE_SPAN;
  }

  /**
   * Grows, by a larger step each time, if it has been calm for long enough that a rejection would be one of many sends, and if the
   * upstream has accepted as many as the size allows: a size that was never reached says nothing (RFC 2861, congestion window
   * validation).
   */
  grow(now: Millis, { rate, usualProbeLoss, meanCost }: RateState): void {
    if (!this.#isConfirmed) return;
    const bySends = (1000 * SENT_PER_REJECTION * usualProbeLoss * meanCost) / rate;
    if (now - this.#calmSince < Math.max(MIN_CALM, bySends)) return;
    this.#size += this.#step;
    this.#step *= 2;
    this.#calmSince = now;
    this.#isReached = false;
    this.#isConfirmed = false;
  }
}
