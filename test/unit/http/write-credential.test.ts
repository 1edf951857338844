import { expect, test } from 'vitest';
import { writeCredentialOf } from '../../../src/http/idempotency/idempotency-key.ts';

const route = { target: { credentialHeader: 'authorization' } };

function credentialOf(authorization: string | undefined, hash: string, addressGroup: string | undefined) {
  const headers = authorization === undefined ? {} : { authorization };
  const identifiedBy = addressGroup === undefined ? 'ip' : 'bearer';
  return writeCredentialOf({ request: { headers }, route, client: { identifiedBy, hash, addressGroup } });
}

test('invented credentials of one address take one share of the memory for unresolved writes', () => {
  const owners = ['Bearer a', 'Bearer b', undefined].map((each, i) => credentialOf(each, `client ${i}`, 'here').owner);
  expect(new Set(owners)).toEqual(new Set(['here']));
  expect(credentialOf('Bearer a', 'client 0', 'there').owner).toBe('there');
});

test('a client that its address identifies takes the share of that address', () => {
  expect(credentialOf('Bearer a', 'here', undefined).owner).toBe('here');
  expect(credentialOf(undefined, 'here', undefined)).toMatchObject({ kind: 'client', value: '', owner: 'here' });
});
