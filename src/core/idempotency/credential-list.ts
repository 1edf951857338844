/**
 * Credentials that have used a write's key, as in `WriteIdentity`, one entry for each use. Most writes have none (0) or one, and
 * 100 000 writes are kept, so only several credentials take an object.
 */
export type CredentialList = number | readonly number[];

export const NO_CREDENTIALS: CredentialList = 0;

/** Beyond this, duplicates are dropped first, then the oldest: with request signing, each request has another credential. */
export const MAX_CREDENTIALS = 16;

export function hasCredential(list: CredentialList, credential: number): boolean {
  return credentialsIn(list).includes(credential);
}

export function countCredentials(list: CredentialList): number {
  return credentialsIn(list).length;
}

/** Adds one entry. */
export function addCredential(list: CredentialList, credential: number): CredentialList {
  const added = [...credentialsIn(list), credential];
  if (added.length <= MAX_CREDENTIALS) return compact(added);
  const duplicate = added.findIndex((each, i) => added.includes(each, i + 1));
  return compact(added.toSpliced(Math.max(0, duplicate), 1));
}

/** Removes one entry. */
export function removeOneCredential(list: CredentialList, credential: number): CredentialList {
  const entries = credentialsIn(list);
  const at = entries.indexOf(credential);
  return at < 0 ? list : compact(entries.toSpliced(at, 1));
}

/** Removes all entries of this credential. */
export function removeCredential(list: CredentialList, credential: number): CredentialList {
  return compact(credentialsIn(list).filter((each) => each !== credential));
}

export function credentialsIn(list: CredentialList): readonly number[] {
  if (typeof list !== 'number') return list;
  return list === NO_CREDENTIALS ? [] : [list];
}

function compact(entries: readonly number[]): CredentialList {
  return entries.length > 1 ? entries : (entries[0] ?? NO_CREDENTIALS);
}
