import { expect, test } from 'vitest';
import { IdleLimit } from '../../src/core/endpoints/keep-alive-estimator.ts';

function after(...closes: readonly (number | 'outlived')[]): number {
  const idle = new IdleLimit();
  for (const close of closes) {
    if (close === 'outlived') idle.outlived();
    else idle.closed(close);
  }
  return idle.limit;
}

test('connections may be idle for as long as they like until several in a row are closed early', () => {
  expect(after()).toBe(Infinity);
  expect(after(2000, 2000)).toBe(Infinity);
  expect(after(2000, 2010, 1990)).toBe(0.75 * 2010);
});

test('a restart, which closes connections of every age, hardly counts', () => {
  expect(after(300, 3900, 700)).toBe(0.75 * 3900);
});

test('a connection that is idle until we close it shows that they are kept', () => {
  expect(after(2000, 2000, 2000, 'outlived')).toBe(Infinity);
  expect(after('outlived', 2000, 2000, 2000)).toBe(1500);
});
