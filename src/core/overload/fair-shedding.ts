import { CounterMap } from '../collections/counter-map.ts';
import type { Millis } from '../scalars.ts';
import { fairLevel } from './fair-level.ts';

/** Arrivals are counted over this time, and this many at most. */
const WINDOW: Millis = 1000;
const MAX_ARRIVALS = 2048;
/** The fair level is computed again when this share of the counted arrivals has changed. */
const UPDATE_AFTER = 1 / 8;

/**
 * Divides the share of requests to shed among the addresses that send them: the admitted requests are divided max-min fairly, so
 * that an address at or below the fair level loses nothing until the others are down to it.
 */
export class FairShedding {
  /** A ring: the address and the time of each counted arrival. */
  readonly #addresses: string[] = [];
  readonly #times: Millis[] = [];
  #oldest = 0;
  #size = 0;
  readonly #countBy = new CounterMap();
  /** Arrivals added and removed since the fair level was computed. */
  #changes = 0;
  #shedShare = 0;
  /** Relative to the counted arrivals. */
  #fairLevel = 1;

  /** The number of counted arrivals. */
  get size(): number {
    return this.#size;
  }

  /**
   * Counts an arrival, and returns the probability with which it should be shed. The mean of these probabilities is `shedShare`.
   * @param shedShare of all requests, in [0, 1]
   */
  onArrival(address: string, shedShare: number, now: Millis): number {
    this.#expire(now);
    if (this.#size === MAX_ARRIVALS) this.#removeOldest();
    this.#add(address, now);
    if (shedShare !== this.#shedShare || this.#changes > UPDATE_AFTER * this.#size) this.#update(shedShare);
    return Math.max(0, 1 - (this.#fairLevel * this.#size) / this.#countBy.count(address));
  }

  #update(shedShare: number): void {
    this.#changes = 0;
    this.#shedShare = shedShare;
    this.#fairLevel = fairLevel(this.#countBy.counts(), (1 - shedShare) * this.#size) / this.#size;
  }

  #add(address: string, now: Millis): void {
    const index = (this.#oldest + this.#size) % MAX_ARRIVALS;
    this.#addresses[index] = address;
    this.#times[index] = now;
    this.#countBy.increment(address);
    this.#size += 1;
    this.#changes += 1;
  }

  #expire(now: Millis): void {
    while (this.#size > 0 && (this.#times[this.#oldest] ?? now) <= now - WINDOW) this.#removeOldest();
  }

  #removeOldest(): void {
    this.#countBy.decrement(this.#addresses[this.#oldest] ?? '');
    this.#oldest = (this.#oldest + 1) % MAX_ARRIVALS;
    this.#size -= 1;
    this.#changes += 1;
  }
}
