import type { Requester } from '../quota/requester.ts';
import { clientOf, isOfRequester, keyOfRequester, prefixOf } from '../quota/requester.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

/** So many are remembered as held at one limit; beyond that the one that was held first is let go. */
const MOST = 1000;
/** A client that is to wait with so many credentials is to wait with any: who makes them up would never be held. */
const MOST_CREDENTIALS = 8;

/** Who is known by its client's hash, and by its credential if need be: `Ticket`. */
interface Held {
  readonly client: string;
  readonly requester: Requester;
}

/**
 * Clients that the upstream told to wait before they come back to one of its limits, and clients that are to wait with one of
 * their credentials. Elsewhere they may go.
 */
export class LimitHolds {
  readonly #until = new Map<string, Millis>();
  /** After this none is held by its credential: nobody has to ask for it. */
  #requestersUntil = Number.NEGATIVE_INFINITY;

  /** −Infinity, or in the past, where it is not held. */
  until(held: Held, now: Millis): Millis {
    const until = this.#untilOf(held.client);
    if (now >= this.#requestersUntil) return until;
    const { requester } = held;
    const withAny = keyOfRequester({ ...requester, credential: undefined });
    return Math.max(until, this.#untilOf(keyOfRequester(requester)), this.#untilOf(withAny));
  }

  /** @param key a client's hash, or of `keyOfRequester` */
  hold(key: string, until: Millis, now: Millis): void {
    this.#set(key, until);
    if (isOfRequester(key)) {
      this.#requestersUntil = Math.max(this.#requestersUntil, until);
      const client = clientOf(key);
      if (this.#countOf(client, now) >= MOST_CREDENTIALS) this.#set(`${client}*`, until);
    }
    for (const [each, end] of this.#until) {
      if (end > now && this.#until.size <= MOST) break;
      this.#until.delete(each);
    }
  }

  /** With whatever credential. */
  forgive(client: string): void {
    this.#until.delete(client);
    const own = prefixOf(client);
    for (const key of this.#until.keys()) if (key.startsWith(own)) this.#until.delete(key);
  }

  #set(key: string, until: Millis): void {
    const before = this.#untilOf(key);
    this.#until.delete(key);
    this.#until.set(key, Math.max(before, until));
  }

  #countOf(client: string, now: Millis): number {
    let count = 0;
    for (const [key, until] of this.#until) if (until > now && key.startsWith(client)) count += 1;
    return count;
  }

  #untilOf(key: string): Millis {
    return this.#until.get(key) ?? Number.NEGATIVE_INFINITY;
  }
}
