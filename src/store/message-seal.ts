import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const SALT_BYTES = 32;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** What a sealed message takes besides its bytes. */
export const SEAL_BYTES = SALT_BYTES + TAG_BYTES;

/** What is sealed. Keys of one kind open nothing of another. */
export type SealedKind = 'kept response' | 'delivery' | 'delivery result';

/**
 * Encrypts messages with a secret (AES-256-GCM, NIST SP 800-38D). Each has a key and a nonce of its own, derived from a random salt
 * (HKDF, RFC 5869), so that the message limit of a GCM key never applies. The id is authenticated, so that none can take the place of
 * another.
 */
export class MessageSeal {
  /** Node imports bytes as a key for each call, which takes longer than the call itself. */
  readonly #secret: KeyObject;
  readonly #kind: SealedKind;

  constructor(secret: string, kind: SealedKind) {
    this.#secret = createSecretKey(Buffer.from(secret));
    this.#kind = kind;
  }

  seal(id: string, bytes: Buffer): Buffer {
    const salt = randomBytes(SALT_BYTES);
    const { key, nonce } = this.#derive(salt);
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(id));
    return Buffer.concat([salt, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }

  /** Undefined if it was sealed with another secret, kind or id, or has changed since. */
  open(id: string, sealed: Buffer): Buffer | undefined {
    if (sealed.length < SEAL_BYTES) return undefined;
    const { key, nonce } = this.#derive(sealed.subarray(0, SALT_BYTES));
    const end = sealed.length - TAG_BYTES;
    const decipher = createDecipheriv(CIPHER, key, nonce).setAAD(Buffer.from(id)).setAuthTag(sealed.subarray(end));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(SALT_BYTES, end)), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  #derive(salt: Buffer): { readonly key: KeyObject; readonly nonce: Buffer } {
    const bytes = Buffer.from(hkdfSync('sha256', this.#secret, salt, this.#kind, KEY_BYTES + NONCE_BYTES));
    return { key: createSecretKey(bytes.subarray(0, KEY_BYTES)), nonce: bytes.subarray(KEY_BYTES) };
  }
}
