import type { Place } from '../admission/queue-occupancy.ts';
import { Backlog } from '../admission/queue-occupancy.ts';
import type { Bound } from '../overload/resource-bound.ts';

/** Who waits for a key. */
export interface Claimant extends Place {
  /** The key is theirs, until they release it. */
  onClaimed(): void;
}

/** In all. Whoever comes then is told that the key is in use. */
const MOST_WAITING = 1000;

/** For one key: a client that repeats without end leaves the other places to others. */
const MOST_PER_KEY = 16;

/** Nobody waits for it. One for all: most keys are claimed once. */
const NOBODY: readonly Claimant[] = [];

/**
 * Idempotency keys of requests under way: each is held by one request at a time, and goes to the next in the order of their
 * arrival. Who waits says itself when it has waited long enough. The values hold on to no request: a `Map` of V8 may keep
 * what was in it beyond its time (see active-set.ts).
 */
export class KeyClaims<K = string> {
  /** By those who hold it, who waits. */
  readonly #waiting = new Map<K, readonly Claimant[]>();
  readonly #most: number;
  readonly #mostPerKey: number;
  readonly #backlog = new Backlog();
  #refused = 0;
  /** Released, and to be handed on: each in its turn, however many end within the call that hands them the key. */
  readonly #released: K[] = [];
  #isHandingOn = false;

  constructor(most = MOST_WAITING, mostPerKey = MOST_PER_KEY) {
    this.#most = most;
    this.#mostPerKey = mostPerKey;
  }

  /** Keys that are held. */
  get size(): number {
    return this.#waiting.size;
  }

  get bound(): Bound {
    return { name: 'key_waits', used: this.#backlog.size / this.#most, reached: this.#refused };
  }

  /** False: another request has it. */
  take(key: K): boolean {
    if (this.#waiting.has(key)) return false;
    this.#waiting.set(key, NOBODY);
    return true;
  }

  /** Gets in line for a key that is held. False: as many wait as may, for it, in all, or of its address. */
  wait(key: K, claimant: Claimant): boolean {
    const waiting = this.#waiting.get(key) ?? NOBODY;
    if (this.#backlog.isFull(claimant.holder, this.#most) || waiting.length >= this.#mostPerKey) {
      this.#refused += 1;
      return false;
    }
    this.#backlog.add(claimant);
    this.#waiting.set(key, [...waiting, claimant]);
    return true;
  }

  /** Waits no longer. No harm when it does not. */
  leave(key: K, claimant: Claimant): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined || !waiting.includes(claimant)) return;
    this.#backlog.remove(claimant);
    this.#waiting.set(
      key,
      waiting.filter((each) => each !== claimant),
    );
  }

  /** To be called once by whoever holds it. */
  release(key: K): void {
    this.#released.push(key);
    if (this.#isHandingOn) return;
    this.#isHandingOn = true;
    try {
      for (let next = this.#released.shift(); next !== undefined; next = this.#released.shift()) this.#handOn(next);
    } finally {
      this.#isHandingOn = false;
    }
  }

  #handOn(key: K): void {
    const [next, ...others] = this.#waiting.get(key) ?? NOBODY;
    if (next === undefined) {
      this.#waiting.delete(key);
      return;
    }
    this.#backlog.remove(next);
    this.#waiting.set(key, others);
    next.onClaimed();
  }
}
