import { expect, test } from 'vitest';
import { writeCredentialOf } from '../../../src/http/idempotency/idempotency-key.ts';

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

/** Of a request through accounts. */
function credentialThroughAccounts(
  keyScope: 'client' | 'shared',
  keyOwner: string | undefined,
  authorization?: string,
) {
  const headers = authorization === undefined ? {} : { authorization };
  const accounts = { names: ['main'], headers: new Set(['authorization']) };
  const target = { credentialHeader: 'authorization', accounts, idempotency: { keyScope } };
  const client = {
    identifiedBy: keyOwner === undefined ? 'ip' : 'api_key',
    hash: 'h',
    addressGroup: undefined,
    keyOwner,
  };
  return writeCredentialOf({ request: { headers }, route: { target }, client });
}

test.each(['client', 'shared'] as const)(
  'through accounts, the name of a client identifies it with keyScope %s',
  (scope) => {
    const alice = { kind: 'client', value: 'name\0alice', separatesWrites: scope === 'client' };
    expect(credentialThroughAccounts(scope, 'name\0alice')).toMatchObject(alice);
    expect(credentialThroughAccounts(scope, 'name\0alice', 'Bearer refreshed')).toMatchObject(alice);
  },
);

test('clients without names share the keys of one client, separate from those with names', () => {
  expect(credentialThroughAccounts('client', undefined)).toMatchObject({ value: '', separatesWrites: true });
  const withToken = credentialThroughAccounts('client', undefined, 'Bearer a');
  expect(withToken).toMatchObject({ kind: 'header', separatesWrites: false });
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
