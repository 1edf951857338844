import type { Millis } from './types.ts';

const WINDOW: Millis = 2000;

/** How much weight is active: the sum over clients that arrived in this window or the last, whichever is more. */
export class Activity {
  #window = Number.NEGATIVE_INFINITY;
  #weight = 0;
  #clients = 0;
  #previousWeight = 0;
  #previousClients = 0;

  /** Notes an arrival; a client counts once a window. */
  note(now: Millis, previousArrival: Millis, weight: number): void {
    this.#roll(now);
    if (Math.floor(previousArrival / WINDOW) === this.#window) return;
    this.#weight += weight;
    this.#clients += 1;
  }

  /** Never less than `own`, which is active by asking. */
  weight(now: Millis, own: number): number {
    this.#roll(now);
    return Math.max(own, this.#weight, this.#previousWeight);
  }

  clients(now: Millis): number {
    this.#roll(now);
    return Math.max(1, this.#clients, this.#previousClients);
  }

  #roll(now: Millis): void {
    const window = Math.floor(now / WINDOW);
    if (window === this.#window) return;
    const isNext = window === this.#window + 1;
    this.#previousWeight = isNext ? this.#weight : 0;
    this.#previousClients = isNext ? this.#clients : 0;
    this.#weight = 0;
    this.#clients = 0;
    this.#window = window;
  }
}
