import { describe, expect, test } from 'vitest';
import { type KeyOwner, NO_OWNER } from '../../../src/core/idempotency/key-owner.ts';
import { isSameWrite } from '../../../src/core/idempotency/keyed-write.ts';
import { writeCredentialOf } from '../../../src/http/idempotency/idempotency-key.ts';
import type { WriteCredential } from '../../../src/http/idempotency/idempotency-types.ts';
import { WriteDigests } from '../../../src/http/idempotency/write-digests.ts';

const route = { target: { credentialHeader: 'authorization', idempotency: { keyScope: 'shared' as const } } };

function credentialOf(authorization: string | undefined, hash: string, addressGroup: string | undefined) {
  const headers = authorization === undefined ? {} : { authorization };
  const identifiedBy = addressGroup === undefined ? 'ip' : 'bearer';
  return writeCredentialOf({
    request: { headers },
    route,
    client: { identifiedBy, hash, addressGroup, keyOwner: undefined },
  });
}

const ALICE: KeyOwner = { name: 'name\0alice', kind: 'name' };

/** Of a request through accounts. */
function credentialThroughAccounts(
  keyScope: 'client' | 'shared',
  name: string | undefined,
  authorization?: string,
  delivery: { readonly delivery?: string; readonly upstreamKey?: string } = {},
) {
  const headers = authorization === undefined ? {} : { authorization };
  const accounts = { names: ['main'], headers: new Set(['authorization']) };
  const target = { credentialHeader: 'authorization', accounts, idempotency: { keyScope } };
  const client = {
    identifiedBy: name === undefined ? 'ip' : 'api_key',
    hash: 'h',
    addressGroup: undefined,
    keyOwner: name === undefined ? undefined : { name, kind: 'name' },
  };
  return writeCredentialOf({ request: { headers, ...delivery }, route: { target }, client });
}

test.each(['client', 'shared'] as const)(
  'through accounts, the name of a client identifies it with keyScope %s',
  (scope) => {
    const alice = { kind: 'client', value: 'name\0alice', keyOwner: scope === 'client' ? ALICE : undefined };
    expect(credentialThroughAccounts(scope, 'name\0alice')).toMatchObject(alice);
    expect(credentialThroughAccounts(scope, 'name\0alice', 'Bearer refreshed')).toMatchObject(alice);
  },
);

test.each(['client', 'shared'] as const)(
  'an earlier version, which does not know names, takes a write of a client with keyScope %s for one that a token may repeat',
  (scope) => {
    // It compares the headers of credentials only if both are those of clients, or both of headers.
    expect(credentialThroughAccounts(scope, 'name\0alice', 'Bearer a').header).toBe('');
  },
);

test.each([
  ['its token', 'Bearer a'],
  ['no credential', undefined],
])('with shared keys, a client with a name repeats a write that was recorded with %s', (_, authorization) => {
  const digests = new WriteDigests('secret');
  const identify = (credential: WriteCredential, body: string) =>
    digests.identify('up', { name: 'order', key: 'order' }, credential, Buffer.from(body));
  const recorded = identify(credentialThroughAccounts('shared', undefined, authorization), '1');
  const named = credentialThroughAccounts('shared', 'name\0alice', authorization);
  expect(isSameWrite(recorded, identify(named, '1'))).toBe(true);
});

test('clients without names share the keys of one client, separate from those with names, whatever their tokens are', () => {
  const nobody = { kind: 'client', value: '', keyOwner: NO_OWNER };
  expect(credentialThroughAccounts('client', undefined)).toMatchObject(nobody);
  expect(credentialThroughAccounts('client', undefined, 'Bearer a')).toMatchObject(nobody);
});

test('with shared keys, clients without names have their own credentials', () => {
  const withToken = credentialThroughAccounts('shared', undefined, 'Bearer a');
  expect(withToken).toMatchObject({ kind: 'header', value: 'Bearer a', keyOwner: undefined });
});

describe('an attempt of a delivery', () => {
  const derived = { delivery: 'd1', upstreamKey: 'k' };

  test.each(['client', 'shared'] as const)('keeps the owner of its key with keyScope %s', (scope) => {
    expect(credentialThroughAccounts(scope, 'name\0alice', undefined, derived)).toMatchObject({
      keyOwner: ALICE,
    });
    expect(credentialThroughAccounts(scope, undefined, undefined, derived)).toMatchObject({ keyOwner: NO_OWNER });
    expect(credentialThroughAccounts(scope, 'name\0alice', undefined, { delivery: 'd1' })).toMatchObject({
      value: 'name\0alice',
      keyOwner: undefined,
    });
  });
});

test('invented credentials of one address take one share of the memory for unresolved writes', () => {
  const owners = ['Bearer a', 'Bearer b', undefined].map((each, i) => credentialOf(each, `client ${i}`, 'here').owner);
  expect(new Set(owners)).toEqual(new Set(['here']));
  expect(credentialOf('Bearer a', 'client 0', 'there').owner).toBe('there');
});

test('a client that its address identifies takes the share of that address', () => {
  expect(credentialOf('Bearer a', 'here', undefined).owner).toBe('here');
  expect(credentialOf(undefined, 'here', undefined)).toMatchObject({ kind: 'client', value: '', owner: 'here' });
});
