import { describe, expect, test } from 'vitest';
import {
  addCredential,
  countCredentials,
  hasCredential,
  NO_CREDENTIALS,
  removeCredential,
  removeOneCredential,
} from '../../../src/core/idempotency/credential-list.ts';
import type { CredentialList } from '../../../src/core/idempotency/credential-list.ts';
import type { KeyedWrite, WriteIdentity } from '../../../src/core/idempotency/keyed-write.ts';
import {
  isAmbiguous,
  isAnsweredFor,
  isArriving,
  isSameWrite,
  isUnresolved,
} from '../../../src/core/idempotency/keyed-write.ts';

function listOf(...credentials: readonly number[]): CredentialList {
  let list = NO_CREDENTIALS;
  for (const credential of credentials) list = addCredential(list, credential);
  return list;
}

describe('a list of credentials', () => {
  test('needs no object for zero credentials or one', () => {
    expect([listOf(), listOf(7), listOf(7, 8)]).toEqual([NO_CREDENTIALS, 7, [7, 8]]);
    expect([removeOneCredential(listOf(7), 7), removeOneCredential(listOf(7, 8), 7)]).toEqual([NO_CREDENTIALS, 8]);
    expect([countCredentials(listOf()), countCredentials(listOf(7)), countCredentials(listOf(7, 8))]).toEqual([
      0, 1, 2,
    ]);
  });

  test('contains those that were added, and not the mark of an empty list', () => {
    expect([7, 8, 9].map((each) => hasCredential(listOf(7, 8), each))).toEqual([true, true, false]);
    expect([hasCredential(listOf(), 0), hasCredential(listOf(7), 8)]).toEqual([false, false]);
  });

  test('loses one entry, or all of a credential, and none of another', () => {
    expect([removeOneCredential(listOf(7, 8, 7), 7), removeCredential(listOf(7, 8, 7), 7)]).toEqual([[8, 7], 8]);
    expect([removeOneCredential(listOf(7, 8), 9), removeCredential(listOf(7, 8), 9)]).toEqual([
      [7, 8],
      [7, 8],
    ]);
    expect([removeOneCredential(listOf(7), 9), removeCredential(listOf(7), 7)]).toEqual([7, NO_CREDENTIALS]);
  });

  test('has at most sixteen entries: a duplicate is dropped first, or else the oldest', () => {
    const sixteen = Array.from({ length: 16 }, (_, i) => i + 1);
    expect(listOf(...sixteen)).toEqual(sixteen);
    expect(listOf(...sixteen, 17)).toEqual([...sixteen.slice(1), 17]);
    expect(listOf(...sixteen, 5)).toEqual([1, 2, 3, 4, ...sixteen.slice(5), 5]);
    expect(listOf(...sixteen.with(9, 3), 17)).toEqual([1, 2, ...sixteen.with(9, 3).slice(3), 17]);
  });
});

describe('two requests with one key', () => {
  const one: WriteIdentity = {
    ...{ upstream: 'up', name: 'a', credential: 5, owner: 5, credentialHeader: 'authorization', body: 1 },
  };
  const isSame = (changes: Partial<WriteIdentity>, of: WriteIdentity = one) => isSameWrite(of, { ...of, ...changes });

  test('are the same write with the same credential, whatever their bodies', () => {
    expect(isSame({ body: 2 })).toBe(true);
  });

  test('are the same write with another credential only if the bodies are equal, or one is unknown', () => {
    expect([isSame({ credential: 6 }), isSame({ credential: 6, body: 2 })]).toEqual([true, false]);
    expect(isSame({ credential: 6, body: undefined })).toBe(true);
    expect(isSame({ credential: 6, body: 2 }, { ...one, body: undefined })).toBe(true);
  });

  test('are the same write if their credentials are in different headers, and cannot be compared', () => {
    expect(isSame({ credential: 6, body: 2, credentialHeader: 'x-api-key' })).toBe(true);
  });

  test('are different writes if only one of them has a credential, even with the same body', () => {
    expect([isSame({ credential: -6 }), isSame({ credential: 6 }, { ...one, credential: -5 })]).toEqual([false, false]);
    expect(isSame({ credential: -6 }, { ...one, credential: -5 })).toBe(true);
  });
});

