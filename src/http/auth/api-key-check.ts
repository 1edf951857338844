import { timingSafeEqual } from 'node:crypto';
import { API_KEY_PREFIX, apiKeyId, hashApiKey } from '../../config/auth/api-key.ts';
import type { StoredApiKey } from '../../config/auth/key-file.ts';
import { parseKeyFile } from '../../config/auth/key-file.ts';
import type { Clock } from '../../core/scalars.ts';
import { type AuthResult, type CredentialCheck, rejected } from './auth-types.ts';
import { WatchedFile } from './watched-file.ts';

export interface ApiKeyParts {
  readonly clock: Clock;
  /** The file has changed. @param problem why it cannot be used */
  readonly onFile: (problem: string | undefined) => void;
}

/** No key has this hash: an unknown key is compared with it, so that it takes as long as a known one. */
const NO_HASH = Buffer.alloc(32);

/** API keys, of which only the hashes are known. */
export class ApiKeyCheck implements CredentialCheck {
  readonly header: string;
  readonly #file: WatchedFile<ReadonlyMap<string, StoredApiKey>>;

  /** @throws an Error with the path, if the file cannot be used */
  constructor({ file, header }: { readonly file: string; readonly header: string }, { clock, onFile }: ApiKeyParts) {
    this.header = header.toLowerCase();
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
    return { kind: 'known', principal: { name: key.client, provenBy: 'api_key' } };
  }
}

function indexKeys(text: string): ReadonlyMap<string, StoredApiKey> {
  return new Map(parseKeyFile(text).map((key) => [key.id, key]));
}
