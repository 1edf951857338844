import { numberOf } from './requester.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

/** For this long a success without a quota is evidence that the upstream’s quota does not cover all requests. */
const LASTS: Millis = 60_000;

/** When the last two clients of one upstream succeeded without a quota in the answer. */
export class UntoldQuotas {
  #client = '';
  #at: Millis = Number.NEGATIVE_INFINITY;
  #formerAt: Millis = Number.NEGATIVE_INFINITY;

  note(client: string, now: Millis): void {
    if (client !== this.#client) {
      this.#formerAt = this.#at;
      this.#client = client;
    }
    this.#at = now;
  }

  /** Whether any client has succeeded without a quota within the last minute. */
  areRecent(now: Millis): boolean {
    return now - this.#at < LASTS;
  }

  /** Whether another client than this one has. @param client its number, as of `numberOf` */
  areOfOthers(client: number, now: Millis): boolean {
    return now - (numberOf(this.#client) === client ? this.#formerAt : this.#at) < LASTS;
  }
}
