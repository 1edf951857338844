import { createHmac } from 'node:crypto';
import type { Bound } from '../policy/bound.ts';

/** A keyed hash of 64 bits in hex: enough to tell clients apart, and nothing to guess a key by. */
export type Hash = (text: string) => string;

/** Hashes are worth keeping: an HMAC costs more than the rest of a decision. */
const KEPT = 10_000;
/** Longer ones are hashed anew each time: what is kept has a bound in bytes too. */
const LONGEST_KEPT = 256;

/** Hashes what clients are known by, before anything else learns of it. */
export class ClientHash {
  readonly #secret: string | Buffer;
  readonly #kept = new Map<string, string>();
  #cleared = 0;

  constructor(secret: string | Buffer) {
    this.#secret = secret;
  }

  readonly hash: Hash = (text) => {
    const known = this.#kept.get(text);
    if (known !== undefined) return known;
    const digest = createHmac('sha256', this.#secret).update(text).digest();
    const hash = digest.toString('hex', 0, 8); // a slice of the whole in hex would keep the whole
    if (text.length > LONGEST_KEPT) return hash;
    if (this.#kept.size >= KEPT) {
      this.#kept.clear();
      this.#cleared += 1;
    }
    this.#kept.set(text, hash);
    return hash;
  };

  get bound(): Bound {
    return { name: 'hashes', used: this.#kept.size / KEPT, reached: this.#cleared };
  }
}
