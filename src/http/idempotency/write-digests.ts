import { createHmac } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { RESPONSE_SEPARATOR } from '../../core/idempotency/response-store.ts';
import { KEY_DIGEST, NAME_DIGEST, responseWriteOf } from '../../core/idempotency/write-id.ts';
import type { KeyOwner } from '../../core/idempotency/key-owner.ts';
import type { OwnerDigests, WriteIdentity } from '../../core/idempotency/keyed-write.ts';
import { HmacSha256 } from '../request/hmac.ts';
import type { WriteCredential } from './idempotency-types.ts';

/** With a checksum of 32 bits, the length modulo this is an exact number (below 2^53), which a database can store. */
const LENGTHS = 2 ** 21;

/** Bytes of the digest of a client in the id of a kept response. */
const CLIENT_DIGEST = 12;

/** The texts that `writeNameOf` returns. */
export interface WriteNameParts {
  /** All that names the write, the key included. */
  readonly name: string;
  readonly key: string;
}

/** Identifies writes by digests, so that no keys and credentials are kept. Processes that share keys share the secret. */
export class WriteDigests {
  readonly #secret: string | Buffer;
  readonly #hmac: HmacSha256;

  constructor(secret: string | Buffer) {
    this.#secret = secret;
    this.#hmac = new HmacSha256(secret);
  }

  /** @param body complete; undefined if not known. Its checksum is evidence only: equal checksums suggest the same write */
  identify(
    upstream: string,
    { name, key }: WriteNameParts,
    credential: WriteCredential,
    body: Uint8Array | undefined,
  ): WriteIdentity {
    const { kind, value, owner, keyOwner } = credential;
    const checksum = this.#checksum(value);
    return {
      upstream,
      name: this.digest({ name, key }),
      credential: kind === 'header' ? checksum : -checksum,
      owner: this.#checksum(owner),
      credentialHeader: credential.header,
      body: body && (body.length % LENGTHS) * 2 ** 32 + crc32(body),
      ...this.identifyOwner(keyOwner),
    };
  }

  digest({ name, key }: WriteNameParts): string {
    return this.#hmac.digest(name).toString('latin1', 0, NAME_DIGEST) + this.digestKey(key);
  }

  /** Returns the digest of a key alone, at which all names with this key end. */
  digestKey(key: string): string {
    // No name begins like this: the first part of a name is that of an upstream.
    return this.#hmac.digest(`\0${key}`).toString('latin1', 0, KEY_DIGEST);
  }

  /** The id of the response to a write, for one client. @param client its identity and credentials */
  responseId(name: string, client: string): string {
    const digest = this.#hmac.digest(`\0response\0${name}\0${client}`).toString('base64url', 0, CLIENT_DIGEST);
    return `${responseWriteOf(name)}${RESPONSE_SEPARATOR}${digest}`;
  }

  /** A collision-resistant digest of query and body: a client cannot construct another request with the same one. */
  fingerprint(query: string, body: Uint8Array): string {
    const hmac = createHmac('sha256', this.#secret).update(`\0request\0${query}\0`).update(body);
    return hmac.digest('base64url');
  }

  /** @param keyOwner see `WriteCredential.keyOwner` */
  identifyOwner(keyOwner: KeyOwner | undefined): OwnerDigests {
    if (keyOwner === undefined) return { keyOwner: undefined, keyOwnerKind: undefined };
    return { keyOwner: this.#checksum(keyOwner.name), keyOwnerKind: this.#checksum(keyOwner.kind) };
  }

  /** Above 0. */
  #checksum(text: string): number {
    return 1 + this.#hmac.digest(text).readUIntBE(0, 6);
  }
}
