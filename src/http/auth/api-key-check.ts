import { timingSafeEqual } from 'node:crypto';
import { API_KEY_PREFIX, apiKeyId, hashApiKey } from '../../config/auth/api-key.ts';
import type { StoredApiKey } from '../../config/auth/key-file.ts';
import { parseKeyFile } from '../../config/auth/key-file.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import { type AuthResult, type CredentialCheck, rejected } from './auth-types.ts';
import { WatchedFile } from './watched-file.ts';

export type ExpiringKey = Required<Pick<StoredApiKey, 'id' | 'client' | 'expiresAt'>>;

/** So long before a key expires, its use is reported. */
const REPORTED_BEFORE: Millis = 14 * 86_400_000;

/** Its time is parsed once, not for each request. */
interface IndexedKey extends StoredApiKey {
  readonly expiresAtMs: Millis | undefined;
}

export interface ApiKeyParts {
  readonly clock: Clock;
  /** The file has changed. @param problem why it cannot be used */
  readonly onFile: (problem: string | undefined) => void;
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  /** A request has a key that expires soon. Called once for each key. */
  readonly onExpiring: (key: ExpiringKey) => void;
}

/** No key has this hash: an unknown key is compared with it, so that it takes as long as a known one. */
const NO_HASH = Buffer.alloc(32);

/** API keys, of which only the hashes are known. */
export class ApiKeyCheck implements CredentialCheck {
  readonly header: string;
  readonly #parts: ApiKeyParts;
  /** The ids of keys whose expiry was reported: no more than the file has. */
  readonly #reported = new Set<string>();
  readonly #file: WatchedFile<ReadonlyMap<string, IndexedKey>>;

  /** @throws an Error with the path, if the file cannot be used */
  constructor({ file, header }: { readonly file: string; readonly header: string }, parts: ApiKeyParts) {
    const { clock, onFile } = parts;
    this.header = header.toLowerCase();
    this.#parts = parts;
    this.#file = new WatchedFile(file, indexKeys, { clock, onChange: onFile });
  }

  accepts(credential: string): boolean {
    return credential.startsWith(API_KEY_PREFIX);
  }

  verify(credential: string): AuthResult {
    const id = apiKeyId(credential);
    if (id === undefined) return rejected('malformed');
    const key = this.#file.value.get(id);
    const isEqual = timingSafeEqual(hashApiKey(credential), key?.hash ?? NO_HASH);
    if (key === undefined || !isEqual) return rejected('unknown_key');
    if (key.expiresAtMs !== undefined && this.#isExpired(key, key.expiresAtMs)) return rejected('expired');
    return { kind: 'known', principal: { name: key.client, provenBy: 'api_key' } };
  }

  #isExpired({ id, client, expiresAt }: StoredApiKey, expiresAtMs: Millis): boolean {
    const left = expiresAtMs - this.#parts.wallClock();
    if (expiresAt !== undefined && left > 0 && left <= REPORTED_BEFORE && !this.#reported.has(id)) {
      this.#reported.add(id);
      this.#parts.onExpiring({ id, client, expiresAt });
    }
    return left <= 0;
  }
}

function indexKeys(text: string): ReadonlyMap<string, IndexedKey> {
  return new Map(
    parseKeyFile(text).map((key) => {
      return [key.id, { ...key, expiresAtMs: key.expiresAt === undefined ? undefined : Date.parse(key.expiresAt) }];
    }),
  );
}
