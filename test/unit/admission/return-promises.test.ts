import { expect, test } from 'vitest';
import { NO_PROMISE, ReturnPromises } from '../../../src/core/limits/return-promises.ts';

const USABLE_FOR = 2000;
const promise = (last: number) => ({ first: last, last, askedAt: 0 });

test('finds the last return time of each client', () => {
  const promises = new ReturnPromises();
  promises.set('a', promise(1000), USABLE_FOR, 0);
  promises.set('b', promise(3000), USABLE_FOR, 0);
  promises.set('a', promise(5000), USABLE_FOR, 0);
  expect([promises.get('a'), promises.get('b'), promises.get('c')]).toEqual([promise(5000), promise(3000), NO_PROMISE]);
  promises.delete('a');
  expect(promises.get('a')).toBe(NO_PROMISE);
});

test('drops return times that can no longer be used', () => {
  const promises = new ReturnPromises();
  for (let i = 0; i < 100; i += 1) promises.set(`client ${i}`, promise(i + 1000), USABLE_FOR, i);
  expect(promises.size).toBe(100);
  promises.set('last', promise(4000), USABLE_FOR, 3050); // the first 50 were asked to return before 1050
  expect(promises.size).toBe(51);
});

test('drops the return time of the client that was refused longest ago if there are too many', () => {
  const promises = new ReturnPromises();
  for (let i = 0; i < 10_010; i += 1) promises.set(`client ${i}`, promise(60_000), USABLE_FOR, i);
  expect(promises.size).toBe(10_000);
  expect([promises.get('client 9'), promises.get('client 10')]).toEqual([NO_PROMISE, promise(60_000)]);
});
