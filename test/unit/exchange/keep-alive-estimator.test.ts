import { expect, test } from 'vitest';
import { KeepAliveEstimator } from '../../../src/core/endpoints/keep-alive-estimator.ts';

function after(...closes: readonly (number | 'outlived')[]): number {
  const idle = new KeepAliveEstimator();
  for (const close of closes) {
    if (close === 'outlived') idle.onLocalClosed();
    else idle.onPeerClosed(close);
  }
  return idle.maxIdle;
}

test('allows any idle time until three connections in a row were closed early', () => {
  expect(after()).toBe(Infinity);
  expect(after(2000, 2000)).toBe(Infinity);
  expect(after(2000, 2010, 1990)).toBe(0.75 * 2010);
});

test('uses the longest idle time after a restart, which closes connections of any age', () => {
  expect(after(300, 3900, 700)).toBe(0.75 * 3900);
});

test('allows any idle time again after a connection that stayed idle until the proxy closed it', () => {
  expect(after(2000, 2000, 2000, 'outlived')).toBe(Infinity);
  expect(after('outlived', 2000, 2000, 2000)).toBe(1500);
});
