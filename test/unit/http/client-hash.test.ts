import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ClientHasher } from '../../../src/http/request/client-hash.ts';
import { addressGroupOf, makeAddressHash, makeClientIdentifier } from '../../../src/http/request/client-identity.ts';
import type { HttpServerRequest } from '../../../src/http/server/server-request.ts';
import { heldBytes } from '../../support/heap.ts';

describe('the hash of a client', () => {
  test('is an HMAC of its key: equal for one secret, different for another', () => {
    const { hash } = new ClientHasher('a secret of the house');
    const whole = createHmac('sha256', 'a secret of the house').update('key').digest('hex');
    expect(hash('key')).toBe(whole.slice(0, 16));
    expect(hash('key')).toBe(new ClientHasher('a secret of the house').hash('key'));
    expect(hash('key')).not.toBe(new ClientHasher('a secret of the next').hash('key'));
    expect(hash('key')).not.toBe(hash('Key'));
  });

  test('is cached for ten thousand keys, however many and however long they are', () => {
    const clientHash = new ClientHasher('a secret of the house');
    const { hash } = clientHash;
    for (let i = 0; i < 10_000; i += 1) hash(`key-${i}`);
    expect(clientHash.bound).toEqual({ name: 'hashes', used: 1, reached: 0 });
    const before = heldBytes();
    for (let i = 0; i < 25_000; i += 1) hash(`key-${i}-${'x'.repeat(3000)}`);
    expect(heldBytes() - before).toBeLessThan(2e6);
    for (let i = 0; i < 25_000; i += 1) hash(`other-${i}`);
    expect(clientHash.bound).toMatchObject({ reached: 3 });
    expect(clientHash.bound.used).toBeLessThanOrEqual(1);
  });
});

test('the hash of a secret is the same, and the secret is in no cache', () => {
  const hasher = new ClientHasher('a secret of the house');
  expect(hasher.uncachedHash('credential')).toBe(new ClientHasher('a secret of the house').hash('credential'));
  expect(hasher.bound.used).toBe(0);
});

test.each([
  ['header:x-api-key', { 'x-api-key': 'a' }],
  ['ip', {}],
])('the hash of an address is that of the address group of clients in its network, identified by %s', (_, headers) => {
  const hasher = new ClientHasher('secret');
  const keys = [{ kind: 'header', name: 'x-api-key' }] as const;
  const identify = makeClientIdentifier(keys, { classes: [], names: [], owners: { keys: [], proven: '' } }, hasher);
  const client = identify({ headers } as unknown as HttpServerRequest, '2001:db8::1');
  expect(makeAddressHash(hasher)('2001:db8::2')).toBe(addressGroupOf(client));
});
