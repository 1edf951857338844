import { expect, test } from 'vitest';
import { ToldLimits } from '../../src/policy/told-limits.ts';

test('limits differ where another client is told another', () => {
  const told = new ToldLimits();
  expect([told.note(1, 60, 0), told.note(2, 5000, 1), told.note(1, 60, 2)]).toEqual([false, true, true]);
});

test('one that changes for everybody differs until each client has been told of it', () => {
  const told = new ToldLimits();
  expect([told.note(1, 60, 0), told.note(2, 60, 1)]).toEqual([false, false]);
  expect([told.note(1, 100, 2), told.note(2, 100, 3), told.note(1, 100, 4)]).toEqual([true, false, false]);
});

test('a client that is told several limits in turn differs from none', () => {
  const told = new ToldLimits();
  expect([60, 100, 60, 100].map((limit, now) => told.note(1, limit, now))).toEqual([false, false, false, false]);
});

test('what was told five minutes ago counts no more', () => {
  const told = new ToldLimits();
  told.note(1, 60, 0);
  told.note(2, 5000, 1);
  expect(told.note(1, 60, 300_000)).toBe(true);
  expect(told.note(1, 60, 300_001)).toBe(false);
});

test('nothing is said of who is not known, or of a limit that is not told', () => {
  const told = new ToldLimits();
  told.note(1, 60, 0);
  told.note(2, 5000, 1);
  expect([told.note(undefined, 60, 2), told.note(1, undefined, 3), told.note(1, 60, 4)]).toEqual([false, false, true]);
});

test('sixteen clients are remembered, those that were answered last', () => {
  const told = new ToldLimits();
  told.note(0, 5000, 1);
  for (let client = 1; client < 16; client += 1) told.note(client, 60, 0);
  for (let client = 1; client < 16; client += 1) told.note(client, 60, 2);
  expect(told.note(1, 60, 3)).toBe(true); // 0 is remembered
  told.note(16, 60, 4);
  expect(told.note(1, 60, 5)).toBe(false); // and no more
});
