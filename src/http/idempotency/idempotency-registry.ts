import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { MOST_ANSWERED } from '../../core/idempotency/key-records.ts';
import { KeyRegistry } from '../../core/idempotency/key-registry.ts';
import type { WriteIdentity } from '../../core/idempotency/keyed-write.ts';
import { Hmac } from '../request/hmac.ts';
import type { Credential } from './idempotency-key.ts';

/** Bytes of the heap that one answered write takes, rounded up, and the part of the heap that all of them may take. */
const EACH = 256;
const PART = 0.1;

/** The key registry of this process. Of keys and credentials it keeps digests alone. */
export class KeyBook extends KeyRegistry {
  readonly #hmac = new Hmac(randomBytes(32));

  /** @param heap bytes it may grow to */
  constructor(heap: number) {
    super(undefined, Math.max(1, Math.min(MOST_ANSWERED, Math.floor((PART * heap) / EACH))));
  }

  /** @param body kept whole; undefined where it is not known. Its checksum is evidence alone: equal ones mean the same write */
  identify(upstream: string, name: string, credential: Credential, body: Uint8Array | undefined): WriteIdentity {
    return {
      upstream,
      name: this.digest(name),
      credential: (credential.kind === 'header' ? 1 : -1) * (1 + this.#hmac.digest(credential.value).readUIntBE(0, 6)),
      readFrom: credential.header,
      body: body === undefined ? undefined : body.length * 2 ** 32 + crc32(body),
    };
  }

  digest(name: string): string {
    return this.#hmac.digest(name).toString('latin1', 0, 16);
  }
}
