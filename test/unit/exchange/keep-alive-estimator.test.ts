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

test('allows any idle time until several connections in a row are closed early', () => {
  expect(after()).toBe(Infinity);
  expect(after(2000, 2000)).toBe(Infinity);
  expect(after(2000, 2010, 1990)).toBe(0.75 * 2010);
});

test('hardly counts a restart, which closes connections of every age', () => {
  expect(after(300, 3900, 700)).toBe(0.75 * 3900);
});

test('a connection that stays idle until we close it shows that the upstream keeps them', () => {
  expect(after(2000, 2000, 2000, 'outlived')).toBe(Infinity);
  expect(after('outlived', 2000, 2000, 2000)).toBe(1500);
});
