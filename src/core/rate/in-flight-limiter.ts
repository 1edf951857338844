import type { Millis } from '../exchange/attempt-outcome.ts';
import { Places } from './concurrency-limit.ts';
import type { Rules } from './rules.ts';
import type { RateState } from './rate-state.ts';

/** The requests in flight, and how many may be where that turns out to be the limit. */
export class InFlight {
  readonly #watch: ReturnType<Rules['watchPlaces']>;
  #places: Places | undefined;
  #count = 0;
  /** Admitted, and not sent yet: they hold places too. */
  #admitted = 0;

  constructor(watch: ReturnType<Rules['watchPlaces']>) {
    this.#watch = watch;
  }

  get count(): number {
    return this.#count;
  }

  /** Infinity where their number is not what is limited. */
  get places(): number {
    return this.#places?.size ?? Number.POSITIVE_INFINITY;
  }

  get isLimited(): boolean {
    return this.#places !== undefined;
  }

  get isFull(): boolean {
    return this.#count + this.#admitted >= this.places;
  }

  admit(): void {
    this.#admitted += 1;
  }

  /** One that was admitted has been sent, or will not be. */
  giveBack(): void {
    this.#admitted -= 1;
  }

  /** Returns how many there are, this one included. */
  sent(): number {
    this.#count += 1;
    return this.#count;
  }

  /** Returns whether another may have been waiting for that. */
  ended(): boolean {
    this.#count -= 1;
    return this.isLimited && !this.isFull;
  }

  /** So many more, or fewer, are in flight than was told: somebody else knows. */
  recount(by: number): void {
    this.#count = Math.max(0, this.#count + by);
  }

  /** @param among what `sent` returned; 0 where that is not known */
  accepted(among: number): void {
    if (among > 0) this.#watch.accepted(among);
    this.#places?.accepted();
  }

  /** Among so many an accepted one was sent: as of `accepted`, found out later. */
  learn(among: number): void {
    this.#watch.accepted(among);
  }

  rejected(now: Millis): void {
    this.#places?.rejected(now);
  }

  /** The first rejection of an epoch: whether their number is what is limited. It is held to from then on. */
  feel(among: number, now: Millis): boolean {
    if (this.#places === undefined) {
      const felt = among === 0 ? undefined : this.#watch.rejected(among);
      if (felt === undefined) return false;
      this.#places = new Places(felt - 1, now);
    } else if (this.#places.isStrained) {
      this.doubt();
      return false;
    }
    return true;
  }

  /** Their number was the limit where it was known before. */
  resume(places: number, now: Millis): void {
    this.#places = new Places(places, now);
  }

  /** Something else must be limited: what was believed is to be shown anew. */
  doubt(): void {
    this.release();
    this.#watch.forget();
  }

  grow(now: Millis, state: RateState): void {
    this.#places?.grow(now, state);
  }

  /** Their number limits no longer. */
  release(): void {
    this.#places = undefined;
  }
}
