import type { KeyRecord } from './types.ts';

/** What tells writes apart. All of it digests: of keys and credentials nothing is kept. */
export interface WriteIdentity {
  readonly upstream: string;
  /** Of the account, as far as it is named, of what is asked for, and of the key. */
  readonly name: string;
  /** Whether the client authenticates by anything that is looked at. */
  readonly isAuthenticated: boolean;
  /** Of that, or else of who the client is. */
  readonly credential: string;
  /** Of the body; undefined where that is not known whole. */
  readonly body: string | undefined;
}

/** A write that has an idempotency key, while it is under way or remembered. */
export interface KeyedWrite extends WriteIdentity {
  record: KeyRecord | undefined;
  /** Where in the ring of answered writes; -1 where it is not. */
  place: number;
  /** Requests that have it in hand. */
  requests: number;
  /** Of these, the ones that have been sent, and are not over. */
  sent: number;
}

/**
 * Whether these two, of one name, are one write. A credential changes while its account does not, by refreshing a token or
 * by signing each request; and one key may be chosen by two accounts that nothing else names. So other credentials mean
 * another write only where the body differs too; where that is not known, the careful answer is yes.
 */
export function isSameWrite(one: WriteIdentity, other: WriteIdentity): boolean {
  if (one.isAuthenticated !== other.isAuthenticated) return false;
  if (one.credential === other.credential) return true;
  return one.body === undefined || other.body === undefined || one.body === other.body;
}
