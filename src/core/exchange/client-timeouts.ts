import { RecencyMap } from '../collections/recency-map.ts';
import type { Millis } from '../scalars.ts';

/** Requests in a row that a client abandons at the same age, before that age counts as its timeout. */
const FIRST_NEEDED = 3;
/** The number doubles, up to this, each time that a timeout turns out to be none: the key may stand for different clients. */
const MAX_NEEDED = 24;
/** Two ages are the same if they differ by at most this share, or by `MIN_TOLERANCE`: timers and networks are not exact. */
const TOLERANCE = 0.05;
const MIN_TOLERANCE: Millis = 2;
/** The weight of the last age in the estimate of a timeout. */
const GAIN = 0.25;
/** A timeout is forgotten after this time without a request that is abandoned at it. */
const MEMORY: Millis = 600_000;
/** Clients whose abandoned requests are remembered. */
const MAX_CLIENTS = 10_000;

/** A client of one upstream, of which it may demand other times than of others. A ticket is one. */
export interface UpstreamClient {
  readonly upstream: string;
  readonly client: string;
}

interface AbandonedRequests {
  /** Infinity if no timeout is known. */
  timeout: Millis;
  /** When a request was last abandoned at that age. */
  seenAt: Millis;
  /** The age of the last requests that were abandoned, and how many of them in a row had that age. */
  age: Millis;
  inRow: number;
  needed: number;
}

/**
 * The timeouts of clients, as the requests that they abandon show them. A timeout is constant, whereas a user who navigates away, a
 * search that the next letter replaces, and the slower one of two hedged requests end at any age: such ages do not agree, and show
 * nothing. Ages count from the end of the request's body. A process learns only from its own requests.
 */
export class ClientTimeouts {
  readonly #clients = new RecencyMap<string, AbandonedRequests>();

  /** The client's timeout; Infinity if none is known. */
  timeoutOf(client: UpstreamClient, now: Millis): Millis {
    if (this.#clients.size === 0) return Number.POSITIVE_INFINITY;
    const known = this.#clients.get(keyOf(client));
    return known === undefined || isExpired(known, now) ? Number.POSITIVE_INFINITY : known.timeout;
  }

  /** A client disconnected before it had a response. Returns whether the reason is its timeout. */
  onAbandoned(client: UpstreamClient, age: Millis, now: Millis): boolean {
    const known = this.#find(client, now);
    if (isSameAge(age, known.timeout)) {
      known.timeout += GAIN * (age - known.timeout);
      known.seenAt = now;
      return true;
    }
    if (age > known.timeout) disprove(known);
    known.inRow = isSameAge(age, known.age) ? known.inRow + 1 : 1;
    known.age = known.inRow === 1 ? age : known.age + GAIN * (age - known.age);
    if (known.inRow < known.needed) return false;
    known.timeout = known.age;
    known.seenAt = now;
    known.inRow = 0;
    return true;
  }

  /** A client had a response at this age, so its timeout is longer. */
  onAnswered(client: UpstreamClient, age: Millis): void {
    if (this.#clients.size === 0) return;
    const known = this.#clients.get(keyOf(client));
    if (known === undefined) return;
    if (age > known.timeout + toleranceOf(known.timeout)) disprove(known);
    // An age at which requests are answered too is no timeout: the faster one of two hedged requests is answered as the other ends.
    if (age >= known.age - toleranceOf(known.age)) known.inRow = 0;
  }

  #find(client: UpstreamClient, now: Millis): AbandonedRequests {
    const key = keyOf(client);
    const known = this.#clients.use(key);
    if (known !== undefined && !isExpired(known, now)) return known;
    const added = { timeout: Number.POSITIVE_INFINITY, seenAt: now, age: 0, inRow: 0, needed: FIRST_NEEDED };
    this.#clients.set(key, added);
    if (this.#clients.size > MAX_CLIENTS) this.#clients.deleteOldest();
    return added;
  }
}

function disprove(known: AbandonedRequests): void {
  known.timeout = Number.POSITIVE_INFINITY;
  known.inRow = 0;
  known.needed = Math.min(MAX_NEEDED, 2 * known.needed);
}

function isExpired({ seenAt }: AbandonedRequests, now: Millis): boolean {
  return now - seenAt > MEMORY;
}

function isSameAge(age: Millis, other: Millis): boolean {
  return Math.abs(age - other) <= toleranceOf(other);
}

function toleranceOf(age: Millis): Millis {
  return Number.isFinite(age) ? Math.max(MIN_TOLERANCE, TOLERANCE * age) : 0;
}

function keyOf({ upstream, client }: UpstreamClient): string {
  return `${upstream}\0${client}`;
}
