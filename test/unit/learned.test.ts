import { expect, test } from 'vitest';
import type { LimitView } from '../../src/core/events/proxy-events.ts';
import { learnedOf } from '../../src/store/persistence/learned-state.ts';

const open: LimitView = {
  upstream: 'api',
  nested: '',
  scope: 'upstream',
  key: '',
  state: 'open',
  rate: Infinity,
  ceiling: Infinity,
  places: undefined,
  blockedUntil: undefined,
  quotaLeft: undefined,
  queued: 0,
  inFlight: 0,
};
const felt: LimitView = { ...open, state: 'cooldown', rate: 80, ceiling: 100 };

function learned(views: readonly LimitView[], initialRate?: number) {
  return learnedOf(views, () => initialRate, 2, 1000);
}

test('an open limit remembers nothing, even where it is bounded', () => {
  expect(learned([open, { ...open, rate: 50, ceiling: 50 }])).toEqual([]);
});

test('one that was felt does, and one that is blocked for longer than now', () => {
  expect(learned([felt])).toMatchObject([{ rate: 80, ceiling: 100, blockedUntil: undefined }]);
  expect(learned([{ ...open, state: 'blocked', blockedUntil: 2000 }])).toMatchObject([
    { rate: undefined, blockedUntil: 2000 },
  ]);
  expect(learned([{ ...open, blockedUntil: 900 }])).toEqual([]);
});

test('one that a spent quota blocks is kept with whom that is about, unless it is blocked for longer by something else', () => {
  const quotaOwner = { credential: 1, client: 2, isCommon: false, isSpent: true, until: 2000 };
  expect(learned([{ ...open, blockedUntil: 2000, quotaOwner }])).toMatchObject([{ blockedUntil: 2000, quotaOwner }]);
  const [longer] = learned([{ ...open, blockedUntil: 3000, quotaOwner }]);
  expect([longer?.blockedUntil, longer?.quotaOwner]).toEqual([3000, undefined]);
});

test('what was said and not felt is no knowledge: another initialRate counts after a restart', () => {
  const said: LimitView = { ...felt, state: 'restoring', rate: 30, ceiling: 30 };
  expect(learned([said], 30)).toEqual([]);
  expect(learned([{ ...said, rate: 20 }], 30)).toHaveLength(1);
});

test('no more than so many', () => {
  expect(learned([felt, felt, felt])).toHaveLength(2);
});
