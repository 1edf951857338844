import type { QueueOccupant } from '../admission/queue-occupancy.ts';
import { QueueOccupancy } from '../admission/queue-occupancy.ts';
import type { ResourceBound } from '../overload/resource-bound.ts';

/** A request that waits for a key. */
export interface KeyClaimant extends QueueOccupant {
  /** The claimant holds the key, until it releases it. */
  onClaimed(): void;
}

/** The waiting requests of all keys together. A further request is refused: the key is in use. */
export const MAX_WAITING = 1000;

/** The waiting requests of one key, so that a client that repeats without end does not take all places. */
export const MAX_PER_KEY = 16;

/** Shared, because most keys are claimed once. */
const NO_CLAIMANTS: readonly KeyClaimant[] = [];

/**
 * Idempotency keys of requests in progress: one request at a time holds a key, and it passes to the next in the order of
 * arrival. A claimant keeps its own deadline and calls `cancelWait`. The values refer to no request that holds a key, because
 * a `Map` of V8 may retain deleted entries (see active-set.ts).
 */
export class KeyClaims<K = string> {
  /** The keys that are held, each with its waiting claimants. */
  readonly #waiting = new Map<K, readonly KeyClaimant[]>();
  readonly #maxWaiting: number;
  readonly #maxPerKey: number;
  readonly #occupancy = new QueueOccupancy();
  #refused = 0;
  /** Released keys to pass on, one after another: a claimant may release its key within `onClaimed`. */
  readonly #released: K[] = [];
  #isPassingOn = false;

  constructor(maxWaiting = MAX_WAITING, maxPerKey = MAX_PER_KEY) {
    this.#maxWaiting = maxWaiting;
    this.#maxPerKey = maxPerKey;
  }

  /** Keys that are held. */
  get size(): number {
    return this.#waiting.size;
  }

  get bound(): ResourceBound {
    return { name: 'key_waits', used: this.#occupancy.size / this.#maxWaiting, reached: this.#refused };
  }

  /** @returns false if another request holds the key */
  tryAcquire(key: K): boolean {
    if (this.#waiting.has(key)) return false;
    this.#waiting.set(key, NO_CLAIMANTS);
    return true;
  }

  /** Queues for a key that is held. @returns false if too many wait: for the key, in all, or from the same address */
  enqueue(key: K, claimant: KeyClaimant): boolean {
    const waiting = this.#waiting.get(key) ?? NO_CLAIMANTS;
    if (this.#occupancy.isFull(claimant.fairnessKey, this.#maxWaiting) || waiting.length >= this.#maxPerKey) {
      this.#refused += 1;
      return false;
    }
    this.#occupancy.add(claimant);
    this.#waiting.set(key, [...waiting, claimant]);
    return true;
  }

  /** Leaves the queue; does nothing if the claimant is not in it. */
  cancelWait(key: K, claimant: KeyClaimant): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined || !waiting.includes(claimant)) return;
    this.#occupancy.remove(claimant);
    this.#waiting.set(
      key,
      waiting.filter((each) => each !== claimant),
    );
  }

  /** To be called once by the holder. */
  release(key: K): void {
    this.#released.push(key);
    if (this.#isPassingOn) return;
    this.#isPassingOn = true;
    try {
      for (let next = this.#released.shift(); next !== undefined; next = this.#released.shift()) this.#passOn(next);
    } finally {
      this.#isPassingOn = false;
    }
  }

  #passOn(key: K): void {
    const [next, ...others] = this.#waiting.get(key) ?? NO_CLAIMANTS;
    if (next === undefined) {
      this.#waiting.delete(key);
      return;
    }
    this.#occupancy.remove(next);
    this.#waiting.set(key, others);
    next.onClaimed();
  }
}
