import { createHash, randomBytes } from 'node:crypto';

/** An API key in clear: it exists where it is created, and at the client. */
export interface ApiKey {
  /** Not secret: it finds the hash, and names the key in lists and logs. */
  readonly id: string;
  readonly text: string;
}

export const API_KEY_PREFIX = 'tg_';

const ID_BYTES = 6;
/** 256 bits cannot be guessed, so that a fast hash is enough to store it. */
const SECRET_BYTES = 32;

const KEY_PATTERN = /^tg_(?<id>[0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;

export function createApiKey(): ApiKey {
  const id = randomBytes(ID_BYTES).toString('hex');
  return { id, text: `${API_KEY_PREFIX}${id}_${randomBytes(SECRET_BYTES).toString('base64url')}` };
}

/** The id in a key; undefined if the text is not in the form of a key. */
export function apiKeyId(text: string): string | undefined {
  return KEY_PATTERN.exec(text)?.groups?.['id'];
}

/** SHA-256 of the whole key. */
export function hashApiKey(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
