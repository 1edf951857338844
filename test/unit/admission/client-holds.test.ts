import { expect, test } from 'vitest';
import { ClientHolds } from '../../../src/core/limits/client-holds.ts';
import { requesterKey, hashToNumber } from '../../../src/core/quota/requester.ts';

function held(client: string, credential: string) {
  return { client, requester: { client: hashToNumber(client), credential: hashToNumber(credential) } };
}

const keyOf = (client: string, credential: string) => requesterKey(held(client, credential).requester);

test('a hold covers a client with all of its credentials, or with one of them', () => {
  const holds = new ClientHolds();
  holds.add('a', 100, 0);
  holds.add(keyOf('b', 'one'), 200, 0);
  const until = (client: string, credential: string) => holds.heldUntil(held(client, credential), 0);
  expect([until('a', 'one'), until('a', 'other')]).toEqual([100, 100]);
  expect([until('b', 'one'), until('b', 'other')]).toEqual([200, Number.NEGATIVE_INFINITY]);
});

test('a hold on one credential covers a client whose credential is unknown', () => {
  const holds = new ClientHolds();
  holds.add(requesterKey({ client: hashToNumber('a'), credential: undefined }), 100, 0);
  expect(holds.heldUntil(held('a', 'whatever'), 0)).toBe(100);
  expect(holds.heldUntil(held('b', 'whatever'), 0)).toBe(Number.NEGATIVE_INFINITY);
});

test('the credential is not read once no hold depends on it', () => {
  const holds = new ClientHolds();
  holds.add(keyOf('a', 'one'), 100, 0);
  const curious = {
    client: 'a',
    get requester(): never {
      throw new Error('its credential was asked for');
    },
  };
  expect(() => holds.heldUntil(curious, 99)).toThrow('its credential');
  expect(holds.heldUntil(curious, 100)).toBe(Number.NEGATIVE_INFINITY);
});

test('keeps the thousand most recent holds', () => {
  const holds = new ClientHolds();
  for (let i = 0; i < 1500; i += 1) holds.add(keyOf(`client ${i}`, 'one'), 100, 0);
  const isHeld = (i: number) => holds.heldUntil(held(`client ${i}`, 'one'), 0) === 100;
  expect([499, 500, 1499].map(isHeld)).toEqual([false, true, true]);
});

test("releasing a client's hold covers every credential", () => {
  const holds = new ClientHolds();
  for (const key of ['a', keyOf('a', 'one'), keyOf('a', 'other'), keyOf('b', 'one')]) holds.add(key, 100, 0);
  holds.clearClient('a');
  expect(holds.heldUntil(held('a', 'one'), 0)).toBe(Number.NEGATIVE_INFINITY);
  expect(holds.heldUntil(held('b', 'one'), 0)).toBe(100);
});

test('a credential hash fits into a double, and a million of them differ', () => {
  const numbers = new Set<number>();
  for (let i = 0; i < 1e6; i += 1) numbers.add(hashToNumber(i.toString(16).padStart(16, '0')));
  expect(numbers.size).toBe(1e6);
  for (const number of [...numbers].slice(0, 1000)) expect(Number.isSafeInteger(number)).toBe(true);
  expect(hashToNumber('')).toBe(0);
});
