import { RecencyMap } from '../collections/recency-map.ts';
import type { Millis } from '../scalars.ts';

/** When a client was asked to return: the first such time that it has not used, and the last. Both −Infinity if there is none. */
export interface ReturnPromise {
  readonly first: Millis;
  readonly last: Millis;
  /** When it asked before. */
  readonly askedAt: Millis;
}

export const NO_PROMISE: ReturnPromise = {
  first: Number.NEGATIVE_INFINITY,
  last: Number.NEGATIVE_INFINITY,
  askedAt: Number.NEGATIVE_INFINITY,
};

/** The maximum number of clients per limit. Beyond it, the one without a refusal for longest is forgotten. */
const MAX_CLIENTS = 10_000;

/**
 * When the clients of one limit were asked to return to it. Used where an upstream has several limits: a client that uses two of
 * them returns to each of them at another time.
 */
export class ReturnPromises {
  readonly #byClient = new RecencyMap<string, ReturnPromise>();

  get size(): number {
    return this.#byClient.size;
  }

  get(client: string): ReturnPromise {
    return this.#byClient.get(client) ?? NO_PROMISE;
  }

  /** @param usableFor how long after its time a promise is valid */
  set(client: string, promise: ReturnPromise, usableFor: Millis, now: Millis): void {
    this.#byClient.set(client, promise);
    for (const [oldest, { last }] of this.#byClient) {
      if (now - last <= usableFor && this.#byClient.size <= MAX_CLIENTS) break;
      this.#byClient.delete(oldest);
    }
  }

  delete(client: string): void {
    this.#byClient.delete(client);
  }
}
