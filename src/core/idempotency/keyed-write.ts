import type { CredentialList } from './credential-list.ts';
import { hasCredential, NO_CREDENTIALS } from './credential-list.ts';
import type { Millis } from '../scalars.ts';

/** Identifies a write. Contains only digests: no keys or credentials are kept. */
export interface WriteIdentity {
  readonly upstream: string;
  /** Two digests: of the account (as far as the request names it), the target and the key; and of the key alone (write-id.ts). */
  readonly name: string;
  /** A digest of the client's credential, above 0; without one, of the client's identity, below 0. */
  readonly credential: number;
  /** A digest of the address, or of the client, whose share of the unresolved writes it takes. */
  readonly owner: number;
  /** The header in which the credential is expected; a reload may change it. */
  readonly credentialHeader: string;
  /** A digest of the body; undefined if it is not known whole. */
  readonly body: number | undefined;
  /** A digest of what names the client, where each client has keys of its own at the upstream; absent where clients share keys. */
  readonly keyOwner?: number | undefined;
  /** A digest of the kind of that name (key-owner.ts). Defined as `keyOwner` is. */
  readonly keyOwnerKind?: number | undefined;
}

/** What names the client of a write or a request: see `WriteIdentity`. */
export type OwnerDigests = Pick<WriteIdentity, 'keyOwner' | 'keyOwnerKind'>;

/** The endpoint of a write if nobody knows it. No endpoint has this label, so a repeat is sent to none. */
export const UNKNOWN_ENDPOINT = '';

/** A write with an idempotency key, in progress or remembered. Small, because 100 000 of them are kept. */
export interface KeyedWrite extends Omit<WriteIdentity, 'body'> {
  /** The body of its identity until a request with another credential joins; then undefined. */
  body: number | undefined;
  /** Another of the same name. */
  next: KeyedWrite | undefined;
  /** `new`: not remembered. */
  state: 'new' | 'unresolved' | 'answered';
  /** When it was first sent. */
  firstSentAt: Millis;
  /**
   * The endpoint that it was sent to, as metrics name it. It is fixed once an attempt may have settled the key there: then all
   * attempts go there, unless endpoints share keys.
   */
  endpoint: string | undefined;
  /** The credentials that received a final response, one entry for each response. */
  finalFor: CredentialList;
  /**
   * Other credentials of an answered write, whose later attempts got no response. Each may belong to another account,
   * whose write is unresolved.
   */
  unresolvedFor: CredentialList;
  /** Its index in the ring of answered writes; -1 if it is not in it. */
  ringIndex: number;
  /** Requests in progress. */
  requestCount: number;
  /** The requests in progress that were sent. */
  sentCount: number;
  /** The credentials of these. */
  sentFor: CredentialList;
  /** The credentials of the clients to which a response to the write is being sent. */
  respondingFor: CredentialList;
  /** A client has received a whole response to the write: a final one, if there has been any. */
  wasDelivered: boolean;
  /** Its id in the journal; 0 if the write is not stored. */
  journalId: number;
  /** The state that is stored; undefined if none is. */
  journaledAs: Exclude<KeyedWrite['state'], 'new'> | undefined;
}

/**
 * Whether two writes of one name are the same write. A credential may change while the account stays, by a token refresh or
 * by request signing; and two accounts that nothing else names may choose the same key. So another credential means another
 * write only if the body differs too, or if only one of the two has a credential in that header. If a body is not known, they
 * count as one write. Where each client has keys of its own, the client alone decides, if it has the same name or both have names of
 * one kind. Else a reload or another replica may have changed what names the client, so the body decides.
 */
export function isSameWrite(one: Omit<WriteIdentity, 'name' | 'upstream'>, other: WriteIdentity): boolean {
  if (one.keyOwner !== undefined && one.keyOwner === other.keyOwner) return true;
  if (haveOtherOwners(one, other)) return false;
  if (one.credential === other.credential) return true;
  if (one.keyOwner === other.keyOwner) {
    // Digests of different headers cannot be compared.
    if (one.credentialHeader !== other.credentialHeader) return true;
    if (one.credential > 0 !== other.credential > 0) return false;
  }
  return one.body === undefined || other.body === undefined || one.body === other.body;
}

/** Whether two writes are those of different clients: each has keys of its own, and their names, of one kind, differ. */
export function haveOtherOwners(one: OwnerDigests, other: OwnerDigests): boolean {
  if (one.keyOwner === undefined || other.keyOwner === undefined) return false;
  return one.keyOwner !== other.keyOwner && one.keyOwnerKind === other.keyOwnerKind;
}

/** The identity of a write, without what is known of it. */
export function identityOf(write: WriteIdentity): WriteIdentity {
  const { upstream, name, credential, owner, credentialHeader, body, keyOwner, keyOwnerKind } = write;
  return { upstream, name, credential, owner, credentialHeader, body, keyOwner, keyOwnerKind };
}

/**
 * Whether it is unknown if a request repeats the write that it has joined, or with which key that write was sent. Either the two clients
 * have keys of their own and different names of different kinds, or a reload has changed whose keys the upstream compares since, and the request has
 * another credential, or the place of the write is not recorded.
 */
export function isAmbiguous(
  write: Pick<KeyedWrite, 'keyOwner' | 'keyOwnerKind' | 'credential' | 'endpoint'>,
  other: WriteIdentity,
): boolean {
  const isSameScope = (write.keyOwner === undefined) === (other.keyOwner === undefined);
  if (isSameScope) return write.keyOwner !== other.keyOwner && write.keyOwnerKind !== other.keyOwnerKind;
  return write.credential !== other.credential || (write.endpoint ?? UNKNOWN_ENDPOINT) === UNKNOWN_ENDPOINT;
}

/** Whether a write is answered and no request uses it: a repeat of it may count as a new write. */
export function isForgettable(write: KeyedWrite): boolean {
  return write.state === 'answered' && write.requestCount === 0 && !isUnresolved(write);
}

/** Whether an answered write counts as answered for a request with this credential. */
export function isAnsweredFor({ state, unresolvedFor }: KeyedWrite, credential: number): boolean {
  return state === 'answered' && !hasCredential(unresolvedFor, credential);
}

/** True while a response to an answered write is being sent, and no client has a whole one: it may break off. */
export function isArriving({ state, respondingFor, wasDelivered }: KeyedWrite): boolean {
  return state === 'answered' && respondingFor !== NO_CREDENTIALS && !wasDelivered;
}

/** True if the write may have taken effect and no client has a response that confirms it. */
export function isUnresolved(write: KeyedWrite): boolean {
  const { sentCount, state, finalFor, unresolvedFor } = write;
  // Another attempt of a write with a final response changes nothing.
  const isOpenByOthers = unresolvedFor !== NO_CREDENTIALS || (sentCount > 0 && finalFor === NO_CREDENTIALS);
  if (state === 'answered') return isOpenByOthers || isArriving(write);
  return sentCount > 0 || state === 'unresolved';
}
