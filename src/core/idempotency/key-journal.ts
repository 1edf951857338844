import type { CredentialList } from './credential-list.ts';
import { NO_CREDENTIALS } from './credential-list.ts';
import type { KeyedWrite, WriteIdentity } from './keyed-write.ts';
import { UNKNOWN_ENDPOINT } from './keyed-write.ts';
import type { Millis } from '../scalars.ts';

/** Stores what is known of writes, so that the next process knows it. */
export interface KeyJournal {
  /** The write has changed; it is stored soon. */
  onChange(write: KeyedWrite): void;
  /** Calls back once all changes so far are stored. @param run `isStored`: false if they could not be stored */
  whenStored(run: (isStored: boolean) => void): void;
}

/** What the next process has to know of a write. */
export interface StoredWrite extends WriteIdentity {
  readonly state: 'unresolved' | 'answered';
  readonly firstSentAt: Millis;
  readonly endpoint: string | undefined;
  readonly finalFor: CredentialList;
  readonly unresolvedFor: CredentialList;
}

/**
 * Returns what would hold if the process ended now: an attempt under way may have taken effect, and a response that is being sent
 * may not arrive. Undefined if the next process needs to know nothing.
 */
export function toStored(write: KeyedWrite): StoredWrite | undefined {
  const { upstream, name, credential, owner, credentialHeader, body, firstSentAt, endpoint } = write;
  const { sentCount, openResponses, wasDelivered, finalFor, unresolvedFor } = write;
  const identity = { upstream, name, credential, owner, credentialHeader, body };
  const isOpen = openResponses > 0 && !wasDelivered;
  if (write.state === 'answered' && !isOpen && (sentCount === 0 || finalFor !== NO_CREDENTIALS)) {
    return { ...identity, state: 'answered', firstSentAt, endpoint, finalFor, unresolvedFor };
  }
  if (write.state === 'new' && sentCount === 0) return undefined;
  const none = NO_CREDENTIALS;
  return {
    ...identity,
    state: 'unresolved',
    firstSentAt,
    endpoint: endpoint ?? UNKNOWN_ENDPOINT,
    finalFor: none,
    unresolvedFor: none,
  };
}
