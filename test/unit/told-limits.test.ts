import { expect, test } from 'vitest';
import type { Quota } from '../../src/policy/types.ts';
import { ToldLimits } from '../../src/policy/told-limits.ts';

function note(told: ToldLimits, client: number | undefined, limit: number | undefined, now: number): boolean {
  return told.note({ client, credential: 0 }, { limit, remaining: 0 } as Quota, now);
}

test('limits differ where another client is told another', () => {
  const told = new ToldLimits();
  expect([note(told, 1, 60, 0), note(told, 2, 5000, 1), note(told, 1, 60, 2)]).toEqual([false, true, true]);
});

test('one that changes for everybody differs until each client has been told of it', () => {
  const told = new ToldLimits();
  expect([note(told, 1, 60, 0), note(told, 2, 60, 1)]).toEqual([false, false]);
  expect([note(told, 1, 100, 2), note(told, 2, 100, 3), note(told, 1, 100, 4)]).toEqual([true, false, false]);
});

test('a client that is told several limits in turn differs from none', () => {
  const told = new ToldLimits();
  expect([60, 100, 60, 100].map((limit, now) => note(told, 1, limit, now))).toEqual([false, false, false, false]);
});

test('what was told five minutes ago counts no more', () => {
  const told = new ToldLimits();
  note(told, 1, 60, 0);
  note(told, 2, 5000, 1);
  expect(note(told, 1, 60, 300_000)).toBe(true);
  expect(note(told, 1, 60, 300_001)).toBe(false);
});

test('nothing is said of who is not known, or of a limit that is not told', () => {
  const told = new ToldLimits();
  note(told, 1, 60, 0);
  note(told, 2, 5000, 1);
  expect([note(told, undefined, 60, 2), note(told, 1, undefined, 3), note(told, 1, 60, 4)]).toEqual([
    false,
    false,
    true,
  ]);
});

test('sixteen clients are remembered, those that were answered last', () => {
  const told = new ToldLimits();
  note(told, 0, 5000, 1);
  for (let client = 1; client < 16; client += 1) note(told, client, 60, 0);
  for (let client = 1; client < 16; client += 1) note(told, client, 60, 2);
  expect(note(told, 1, 60, 3)).toBe(true); // 0 is remembered
  note(told, 16, 60, 4);
  expect(note(told, 1, 60, 5)).toBe(false); // and no more
});

test('what is left of one quota does not fall by far within a minute', () => {
  const told = new ToldLimits();
  const quota = (remaining: number): Quota => ({ limit: 5000, remaining, resetIn: 250_000 }) as Quota;
  told.note({ client: 1, credential: 0 }, quota(4997), 0);
  const other = { client: 2, credential: 0 };
  expect([4500, 4400, 0].map((remaining) => told.isFarBelow(other, quota(remaining), 60_000))).toEqual([
    false,
    true,
    true,
  ]);
  expect(told.isFarBelow(other, quota(0), 60_001)).toBe(false);
  expect(told.isFarBelow({ client: 1, credential: 0 }, quota(0), 1)).toBe(false);
  expect(told.isFarBelow(other, { ...quota(0), limit: 60 }, 1)).toBe(false);
});

test('many keys of one address have nobody else forgotten', () => {
  const told = new ToldLimits();
  told.note({ client: 1000, credential: 0, address: 1 }, { limit: 5000, remaining: 4997 } as Quota, 0);
  for (let client = 1; client < 100; client += 1) {
    told.note({ client, credential: 0, address: 2 }, { limit: 5000, remaining: 0 } as Quota, client);
  }
  expect(
    told.isFarBelow({ client: 100, credential: 0 }, { limit: 5000, remaining: 0, resetIn: 250_000 } as Quota, 100),
  ).toBe(true);
});
