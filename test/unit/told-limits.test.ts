import { describe, expect, test } from 'vitest';
import type { Requester } from '../../src/core/quota/requester.ts';
import type { Millis, Quota } from '../../src/core/exchange/attempt-outcome.ts';
import { ToldLimits } from '../../src/core/quota/reported-quotas.ts';

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

const quota = (remaining: number, limit = 5000, resetIn = 250_000): Quota => ({
  limit,
  remaining,
  resetIn,
  window: undefined,
});
const by = (client: number, address = client, credential = 0): Requester => ({ client, address, credential });

/** Whether two answers, so far apart, show a quota that both share. */
function showTogether(first: [Requester, Quota], second: [Requester, Quota], later = 1000): boolean {
  const told = new ToldLimits();
  told.note(...first, 0);
  told.note(...second, later);
  return told.isCommon(...second, later);
}

describe('a quota is common', () => {
  test.each<[string, boolean, [Requester, Quota], [Requester, Quota], Millis?]>([
    ['where another address was told about the same', true, [by(1), quota(4997)], [by(2), quota(4990)]],
    ['not where two keys of one address were', false, [by(1, 9), quota(0)], [by(2, 9), quota(0)]],
    ['not where an address is not known', false, [{ client: 1, credential: 0 }, quota(0)], [by(2), quota(0)]],
    ['not where credentials differ', false, [by(1, 1, 1), quota(9)], [by(2, 2, 2), quota(9)]],
    ['not where limits differ', false, [by(1), quota(9, 60)], [by(2), quota(9, 100)]],
    ['not where far more was told, be it long ago', false, [by(1), quota(4997)], [by(2), quota(0)], 120_000],
    [
      'where it is whole again soon and may fall at once',
      true,
      [by(1), quota(100, 100, 900)],
      [by(2), quota(0, 100, 800)],
    ],
    ['not where the other answer is older than five minutes', false, [by(1), quota(9)], [by(2), quota(9)], 300_001],
  ])('%s', (_, isCommon, first, second, later) => {
    expect(showTogether(first, second, later)).toBe(isCommon);
  });

  test('not where anybody was just told of far more, though others agree', () => {
    const told = new ToldLimits();
    told.note(by(1), quota(4990), 0);
    told.note(by(2), quota(0), 1000);
    told.note(by(3), quota(0), 2000);
    expect(told.isCommon(by(3), quota(0), 60_000)).toBe(false);
    expect(told.isCommon(by(3), quota(0), 60_001)).toBe(true);
  });
});

test('many keys of one address have nobody else forgotten', () => {
  const told = new ToldLimits();
  told.note(by(1000, 1), quota(4997), 0);
  for (let client = 1; client < 100; client += 1) told.note(by(client, 2), quota(4000), client);
  expect(told.isCommon(by(100, 3), quota(4000), 100)).toBe(false);
});
