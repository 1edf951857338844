import { describe, expect, test } from 'vitest';
import type { Requester } from '../../../src/core/quota/requester.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { Quota } from '../../../src/core/hints/hints.ts';
import { ReportedQuotas } from '../../../src/core/quota/reported-quotas.ts';

function note(quotas: ReportedQuotas, client: number | undefined, limit: number | undefined, now: number): boolean {
  return quotas.onQuota({ client, credential: 0 }, { limit, remaining: 0 } as Quota, now);
}

test('limits differ if two clients receive different values', () => {
  const quotas = new ReportedQuotas();
  expect([note(quotas, 1, 60, 0), note(quotas, 2, 5000, 1), note(quotas, 1, 60, 2)]).toEqual([false, true, true]);
});

test('a change for all clients counts as a difference until each client has received it', () => {
  const quotas = new ReportedQuotas();
  expect([note(quotas, 1, 60, 0), note(quotas, 2, 60, 1)]).toEqual([false, false]);
  expect([note(quotas, 1, 100, 2), note(quotas, 2, 100, 3), note(quotas, 1, 100, 4)]).toEqual([true, false, false]);
});

test('a client that receives several limits in turn differs from no other', () => {
  const quotas = new ReportedQuotas();
  expect([60, 100, 60, 100].map((limit, now) => note(quotas, 1, limit, now))).toEqual([false, false, false, false]);
});

test('a value received five minutes ago no longer counts', () => {
  const quotas = new ReportedQuotas();
  note(quotas, 1, 60, 0);
  note(quotas, 2, 5000, 1);
  expect(note(quotas, 1, 60, 300_000)).toBe(true);
  expect(note(quotas, 1, 60, 300_001)).toBe(false);
});

test('reports no difference for an unknown client, or for a limit that is not announced', () => {
  const quotas = new ReportedQuotas();
  note(quotas, 1, 60, 0);
  note(quotas, 2, 5000, 1);
  expect([note(quotas, undefined, 60, 2), note(quotas, 1, undefined, 3), note(quotas, 1, 60, 4)]).toEqual([
    false,
    false,
    true,
  ]);
});

test('keeps the sixteen clients that were answered last', () => {
  const quotas = new ReportedQuotas();
  note(quotas, 0, 5000, 1);
  for (let client = 1; client < 16; client += 1) note(quotas, client, 60, 0);
  for (let client = 1; client < 16; client += 1) note(quotas, client, 60, 2);
  expect(note(quotas, 1, 60, 3)).toBe(true); // 0 is kept
  note(quotas, 16, 60, 4);
  expect(note(quotas, 1, 60, 5)).toBe(false); // the limit of entries
});

const quota = (remaining: number, limit = 5000, resetIn = 250_000): Quota => ({
  limit,
  remaining,
  resetIn,
  window: undefined,
});
const by = (client: number, address = client, credential = 0): Requester => ({ client, address, credential });

/** Whether two responses at this distance show a shared quota. */
function showTogether(first: [Requester, Quota], second: [Requester, Quota], later = 1000): boolean {
  const quotas = new ReportedQuotas();
  quotas.onQuota(...first, 0);
  quotas.onQuota(...second, later);
  return quotas.isShared(...second, later);
}

describe('a quota is shared', () => {
  test.each<[string, boolean, [Requester, Quota], [Requester, Quota], Millis?]>([
    ['where another address received about the same', true, [by(1), quota(4997)], [by(2), quota(4990)]],
    ['not where two keys of one address did', false, [by(1, 9), quota(0)], [by(2, 9), quota(0)]],
    ['not where an address is unknown', false, [{ client: 1, credential: 0 }, quota(0)], [by(2), quota(0)]],
    ['not where credentials differ', false, [by(1, 1, 1), quota(9)], [by(2, 2, 2), quota(9)]],
    ['not where limits differ', false, [by(1), quota(9, 60)], [by(2), quota(9, 100)]],
    ['not where another received far more, however long ago', false, [by(1), quota(4997)], [by(2), quota(0)], 120_000],
    [
      'where it is soon whole again and may fall at once',
      true,
      [by(1), quota(100, 100, 900)],
      [by(2), quota(0, 100, 800)],
    ],
    ['not where the other answer is older than five minutes', false, [by(1), quota(9)], [by(2), quota(9)], 300_001],
  ])('%s', (_, isCommon, first, second, later) => {
    expect(showTogether(first, second, later)).toBe(isCommon);
  });

  test('is not shared if another client just received far more, though others agree', () => {
    const quotas = new ReportedQuotas();
    quotas.onQuota(by(1), quota(4990), 0);
    quotas.onQuota(by(2), quota(0), 1000);
    quotas.onQuota(by(3), quota(0), 2000);
    expect(quotas.isShared(by(3), quota(0), 60_000)).toBe(false);
    expect(quotas.isShared(by(3), quota(0), 60_001)).toBe(true);
  });
});

test('many keys of one address evict no other client', () => {
  const quotas = new ReportedQuotas();
  quotas.onQuota(by(1000, 1), quota(4997), 0);
  for (let client = 1; client < 100; client += 1) quotas.onQuota(by(client, 2), quota(4000), client);
  expect(quotas.isShared(by(100, 3), quota(4000), 100)).toBe(false);
});
