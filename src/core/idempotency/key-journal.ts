import type { CredentialList } from './credential-list.ts';
import {
  addCredential,
  countCredentials,
  credentialsIn,
  hasCredential,
  MAX_CREDENTIALS,
  NO_CREDENTIALS,
  removeOneCredential,
} from './credential-list.ts';
import type { KeyedWrite, WriteIdentity } from './keyed-write.ts';
import { identityOf, isArriving, UNKNOWN_ENDPOINT } from './keyed-write.ts';
import type { Millis } from '../scalars.ts';

/** Stores what is known of writes, so that the next process knows it. */
export interface KeyJournal {
  /** The write has changed; it is stored soon. */
  onChange(write: KeyedWrite): void;
  /** These stored writes are forgotten, because there is no room for them. They are removed in steps. */
  onSurplus(writes: readonly KeyedWrite[]): void;
  /** Calls back once all changes so far are stored. @param run `isStored`: false if they could not be stored */
  whenStored(run: (isStored: boolean) => void): void;
  /** A request goes on with `onStoreLost: local` although its write could not be stored. Called once for a request. */
  onDecidedLocally?(upstream: string): void;
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
  const { firstSentAt, endpoint, sentCount } = write;
  const known = { ...identityOf(write), firstSentAt };
  if (write.state === 'answered' && !isArriving(write)) {
    const { finalFor, unresolvedFor } = withoutOpen(write);
    const isAnswered = countCredentials(unresolvedFor) < MAX_CREDENTIALS;
    if (isAnswered && (finalFor !== NO_CREDENTIALS || (sentCount === 0 && write.finalFor === NO_CREDENTIALS))) {
      return { ...known, endpoint, state: 'answered', finalFor, unresolvedFor };
    }
  }
  if (write.state === 'new' && sentCount === 0) return undefined;
  const none = { finalFor: NO_CREDENTIALS, unresolvedFor: NO_CREDENTIALS };
  return { ...known, endpoint: endpoint ?? UNKNOWN_ENDPOINT, state: 'unresolved', ...none };
}

/** Returns the credentials as if no attempt under way were answered, and no response that is being sent arrived. */
function withoutOpen({
  finalFor: received,
  unresolvedFor: unanswered,
  sentFor,
  respondingFor,
}: KeyedWrite): Pick<StoredWrite, 'finalFor' | 'unresolvedFor'> {
  const responding = credentialsIn(respondingFor);
  const finalFor = responding.reduce(removeOneCredential, received);
  const open = [...credentialsIn(sentFor), ...responding].filter((each) => !hasCredential(finalFor, each));
  const added = open.filter((each, i) => open.indexOf(each) === i && !hasCredential(unanswered, each));
  return { finalFor, unresolvedFor: added.reduce(addCredential, unanswered) };
}
