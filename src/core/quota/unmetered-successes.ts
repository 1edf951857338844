import { hashToNumber } from './requester.ts';
import type { Millis } from '../scalars.ts';

/** How long a success without a reported quota is evidence that the quota does not cover all requests. */
const EVIDENCE_EXPIRY: Millis = 60_000;

/** When the last two clients of one upstream succeeded without a quota in the response. */
export class UnmeteredSuccesses {
  #client = '';
  #at: Millis = Number.NEGATIVE_INFINITY;
  #formerAt: Millis = Number.NEGATIVE_INFINITY;

  onSuccess(client: string, now: Millis): void {
    if (client !== this.#client) {
      this.#formerAt = this.#at;
      this.#client = client;
    }
    this.#at = now;
  }

  /** Whether any client has succeeded without a quota within the last minute. */
  hasRecent(now: Millis): boolean {
    return now - this.#at < EVIDENCE_EXPIRY;
  }

  /** Whether another client has. @param client the number of this client by `hashToNumber` */
  hasRecentFromOthers(client: number, now: Millis): boolean {
    return now - (hashToNumber(this.#client) === client ? this.#formerAt : this.#at) < EVIDENCE_EXPIRY;
  }
}
