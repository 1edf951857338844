import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import { HmacSha256 } from './hmac.ts';

/** A keyed hash of 64 bits in hex: enough to distinguish clients, and of no use for guessing a key. */
export type HashFunction = (text: string) => string;

/** Hashes are cached, because an HMAC costs more than the rest of a decision. */
const MAX_CACHED = 10_000;
/** Longer texts are hashed each time, which bounds the cache in bytes too. */
const MAX_CACHED_LENGTH = 256;

/** Hashes client identities, so that nothing else handles them in clear. */
export class ClientHasher {
  readonly #hmac: HmacSha256;
  readonly #caches: Map<string, string>[] = [];
  #cachedCount = 0;
  #clears = 0;

  constructor(secret: string | Buffer) {
    this.#hmac = new HmacSha256(secret);
  }

  /**
   * A cached hash function for one kind of text. The cache is keyed by the text itself: building another key for each request
   * would cost more than the look-up.
   * @param toInput what is hashed for a text; must be deterministic
   */
  cachedHash(toInput: (text: string) => string): HashFunction {
    const cache = new Map<string, string>();
    this.#caches.push(cache);
    return (text) => {
      const cached = cache.get(text);
      if (cached !== undefined) return cached;
      const hash = this.#digest(toInput(text));
      if (text.length > MAX_CACHED_LENGTH) return hash;
      if (this.#cachedCount >= MAX_CACHED) this.#clear();
      this.#cachedCount += 1;
      cache.set(text, hash);
      return hash;
    };
  }

  /** Drops the caches of all functions made by `cachedHash` so far, which are no longer used. */
  dropCaches(): void {
    for (const cache of this.#caches.splice(1)) this.#cachedCount -= cache.size;
  }

  readonly hash: HashFunction = this.cachedHash((text) => text);

  /** The hash of a secret, which must not stay in a cache in clear. */
  readonly uncachedHash: HashFunction = (text) => this.#digest(text);

  get bound(): ResourceBound {
    return { name: 'hashes', used: this.#cachedCount / MAX_CACHED, reached: this.#clears };
  }

  #digest(text: string): string {
    return this.#hmac.digest(text).toString('hex', 0, 8); // slicing the hex text would keep all of it in memory
  }

  #clear(): void {
    for (const kept of this.#caches) kept.clear();
    this.#cachedCount = 0;
    this.#clears += 1;
  }
}
