import { describe, expect, test } from 'vitest';
import { writeChanges } from '../../src/admin/page/status-changes.js';
import type { Status, UpstreamStatus } from '../../src/admin/page/api-types.ts';
import {
  moodOf,
  writeCount,
  writeHeadline,
  writeNotices,
  writePart,
  writeRate,
  writeSpan,
  writeTook,
} from '../../src/admin/page/labels.js';
import { statusOf, upstreamOf } from '../support/status.ts';

const NOW = Date.parse('2026-11-22T03:00:00.000Z');

/** So many seconds from now. */
function after(seconds: number): string {
  return new Date(NOW + seconds * 1000).toISOString();
}

function headline(change: Partial<UpstreamStatus>): string {
  return writeHeadline(upstreamOf(change), NOW);
}

describe('the headline of an upstream', () => {
  test('says what is allowed and what is sent', () => {
    expect(headline({ rate: 84, sentPerSecond: 80 })).toBe('allowed 84/s, sending 80/s, all well');
    expect(headline({ rate: null, sentPerSecond: 3.21 })).toBe('no limit felt, sending 3.2/s, all well');
    expect(headline({ state: 'restoring', rate: 84 })).toBe('allowed 84/s and rising, sending 0/s, all well');
  });

  test('says who blocked it, for how long, and when it is probed', () => {
    const blocked = { state: 'blocked', blockedBy: 'upstream', until: after(12) } as const;
    expect(headline({ ...blocked, untilWhat: 'blocked until' })).toBe('blocked by the upstream for 12 s more');
    expect(headline({ ...blocked, untilWhat: 'next probe', until: after(3), queued: 7 })).toBe(
      'blocked by the upstream; next probe in 3 s; 7 waiting',
    );
    expect(headline({ ...blocked, until: null })).toBe('blocked by the upstream; probing now');
    expect(headline({ ...blocked, blockedBy: 'operator', until: null })).toBe(
      'blocked by an operator until somebody unblocks it',
    );
    expect(headline({ ...blocked, blockedBy: 'operator', untilWhat: 'blocked until', until: after(299.2) })).toBe(
      'blocked by an operator for 5 min 00 s more',
    );
  });

  test('says what is not well', () => {
    expect(headline({ state: 'backoff', rate: 84, throttledPerSecond: 2.5, queued: 1200 })).toBe(
      'cut to 84/s, sending 0/s, 1\u202f200 waiting, 2.5/s refused by the upstream',
    );
    expect(headline({ rate: 50, sentPerSecond: 49, queued: 14, throttledPerSecond: 1 })).toBe(
      'allowed 50/s, sending 49/s, 14 waiting, all well',
    );
    expect(headline({ state: 'cooldown', rate: 84, until: after(4) })).toBe(
      'allowed 84/s, sending 0/s, growing again in 4 s, all well',
    );
    expect(headline({ pinned: 50, rate: 50 })).toBe('pinned at 50/s by an operator, sending 0/s');
    const endpoints = [
      { endpoint: 'a:443', healthy: true },
      { endpoint: 'b:443', healthy: false },
    ];
    expect(headline({ endpoints })).toBe('no limit felt, sending 0/s, 1 of 2 endpoints left out');
  });

  test('is never "all well" unless its mark says so too', () => {
    const upstreams = (['open', 'backoff', 'cooldown', 'restoring', 'blocked'] as const).flatMap((state) =>
      [0, 3, 300].flatMap((queued) => [null, 10].map((pinned) => upstreamOf({ state, queued, pinned, rate: 10 }))),
    );
    const well = upstreams.filter((upstream) => writeHeadline(upstream, NOW).includes('all well'));
    expect(well.length).toBeGreaterThan(0);
    expect(new Set(well.map(moodOf))).toEqual(new Set(['well']));
    expect(moodOf(upstreamOf({ state: 'blocked' }))).toBe('trouble');
  });
});

describe('what is told of a process', () => {
  test('is nothing while all is as it should be', () => {
    expect(writeNotices(statusOf())).toEqual([]);
  });

  test('is a drain, a store that does not answer, a reload that failed, and that it only observes', () => {
    const texts = (change: Partial<Status>): string => JSON.stringify(writeNotices(statusOf(change)));
    expect(texts({ phase: 'draining' })).toContain('Draining');
    expect(texts({ store: { kind: 'redis', degraded: true } })).toContain('The store (redis) does not answer');
    const lastReload = { at: after(-60), ok: false, problem: 'tidegate.yaml:3:1 retyr: unknown key' };
    expect(texts({ config: { loadedAt: after(-600), lastReload } })).toContain('retyr: unknown key');
    expect(texts({ mode: 'observe' })).toContain('Observing');
  });
});

describe('what is spoken', () => {
  const told = (before: Partial<UpstreamStatus>, after: Partial<UpstreamStatus>): readonly string[] => {
    const [first, second] = [before, after].map((change) => statusOf({ upstreams: [upstreamOf(change)] }));
    return second === undefined ? [] : writeChanges(first, second, NOW);
  };

  test('is a block, its end, a limit first felt, and a pin', () => {
    expect(told({}, { state: 'blocked', blockedBy: 'upstream' })).toEqual([
      'payments: blocked by the upstream; probing now.',
    ]);
    expect(told({ state: 'blocked' }, { state: 'restoring' })).toHaveLength(1);
    expect(told({ state: 'open' }, { state: 'backoff' })).toHaveLength(1);
    expect(told({}, { pinned: 5 })).toHaveLength(1);
  });

  test('is not each figure, nor each step of a limit at work', () => {
    expect(told({ state: 'backoff', rate: 9 }, { state: 'cooldown', rate: 8 })).toEqual([]);
    expect(told({ state: 'cooldown' }, { state: 'restoring', sentPerSecond: 7, queued: 3 })).toEqual([]);
  });
});

test('figures are short, and never claim what they are not', () => {
  expect([0, 0.04, 3.14, 9.96, 84.4, 12_345].map(writeRate)).toEqual([
    '0/s',
    '0.04/s',
    '3.1/s',
    '10/s',
    '84/s',
    '12\u202f345/s',
  ]);
  expect(writeRate(null)).toBe('no limit');
  expect([0, 0.004, 0.5, 0.999, 1].map(writePart)).toEqual(['0 %', '<1 %', '50 %', '99 %', '100 %']);
  expect([0.000_01, 0.0042, 0.087, 0.412, 0.9999, 1.234, 12.34].map(writeTook)).toEqual([
    '<0.1 ms',
    '4.2 ms',
    '87 ms',
    '412 ms',
    '1.00 s',
    '1.23 s',
    '12.3 s',
  ]);
  expect([-1, 0.2, 59.5, 61, 3600, 4000, 200_000].map(writeSpan)).toEqual([
    '0 s',
    '1 s',
    '1 min 00 s',
    '1 min 01 s',
    '1 h 00 min',
    '1 h 06 min',
    '2 days',
  ]);
  expect(writeCount(1_234_567)).toBe('1\u202f234\u202f567');
});
