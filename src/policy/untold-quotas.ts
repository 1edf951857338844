import type { Millis } from './types.ts';

/** So long a success without a quota speaks for an upstream that has none for all of its requests. */
const LASTS: Millis = 60_000;

/** The last two clients whose requests succeeded at one upstream without being told of a quota, and when. */
export class UntoldQuotas {
  #client: string | undefined;
  #at: Millis = Number.NEGATIVE_INFINITY;
  #formerAt: Millis = Number.NEGATIVE_INFINITY;

  note(client: string, now: Millis): void {
    if (client !== this.#client) {
      this.#formerAt = this.#at;
      this.#client = client;
    }
    this.#at = now;
  }

  /** Whether a client other than this one succeeded lately without being told of a quota: one that is told now is not of all requests. */
  byOthers(client: string, now: Millis): boolean {
    return now - (client === this.#client ? this.#formerAt : this.#at) < LASTS;
  }
}
