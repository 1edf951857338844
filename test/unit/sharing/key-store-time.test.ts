import { expect, test } from 'vitest';
import { KeyStoreTime } from '../../../src/sharing/redis/keys/key-store-time.ts';

const TIMEOUT = 150;

test('a response that took too long gives only a lower bound of the time', () => {
  const time = new KeyStoreTime();
  time.addSample(0, 3000, 8000, TIMEOUT);
  expect(time.isKnown).toBe(false);
  expect(time.least(3000)).toBe(8000);
  time.addSample(3000, 3002, 8001, TIMEOUT);
  expect([time.isKnown, time.offset]).toEqual([true, 5000]);
  time.addSample(4000, 7000, 9000, TIMEOUT);
  expect(time.offset).toBe(5000);
});

test('the lower bound advances by the local clock, less the drift of clocks', () => {
  const time = new KeyStoreTime();
  expect(time.least(1000)).toBe(0);
  time.addSample(0, 0, 5000, TIMEOUT);
  expect(time.least(100_000)).toBe(104_950);
  time.addSample(100_000, 100_000, 45_000, TIMEOUT); // the clock was set back by a minute
  expect(time.least(100_000)).toBe(104_950);
});
