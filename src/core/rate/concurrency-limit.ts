import type { Millis } from '../exchange/attempt-outcome.ts';
import { SENT_PER_REJECTION } from './probe-planner.ts';
import type { RateState } from './rate-state.ts';

/** Accepted sends that a number in flight is compared with. */
const SAMPLES = 128;
/** A number in flight is extreme when at most this share of accepted sends met as many. */
const EXTREME = 0.15;
/**
 * Wald's sequential test, in nats: an extreme number is e^1.4 times as likely under a limit on requests in flight as
 * under one on their rate, another e^2 times less; believed at e^7 : 1. (Annals of Mathematical Statistics 16, 1945.)
 */
const FOR = 1.4;
const AGAINST = 2;
const BELIEVED = 7;
/** The last numbers that were extreme must be one number, more or less. */
const AGREEING = 5;

/**
 * Whether a limit is on requests in flight rather than on their rate: then it is felt when unusually many are in flight,
 * and always at the same number.
 */
export class PlacesEvidence {
  /** Made when first needed: limits of clients are many. */
  #accepted: Uint16Array | undefined;
  readonly #suspects: number[] = [];
  #count = 0;
  #score = 0;

  /** @param among requests in flight when an accepted one was sent, itself included */
  accepted(among: number): void {
    this.#accepted ??= new Uint16Array(SAMPLES);
    this.#accepted[this.#count % SAMPLES] = among;
    this.#count += 1;
  }

  /** The first rejection of an epoch. Returns the number in flight at which the limit is felt, once it is believed. */
  rejected(among: number): number | undefined {
    if (this.#accepted === undefined || this.#count < SAMPLES) return undefined;
    let asMany = 0;
    for (const accepted of this.#accepted) if (accepted >= among) asMany += 1;
    if (asMany > EXTREME * SAMPLES) {
      this.#score = Math.max(0, this.#score - AGAINST);
      return undefined;
    }
    this.#score = Math.min(2 * BELIEVED, this.#score + FOR);
    this.#suspects.push(among);
    if (this.#suspects.length > AGREEING) this.#suspects.shift();
    const least = Math.min(...this.#suspects);
    const most = Math.max(...this.#suspects);
    const agree = this.#suspects.length === AGREEING && most - least <= Math.max(1, 0.15 * most);
    return this.#score >= BELIEVED && agree ? least : undefined;
  }

  forget(): void {
    this.#score = 0;
    this.#suspects.length = 0;
  }
}

/** A share of rejections, smoothed over so many answers, above which places in flight are not what is limited. */
const STRAIN_SPAN = 400;
const STRAINED = 0.04;
const LEAST_PAUSE: Millis = 1000;

/** How many requests may be in flight: each rejection takes a place, calm gives back one, then two, then four. */
export class Places {
  #size: number;
  #step = 1;
  #calmSince: Millis;
  #strain = 0;

  constructor(size: number, now: Millis) {
    this.#size = Math.max(1, size);
    this.#calmSince = now;
  }

  get size(): number {
    return this.#size;
  }

  /** So much is rejected that something else must be limited. */
  get isStrained(): boolean {
    return this.#strain > STRAINED;
  }

  accepted(): void {
    this.#strain -= this.#strain / STRAIN_SPAN;
  }

  rejected(now: Millis): void {
    this.#size = Math.max(1, this.#size - 1);
    this.#step = 1;
    this.#calmSince = now;
    this.#strain += (1 - this.#strain) / STRAIN_SPAN;
  }

  /** Full, and calm for long enough that a rejection would be one of many sends: a larger step each time. */
  grow(now: Millis, { rate, usualLoss }: RateState): void {
    if (now - this.#calmSince < Math.max(LEAST_PAUSE, (1000 * SENT_PER_REJECTION * usualLoss) / rate)) return;
    this.#size += this.#step;
    this.#step *= 2;
    this.#calmSince = now;
  }
}
