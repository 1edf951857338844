import { expect, test } from 'vitest';
import type { LimitView } from '../../../src/core/events/gate-views.ts';
import { collectLearnedLimits } from '../../../src/store/persistence/learned-state.ts';

const open: LimitView = {
  upstream: 'api',
  nested: '',
  scope: 'upstream',
  key: '',
  state: 'open',
  rate: Infinity,
  ceiling: Infinity,
  concurrencyLimit: undefined,
  blockedUntil: undefined,
  quotaLeft: undefined,
  queued: 0,
  inFlight: 0,
};
const limited: LimitView = { ...open, state: 'cooldown', rate: 80, ceiling: 100 };

function learned(views: readonly LimitView[], initialRate?: number) {
  return collectLearnedLimits(views, () => initialRate, 2, 1000);
}

test('an open limit is not stored, even if it has bounds', () => {
  expect(learned([open, { ...open, rate: 50, ceiling: 50 }])).toEqual([]);
});

test('a limit that was met is stored, and one that is blocked beyond now', () => {
  expect(learned([limited])).toMatchObject([{ rate: 80, ceiling: 100, blockedUntil: undefined }]);
  expect(learned([{ ...open, state: 'blocked', blockedUntil: 2000 }])).toMatchObject([
    { rate: undefined, blockedUntil: 2000 },
  ]);
  expect(learned([{ ...open, blockedUntil: 900 }])).toEqual([]);
});

test('a limit blocked by a spent quota is stored with its owner, unless another cause blocks it for longer', () => {
  const quotaOwner = { credential: 1, client: 2, isCommon: false, isSpent: true, until: 2000 };
  expect(learned([{ ...open, blockedUntil: 2000, quotaOwner }])).toMatchObject([{ blockedUntil: 2000, quotaOwner }]);
  const [longer] = learned([{ ...open, blockedUntil: 3000, quotaOwner }]);
  expect([longer?.blockedUntil, longer?.quotaOwner]).toEqual([3000, undefined]);
});

test('an initial rate that met no limit is not stored: another initialRate counts after a restart', () => {
  const configured: LimitView = { ...limited, state: 'restoring', rate: 30, ceiling: 30 };
  expect(learned([configured], 30)).toEqual([]);
  expect(learned([{ ...configured, rate: 20 }], 30)).toHaveLength(1);
});

test('a limit on requests in flight is stored unless latency has shown it, or tests it', () => {
  const places: LimitView = { ...limited, concurrencyLimit: 9 };
  const latencyLimit = { size: 9, unanswered: 3, isTest: true };
  expect(learned([places, { ...places, latencyLimit }]).map(({ concurrencyLimit }) => concurrencyLimit)).toEqual([
    9,
    undefined,
  ]);
});

test('bounds the number of stored limits', () => {
  expect(learned([limited, limited, limited])).toHaveLength(2);
});
