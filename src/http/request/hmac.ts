import { createHmac, hash } from 'node:crypto';

const BLOCK_LENGTH = 64;
const DIGEST_LENGTH = 32;
/** Longer texts are rare, and use `createHmac`. */
const MAX_LENGTH = 1024;

/**
 * HMAC-SHA-256 (RFC 2104) by two one-shot hashes. `createHmac` of Node 24 allocates a native object for each digest, which is five
 * times as slow and leaves the collector a finalizer (docs/performance.md).
 */
export class HmacSha256 {
  readonly #secret: string | Buffer;
  /** The inner block of the key, followed by the text. */
  readonly #inner = Buffer.alloc(BLOCK_LENGTH + 3 * MAX_LENGTH);
  /** The outer block of the key, followed by the inner digest. */
  readonly #outer = Buffer.alloc(BLOCK_LENGTH + DIGEST_LENGTH);

  constructor(secret: string | Buffer) {
    this.#secret = secret;
    const given = Buffer.from(secret);
    const key = given.length > BLOCK_LENGTH ? hash('sha256', given, 'buffer') : given;
    for (let i = 0; i < BLOCK_LENGTH; i += 1) {
      const byte = key[i] ?? 0;
      this.#inner[i] = byte ^ 0x36;
      this.#outer[i] = byte ^ 0x5c;
    }
  }

  /** @param text hashed as UTF-8 */
  digest(text: string): Buffer {
    if (text.length > MAX_LENGTH) return createHmac('sha256', this.#secret).update(text).digest();
    const end = BLOCK_LENGTH + this.#inner.write(text, BLOCK_LENGTH);
    hash('sha256', this.#inner.subarray(0, end), 'buffer').copy(this.#outer, BLOCK_LENGTH);
    return hash('sha256', this.#outer, 'buffer');
  }
}
