import type { Millis } from '../scalars.ts';

/** What earlier exchanges established about the write that an idempotency key names. */
export interface KeyRecord {
  /** When the write was first sent. */
  readonly firstSentAt: Millis;
  /** The upstream has answered the write, and the client has the response, or gets it. Otherwise its effect is unknown. */
  readonly isAnswered: boolean;
  /** The response is still being sent, and no client has a whole one; absent otherwise. */
  readonly isArriving?: boolean;
  /** That response resolves the write permanently, whatever happens to the present request; absent if it does not. */
  readonly isFinal?: boolean;
  /** This request was presumed ended, and another one has the key now. */
  readonly isInUse?: boolean;
  /** The store did not respond, and another request may have the key by now. */
  readonly isInDoubt?: boolean;
}

/** Whether the write may have taken effect, and no client has a whole response that confirms it. */
export function isUnconfirmed(record: KeyRecord | undefined): boolean {
  return record !== undefined && (!record.isAnswered || record.isArriving === true);
}

/** Whether a response is kept for repeats of a write; `other_request`: for a request with another query or body. */
export type KeptResponseMatch = 'none' | 'kept' | 'other_request';

export interface KnownWrite {
  readonly record: KeyRecord | undefined;
  /** The endpoint that may know the key. */
  readonly endpoint: string | undefined;
}

/** Why a write is not sent because of its idempotency key. */
export type KeyRefusalReason =
  /** Another request with the key is in progress. */
  | 'key_in_use'
  /** The store of keys cannot be reached or written, so what is known of the write would be lost. */
  | 'key_store_lost'
  /** The write was sent longer ago than the upstream remembers keys: sent again, it may take effect a second time. */
  | 'key_expired'
  /** A response is kept for this key, to a request with another query or body. */
  | 'key_reused'
  /** An earlier write with the key may be this one, or another client's. */
  | 'key_ambiguous'
  /** Too many other clients have writes with the key that are in progress or unresolved. */
  | 'key_overused';

/** Why a claim was refused; `draining`: by `KeyClaim.stopWaiting`. */
export type ClaimRefusalReason = Exclude<KeyRefusalReason, 'key_expired' | 'key_reused'> | 'draining';
