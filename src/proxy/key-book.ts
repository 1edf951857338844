import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { KeyRegistry } from '../policy/key-registry.ts';
import type { WriteIdentity } from '../policy/keyed-write.ts';
import { Hmac } from './hmac.ts';
import type { Credential } from './idempotency.ts';

/** The key registry of this process. Of keys and credentials it keeps digests alone. */
export class KeyBook extends KeyRegistry {
  readonly #hmac = new Hmac(randomBytes(32));

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
