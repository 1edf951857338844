import { expect, test } from 'vitest';
import { isAmbiguous, isSameWrite } from '../../../src/core/idempotency/keyed-write.ts';
import { createKeyRegistry } from '../../../src/http/idempotency/create-key-store.ts';
import { WriteDigests } from '../../../src/http/idempotency/write-digests.ts';

test('keeps as many answered writes as fit into a tenth of the heap', () => {
  const keys = createKeyRegistry(10 * 10 * 256);
  const digests = new WriteDigests('secret');
  const credential = {
    kind: 'header',
    header: 'authorization',
    value: 'a',
    owner: 'a',
    keyOwner: undefined,
  } as const;
  const enter = (name: string) => keys.join(digests.identify('up', { name, key: name }, credential, undefined));
  for (let i = 0; i < 11; i += 1) {
    const write = enter(`order ${i}`);
    keys.onSent(write, i);
    keys.record(write, { firstSentAt: i, isAnswered: true });
    keys.onAttemptEnd(write);
    keys.leave(write);
  }
  expect(keys.recall(enter('order 0'), 1000, 20)).toBeUndefined();
  expect(keys.recall(enter('order 1'), 1000, 20)).toMatchObject({ isAnswered: true, firstSentAt: 1 });
});

test('the digest of a body is an exact number, whatever the length of the body', () => {
  const digests = new WriteDigests('secret');
  const credential = {
    kind: 'header',
    header: 'authorization',
    value: 'a',
    owner: 'a',
    keyOwner: undefined,
  } as const;
  const name = { name: 'order', key: 'order' };
  const digest = (length: number) => digests.identify('up', name, credential, Buffer.alloc(length, 'x')).body;
  const MIB = 2 ** 20;
  const bodies = [0, 1, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3_000_000, 8 * MIB].map(digest);
  expect(bodies.every(Number.isSafeInteger)).toBe(true);
  expect(new Set(bodies).size).toBe(bodies.length);
});

test('two clients whose keys are separate make two writes of one name, also with the same body', () => {
  const digests = new WriteDigests('secret');
  const name = { name: 'order', key: 'order' };
  const identify = (client: string, body: string, kind = 'name', source = 'name') => {
    const value = `${source}\0${client}`;
    return digests.identify(
      'up',
      name,
      { kind: 'client', header: 'authorization', value, owner: value, keyOwner: { name: value, kind } },
      Buffer.from(body),
    );
  };
  const [alice, again, bob] = [identify('alice', '1'), identify('alice', '2'), identify('bob', '1')];
  expect([isSameWrite(alice, again), isSameWrite(alice, bob)]).toEqual([true, false]);
  expect(alice.body).not.toBe(again.body);
  expect(alice.body).toBe(bob.body);
  expect(alice.keyOwnerKind).toBe(bob.keyOwnerKind);
  const renamed = identify('alice', '1', 'header:x-client', 'header:x-client');
  expect([isSameWrite(alice, renamed), isSameWrite(again, renamed)]).toEqual([true, false]);
  // Another claim of the tokens is the name: a name that is the same as before still decides.
  const [kept, other] = [identify('alice', '2', 'name by email'), identify('alice@example.com', '1', 'name by email')];
  expect([isSameWrite(alice, kept), isAmbiguous({ ...alice, endpoint: 'e1' }, kept)]).toEqual([true, false]);
  expect([isSameWrite(alice, other), isAmbiguous({ ...alice, endpoint: 'e1' }, other)]).toEqual([true, true]);
  expect(isSameWrite(again, other)).toBe(false);
});
