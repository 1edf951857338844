import type { Bound } from '../../core/overload/resource-bound.ts';
import { Hmac } from './hmac.ts';

/** A keyed hash of 64 bits in hex: enough to tell clients apart, and nothing to guess a key by. */
export type Hash = (text: string) => string;

/** Hashes are worth keeping: an HMAC costs more than the rest of a decision. */
const KEPT = 10_000;
/** Longer ones are hashed anew each time: what is kept has a bound in bytes too. */
const LONGEST_KEPT = 256;

/** Hashes what clients are known by, before anything else learns of it. */
export class ClientHash {
  readonly #hmac: Hmac;
  readonly #all: Map<string, string>[] = [];
  #kept = 0;
  #cleared = 0;

  constructor(secret: string | Buffer) {
    this.#hmac = new Hmac(secret);
  }

  /**
   * A hash of one kind of text. What is kept is found by the text as it comes: to put another together for each request would
   * cost more than to find it.
   * @param told what is hashed for a text; the same for the same text
   */
  of(told: (text: string) => string): Hash {
    const kept = new Map<string, string>();
    this.#all.push(kept);
    return (text) => {
      const known = kept.get(text);
      if (known !== undefined) return known;
      const hash = this.#digest(told(text));
      if (text.length > LONGEST_KEPT) return hash;
      if (this.#kept >= KEPT) this.#clear();
      this.#kept += 1;
      kept.set(text, hash);
      return hash;
    };
  }

  /** What `of` has made so far is used no more: what was kept for it goes. */
  forget(): void {
    for (const kept of this.#all.splice(1)) this.#kept -= kept.size;
  }

  readonly hash: Hash = this.of((text) => text);

  get bound(): Bound {
    return { name: 'hashes', used: this.#kept / KEPT, reached: this.#cleared };
  }

  #digest(text: string): string {
    return this.#hmac.digest(text).toString('hex', 0, 8); // a slice of the whole in hex would keep the whole
  }

  #clear(): void {
    for (const kept of this.#all) kept.clear();
    this.#kept = 0;
    this.#cleared += 1;
  }
}
