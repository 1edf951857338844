import type { Bound } from './bound.ts';
import type { Millis } from './types.ts';

const MOST_KEYS = 100_000;

/**
 * Idempotency keys of writes that have been answered, and when each was first sent: a repeat that comes when the upstream has
 * forgotten the key would be done anew. Apart from those that are open, so that these are never pushed out by them. A ring:
 * the first entries of a `Map` from which the oldest is deleted again and again are slow to find.
 */
export class SettledKeys {
  /** Where in the ring. */
  readonly #places = new Map<string, number>();
  readonly #keys: string[] = [];
  readonly #sentAt: Millis[] = [];
  readonly #most: number;
  #next = 0;
  #forgotten = 0;

  constructor(most = MOST_KEYS) {
    this.#most = most;
  }

  get bound(): Bound {
    return { name: 'settled_keys', used: this.#places.size / this.#most, reached: this.#forgotten };
  }

  /** Asked before a key is hashed for nothing. */
  get isEmpty(): boolean {
    return this.#places.size === 0;
  }

  /** When it was first sent; undefined where it is not remembered. */
  sentAt(key: string): Millis | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.#sentAt[place];
  }

  /** What is known of it already is older, and stays. The oldest makes room. */
  add(key: string, sentAt: Millis): void {
    if (this.#places.has(key)) return;
    const oldest = this.#keys[this.#next];
    if (oldest !== undefined) {
      this.#places.delete(oldest);
      this.#forgotten += 1;
    }
    this.#keys[this.#next] = key;
    this.#sentAt[this.#next] = sentAt;
    this.#places.set(key, this.#next);
    this.#next = (this.#next + 1) % this.#most;
  }
}