describe('two requests with one key, where each client has keys of its own', () => {
  const alice: WriteIdentity = {
    ...{ upstream: 'up', name: 'a', credential: -5, owner: 5, credentialHeader: 'authorization', body: 1, keyOwner: 5 },
    keyOwnerKind: 1,
  };
  const shared: WriteIdentity = { ...alice, keyOwner: undefined, keyOwnerKind: undefined };

  test('are the same write for one client only, whatever body and credential header are', () => {
    const bob = { ...alice, credential: -6, keyOwner: 6 };
    expect([isSameWrite(alice, bob), isSameWrite(alice, { ...bob, credentialHeader: 'x' })]).toEqual([false, false]);
    expect([isSameWrite({ ...alice, body: undefined }, bob), isSameWrite(alice, { ...alice, body: 2 })]).toEqual([
      false,
      true,
    ]);
  });

  test('may be the same if clients shared keys for one of them, unless both bodies are known and differ', () => {
    expect(isSameWrite({ ...shared, credential: 7 }, alice)).toBe(true);
    expect(isSameWrite({ ...shared, credential: 7, body: undefined }, alice)).toBe(true);
    expect(isSameWrite({ ...shared, credential: 7, credentialHeader: 'x', body: 2 }, alice)).toBe(false);
    expect(isSameWrite({ ...shared, body: 2 }, alice)).toBe(true);
  });

  test('may be the same if names of different kinds identify the clients, unless both bodies are known and differ', () => {
    const byHeader = { ...alice, credential: -6, keyOwner: 6, keyOwnerKind: 2 };
    expect([isSameWrite(alice, byHeader), isSameWrite(alice, { ...byHeader, body: undefined })]).toEqual([true, true]);
    expect(isSameWrite(alice, { ...byHeader, body: 2 })).toBe(false);
    const at = (endpoint: string | undefined) => ({ ...alice, endpoint });
    expect([isAmbiguous(at('e'), byHeader), isAmbiguous(at(undefined), byHeader)]).toEqual([true, true]);
    expect([isAmbiguous(at('e'), alice), isAmbiguous(at(undefined), alice)]).toEqual([false, false]);
  });

  test('are in doubt if clients shared keys for one of them, unless the credential and the place are known', () => {
    const at = (endpoint: string | undefined, identity = shared) => ({ ...identity, endpoint });
    expect([isAmbiguous(at('e'), alice), isAmbiguous(at('e', alice), shared)]).toEqual([false, false]);
    expect([isAmbiguous(at(''), alice), isAmbiguous(at(undefined), alice)]).toEqual([true, true]);
    expect(isAmbiguous({ ...at('e'), credential: 7 }, alice)).toBe(true);
    expect([isAmbiguous(at('', alice), alice), isAmbiguous(at('', { ...shared, credential: 7 }), shared)]).toEqual([
      false,
      false,
    ]);
  });
});

describe('a write with a key', () => {
  const write = (changes: Partial<KeyedWrite>): KeyedWrite => ({
    ...{ upstream: 'up', name: 'a', credential: 5, owner: 5, credentialHeader: 'authorization', body: 1 },
    ...{ next: undefined, state: 'new', firstSentAt: 0, endpoint: undefined, ringIndex: -1 },
    ...{ finalFor: NO_CREDENTIALS, unresolvedFor: NO_CREDENTIALS, requestCount: 1, sentCount: 0 },
    ...{ sentFor: NO_CREDENTIALS, respondingFor: NO_CREDENTIALS, wasDelivered: false },
    ...{ journalId: 0, journaledAs: undefined },
    ...changes,
  });

  test('is unresolved while an attempt is in progress or if its effect is unknown', () => {
    expect([isUnresolved(write({})), isUnresolved(write({ sentCount: 1 }))]).toEqual([false, true]);
    expect(isUnresolved(write({ state: 'unresolved' }))).toBe(true);
  });

  test('that was answered is unresolved for a credential without a response, or by a new attempt after a decline', () => {
    expect(isUnresolved(write({ state: 'answered' }))).toBe(false);
    expect(isUnresolved(write({ state: 'answered', unresolvedFor: 6 }))).toBe(true);
    expect(isUnresolved(write({ state: 'answered', sentCount: 1 }))).toBe(true);
    expect(isUnresolved(write({ state: 'answered', sentCount: 1, finalFor: 5 }))).toBe(false);
    expect(isUnresolved(write({ state: 'answered', unresolvedFor: 6, finalFor: 5 }))).toBe(true);
  });

  test('that was answered is unresolved while its response is being sent, until a client has a whole one', () => {
    const arriving = write({ state: 'answered', finalFor: 5, respondingFor: 5 });
    expect([isArriving(arriving), isUnresolved(arriving)]).toEqual([true, true]);
    for (const whole of [
      { ...arriving, respondingFor: NO_CREDENTIALS },
      { ...arriving, wasDelivered: true },
    ]) {
      expect([isArriving(whole), isUnresolved(whole)]).toEqual([false, false]);
    }
    for (const state of ['new', 'unresolved'] as const) expect(isArriving({ ...arriving, state })).toBe(false);
  });

  test('counts as answered for every credential except those without a response', () => {
    const answered = write({ state: 'answered', unresolvedFor: 6 });
    expect([isAnsweredFor(answered, 5), isAnsweredFor(answered, 6)]).toEqual([true, false]);
    expect([isAnsweredFor(write({}), 5), isAnsweredFor(write({ state: 'unresolved' }), 5)]).toEqual([false, false]);
  });
});
