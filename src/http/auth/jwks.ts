import type { JWTVerifyGetKey } from 'jose';
import { type JwksText, parseJwks } from '../../config/auth/jwks-text.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import { WatchedFile } from './watched-file.ts';

/** The public keys of an issuer. */
export interface Jwks {
  /** Rejects with `JwksUnavailable` if no keys are known, and with the error of jose if none of them matches. */
  readonly getKey: JWTVerifyGetKey;
  /**
   * Changes whenever the keys do; undefined if none may be used at present. Starts a fetch in the background if the keys are old.
   */
  version(): number | undefined;
}

/** The keys could not be fetched, so no signature can be verified. */
export class JwksUnavailable extends Error {}

/** Fetches the text of a JWKS. Rejects if that fails. */
export type FetchJwks = () => Promise<string>;

/** The keys are fetched again when they are used and older than this: a removed key is accepted for about this time. */
export const JWKS_REFRESH: Millis = 600_000;
/** Keys that could not be fetched again for this time are no longer used. */
export const JWKS_MAX_AGE: Millis = 6 * 3_600_000;
/** Time between two fetches for keys that are unknown, so that invented key ids cause no load at the issuer. */
const UNKNOWN_KEY_INTERVAL: Millis = 30_000;
/** Time between two fetches while they fail. */
const RETRY_INTERVAL: Millis = 5000;

/** Loads jose at the first token: most installations have none. */
function makeKeyFinder({ keys }: JwksText): JWTVerifyGetKey {
  let find: JWTVerifyGetKey | undefined;
  return async (header, token) => {
    find ??= (await import('jose')).createLocalJWKSet({ keys: [...keys] });
    return find(header, token);
  };
}

/** Keys from a file, read again when it changes. @throws an Error with the path, if the file cannot be used */
export function jwksFromFile(path: string, clock: Clock, onFile: (problem: string | undefined) => void): Jwks {
  let version = 0;
  const parse = (text: string): JWTVerifyGetKey => {
    const getKey = makeKeyFinder(parseJwks(text));
    version += 1;
    return getKey;
  };
  const file = new WatchedFile(path, parse, { clock, onChange: onFile });
  return {
    getKey: (header, token) => file.value(header, token),
    version: () => {
      void file.value;
      return version;
    },
  };
}

export interface RemoteJwksParts {
  readonly fetch: FetchJwks;
  readonly clock: Clock;
  /** A fetch has failed; or one has succeeded after that, or as the first. */
  readonly onFetch: (problem: string | undefined) => void;
}

/**
 * Keys from a URL. They are fetched when they are first needed, when they are old, and for an unknown key id; each at most once in an
 * interval, however many tokens arrive. If a fetch fails, the keys of the last one are used until they are too old.
 */
export class RemoteJwks implements Jwks {
  readonly #parts: RemoteJwksParts;
  #keys: { readonly getKey: JWTVerifyGetKey; readonly text: string; readonly fetchedAt: Millis } | undefined;
  #version = 0;
  #fetching: Promise<void> | undefined;
  #triedAt: Millis = Number.NEGATIVE_INFINITY;
  #hasFailed = false;

  constructor(parts: RemoteJwksParts) {
    this.#parts = parts;
  }

  version(): number | undefined {
    const age = this.#age();
    if (age > JWKS_REFRESH) void this.#refresh(RETRY_INTERVAL);
    return age > JWKS_MAX_AGE ? undefined : this.#version;
  }

  readonly getKey: JWTVerifyGetKey = async (header, token) => {
    if (this.version() === undefined) await this.#refresh(RETRY_INTERVAL);
    try {
      return await this.#find(header, token);
    } catch (error) {
      if (!isUnknownKey(error) || !(await this.#refresh(UNKNOWN_KEY_INTERVAL))) throw error;
      return this.#find(header, token);
    }
  };

  readonly #find: JWTVerifyGetKey = (header, token) => {
    if (this.#keys === undefined || this.#age() > JWKS_MAX_AGE) throw new JwksUnavailable('no keys of the issuer');
    return this.#keys.getKey(header, token);
  };

  #age(): Millis {
    return this.#keys === undefined ? Number.POSITIVE_INFINITY : this.#parts.clock.now() - this.#keys.fetchedAt;
  }

  /** Fetches the keys, unless that was tried within the interval. Returns whether a fetch has ended. Never rejects. */
  async #refresh(interval: Millis): Promise<boolean> {
    const now = this.#parts.clock.now();
    if (this.#fetching === undefined) {
      if (now - this.#triedAt < interval) return false;
      this.#triedAt = now;
      this.#fetching = this.#fetch().finally(() => {
        this.#fetching = undefined;
      });
    }
    await this.#fetching;
    return true;
  }

  async #fetch(): Promise<void> {
    const { fetch, clock, onFetch } = this.#parts;
    try {
      const text = await fetch();
      const getKey = makeKeyFinder(parseJwks(text));
      const isFirst = this.#keys === undefined;
      if (this.#keys?.text !== text) this.#version += 1;
      this.#keys = { getKey, text, fetchedAt: clock.now() };
      if (isFirst || this.#hasFailed) onFetch(undefined);
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
      onFetch(error instanceof Error ? error.message : String(error));
    }
  }
}

function isUnknownKey(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_JWKS_NO_MATCHING_KEY';
}
