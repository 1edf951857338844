import { RecencyMap } from '../collections/recency-map.ts';
import type { Millis } from '../scalars.ts';
import type { Requester } from '../quota/requester.ts';
import { clientPrefixOfKey, isRequesterKey, requesterKey, requesterKeyPrefix } from '../quota/requester.ts';

/** The maximum number of holds at one limit. Beyond it the oldest is dropped. */
const MAX_HOLDS = 1000;
/** A client that is held with this many credentials is held with all: inventing credentials must not evade a hold. */
const MAX_CREDENTIALS_PER_CLIENT = 8;

/** A client that the upstream asked to wait, or whose allowance was reduced: shared by all processes. */
export interface ClientHold {
  /** The client's key: upstream and client, separated by a NUL. */
  readonly client: string;
  /** When the client may come back; −Infinity if it need not wait. */
  readonly until: Millis;
  /** The reduced allowance, in (0, 1); absent if it is not reduced. */
  readonly allowance?: number;
}

/** A request, by its client's hash and its requester. */
interface HeldRequester {
  readonly client: string;
  readonly requester: Requester;
}

/**
 * The clients that the upstream asked to stay away from one limit, with any credential or with one of theirs. Other limits
 * do not hold them.
 */
export class ClientHolds {
  readonly #heldUntilByKey = new RecencyMap<string, Millis>();
  /** After this no hold is by credential, so that the lookup of one can be skipped. */
  #credentialHoldsUntil = Number.NEGATIVE_INFINITY;

  /** Returns a time in the past, or −Infinity, if the requester is not held. */
  heldUntil(held: HeldRequester, now: Millis): Millis {
    const until = this.#keyHeldUntil(held.client);
    if (now >= this.#credentialHoldsUntil) return until;
    const { requester } = held;
    const withAny = requesterKey({ ...requester, credential: undefined });
    return Math.max(until, this.#keyHeldUntil(requesterKey(requester)), this.#keyHeldUntil(withAny));
  }

  /** @param key the hash of a client, or a `requesterKey` */
  add(key: string, until: Millis, now: Millis): void {
    this.#set(key, until);
    if (isRequesterKey(key)) {
      this.#credentialHoldsUntil = Math.max(this.#credentialHoldsUntil, until);
      const client = clientPrefixOfKey(key);
      if (this.#credentialCount(client, now) >= MAX_CREDENTIALS_PER_CLIENT) this.#set(`${client}*`, until);
    }
    for (const [oldest, end] of this.#heldUntilByKey) {
      if (end > now && this.#heldUntilByKey.size <= MAX_HOLDS) break;
      this.#heldUntilByKey.delete(oldest);
    }
  }

  /** Ends all holds of a client, whatever its credential. */
  clearClient(client: string): void {
    this.#heldUntilByKey.delete(client);
    const prefix = requesterKeyPrefix(client);
    for (const [key] of this.#heldUntilByKey) if (key.startsWith(prefix)) this.#heldUntilByKey.delete(key);
  }

  #set(key: string, until: Millis): void {
    this.#heldUntilByKey.set(key, Math.max(this.#keyHeldUntil(key), until));
  }

  #credentialCount(client: string, now: Millis): number {
    let count = 0;
    for (const [key, until] of this.#heldUntilByKey) if (until > now && key.startsWith(client)) count += 1;
    return count;
  }

  #keyHeldUntil(key: string): Millis {
    return this.#heldUntilByKey.get(key) ?? Number.NEGATIVE_INFINITY;
  }
}
