import type { Bound } from './bound.ts';
import type { Millis } from './types.ts';

/** Some 4 MB, with keys of 16 characters. */
const MOST_KEYS = 20_000;

/**
 * Idempotency keys of writes of which it is not known what came of them, and when each was first sent. Such a write is safe to
 * repeat while the upstream remembers its key, and may take effect a second time after that: so what is kept is not forgotten
 * with time, but to make room.
 */
export class UnsettledKeys {
  /** In the order in which they came. */
  readonly #sentAt = new Map<string, Millis>();
  readonly #most: number;
  #forgotten = 0;

  constructor(most = MOST_KEYS) {
    this.#most = most;
  }

  get bound(): Bound {
    return { name: 'unsettled_keys', used: this.#sentAt.size / this.#most, reached: this.#forgotten };
  }

  /** Asked before a key is hashed for nothing. */
  get isEmpty(): boolean {
    return this.#sentAt.size === 0;
  }

  /** When it was first sent; undefined where nothing is open. */
  sentAt(key: string): Millis | undefined {
    return this.#sentAt.get(key);
  }

  /** Nobody knows what came of it. What is known of it already is older, and stays. */
  add(key: string, sentAt: Millis): void {
    if (this.#sentAt.has(key)) return;
    const [oldest] = this.#sentAt.size < this.#most ? [] : this.#sentAt.keys();
    if (oldest !== undefined) {
      this.#sentAt.delete(oldest);
      this.#forgotten += 1;
    }
    this.#sentAt.set(key, sentAt);
  }

  /** The upstream has said what came of it. */
  settle(key: string): void {
    this.#sentAt.delete(key);
  }
}
