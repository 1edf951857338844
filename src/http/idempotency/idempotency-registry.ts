import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { MAX_ANSWERED } from '../../core/idempotency/key-records.ts';
import { KeyRegistry } from '../../core/idempotency/key-registry.ts';
import type { WriteIdentity } from '../../core/idempotency/keyed-write.ts';
import { HmacSha256 } from '../request/hmac.ts';
import type { WriteCredential } from './idempotency-types.ts';

/** Heap bytes of one answered write, rounded up, and the share of the heap that all of them may use. */
const BYTES_PER_KEY = 256;
const HEAP_SHARE = 0.1;

/** The key registry of this process. It keeps only digests of keys and credentials. */
export class IdempotencyRegistry extends KeyRegistry {
  readonly #hmac = new HmacSha256(randomBytes(32));

  /** @param heap maximum heap size in bytes */
  constructor(heap: number) {
    super(undefined, Math.max(1, Math.min(MAX_ANSWERED, Math.floor((HEAP_SHARE * heap) / BYTES_PER_KEY))));
  }

  /** @param body complete; undefined if not known. Its checksum is evidence only: equal checksums suggest the same write */
  identify(upstream: string, name: string, credential: WriteCredential, body: Uint8Array | undefined): WriteIdentity {
    const { kind, value, owner } = credential;
    const checksum = this.#checksum(value);
    return {
      upstream,
      name: this.digest(name),
      credential: kind === 'header' ? checksum : -checksum,
      owner: owner === value ? checksum : this.#checksum(owner),
      credentialHeader: credential.header,
      body: body === undefined ? undefined : body.length * 2 ** 32 + crc32(body),
    };
  }

  digest(name: string): string {
    return this.#hmac.digest(name).toString('latin1', 0, 16);
  }

  /** Above 0. */
  #checksum(text: string): number {
    return 1 + this.#hmac.digest(text).readUIntBE(0, 6);
  }
}
