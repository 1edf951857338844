import type { Credentials } from './credential-list.ts';
import { includes, NONE } from './credential-list.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

/** What tells writes apart. All of it digests: of keys and credentials nothing is kept. */
export interface WriteIdentity {
  readonly upstream: string;
  /** Of the account, as far as it is named, of what is asked for, and of the key. */
  readonly name: string;
  /** Of whatever the client authenticates by, above 0; where it does not, of who it is, below 0. */
  readonly credential: number;
  /** The header that a credential was looked for in; a reload may change it. */
  readonly readFrom: string;
  /** Of the body; undefined where that is not known whole. */
  readonly body: number | undefined;
}

/** A write that has an idempotency key, while it is under way or remembered. 100 000 of them are kept: it is small. */
export interface KeyedWrite extends Omit<WriteIdentity, 'body'> {
  /** As of its identity, until a request with another credential has joined: then what it says is not known any more. */
  body: number | undefined;
  /** Another of the same name. */
  next: KeyedWrite | undefined;
  /** Whether it is remembered, and how. */
  state: 'new' | 'unresolved' | 'answered';
  /** Of one that is under way or remembered: when it was first sent, and where to, if that matters. */
  firstSentAt: Millis;
  endpoint: string | undefined;
  /** The credentials that were told that it is done, or what came of it for good; one as often as it was told. */
  doneFor: Credentials;
  /**
   * Other credentials of a write that is done, whose later attempts got no answer. Each may belong to another account, and the write of
   * that account is open.
   */
  openFor: Credentials;
  /** Where in the ring of answered writes; -1 where it is not. */
  place: number;
  /** Requests that have it in hand. */
  requests: number;
  /** Of these, the ones that have been sent, and are not over. */
  sent: number;
}

/**
 * Whether these two, of one name, are one write. A credential changes while its account does not, by refreshing a token or
 * by signing each request; and one key may be chosen by two accounts that nothing else names. So another
 * credential means another write only where the body differs too, or where only one of the two has a credential in the same
 * header. Where a body is not known, they are taken for one write.
 */
export function isSameWrite(one: Omit<WriteIdentity, 'name' | 'upstream'>, other: WriteIdentity): boolean {
  if (one.credential === other.credential) return true;
  // Digests of different headers cannot be compared.
  if (one.readFrom !== other.readFrom) return true;
  if (one.credential > 0 !== other.credential > 0) return false;
  return one.body === undefined || other.body === undefined || one.body === other.body;
}

/** Whether what is remembered as answered is so to whoever comes with this credential. */
export function isAnsweredFor({ state, openFor }: KeyedWrite, credential: number): boolean {
  return state === 'answered' && !includes(openFor, credential);
}

/** It may have been done, and nobody knows. */
export function isOpen({ sent, state, doneFor, openFor }: KeyedWrite): boolean {
  // Another attempt of one that is done changes nothing.
  if (state === 'answered') return openFor !== NONE || (sent > 0 && doneFor === NONE);
  return sent > 0 || state === 'unresolved';
}
