import { expect, test } from 'vitest';
import { LimitHolds } from '../../src/core/limits/client-holds.ts';
import { keyOfRequester, numberOf } from '../../src/core/quota/requester.ts';

function held(client: string, credential: string) {
  return { client, requester: { client: numberOf(client), credential: numberOf(credential) } };
}

const keyOf = (client: string, credential: string) => keyOfRequester(held(client, credential).requester);

test('a client is held with all of its credentials, or with one', () => {
  const holds = new LimitHolds();
  holds.hold('a', 100, 0);
  holds.hold(keyOf('b', 'one'), 200, 0);
  const until = (client: string, credential: string) => holds.until(held(client, credential), 0);
  expect([until('a', 'one'), until('a', 'other')]).toEqual([100, 100]);
  expect([until('b', 'one'), until('b', 'other')]).toEqual([200, Number.NEGATIVE_INFINITY]);
});

test('a client whose credential is not known is held with any', () => {
  const holds = new LimitHolds();
  holds.hold(keyOfRequester({ client: numberOf('a'), credential: undefined }), 100, 0);
  expect(holds.until(held('a', 'whatever'), 0)).toBe(100);
  expect(holds.until(held('b', 'whatever'), 0)).toBe(Number.NEGATIVE_INFINITY);
});

test('nobody is asked for its credential once no hold asks for it', () => {
  const holds = new LimitHolds();
  holds.hold(keyOf('a', 'one'), 100, 0);
  const curious = {
    client: 'a',
    get requester(): never {
      throw new Error('its credential was asked for');
    },
  };
  expect(() => holds.until(curious, 99)).toThrow('its credential');
  expect(holds.until(curious, 100)).toBe(Number.NEGATIVE_INFINITY);
});

test('a thousand are remembered, those that were held last', () => {
  const holds = new LimitHolds();
  for (let i = 0; i < 1500; i += 1) holds.hold(keyOf(`client ${i}`, 'one'), 100, 0);
  const isHeld = (i: number) => holds.until(held(`client ${i}`, 'one'), 0) === 100;
  expect([499, 500, 1499].map(isHeld)).toEqual([false, true, true]);
});

test('one that is forgiven may go with every credential', () => {
  const holds = new LimitHolds();
  for (const key of ['a', keyOf('a', 'one'), keyOf('a', 'other'), keyOf('b', 'one')]) holds.hold(key, 100, 0);
  holds.forgive('a');
  expect(holds.until(held('a', 'one'), 0)).toBe(Number.NEGATIVE_INFINITY);
  expect(holds.until(held('b', 'one'), 0)).toBe(100);
});

test('numbers of hashes fit into a double, and tell a million of them apart', () => {
  const numbers = new Set<number>();
  for (let i = 0; i < 1e6; i += 1) numbers.add(numberOf(i.toString(16).padStart(16, '0')));
  expect(numbers.size).toBe(1e6);
  for (const number of [...numbers].slice(0, 1000)) expect(Number.isSafeInteger(number)).toBe(true);
  expect(numberOf('')).toBe(0);
});
