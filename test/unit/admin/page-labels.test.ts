import { describe, expect, test } from 'vitest';
import { describeChanges } from '../../../src/admin/page/text/status-changes.js';
import type { ProcessStatus, UpstreamStatus } from '../../../src/admin/page/api-types.ts';
import {
  formatCount,
  describeNotices,
  formatPercent,
  formatRateLabel,
  formatTimeSpan,
  formatLatency,
} from '../../../src/admin/page/text/labels.js';
import {
  formatHeadline,
  formatNestedLimit,
  stateSeverity,
  upstreamSeverity,
} from '../../../src/admin/page/text/limit-labels.js';
import { outcomeSeverity } from '../../../src/admin/page/text/outcome-labels.js';
import { nestedOf, statusOf, upstreamOf } from '../../support/admin/status-builders.ts';

const NOW = Date.parse('2026-11-22T03:00:00.000Z');

/** The time so many seconds from now. */
function after(seconds: number): string {
  return new Date(NOW + seconds * 1000).toISOString();
}

function headline(change: Partial<UpstreamStatus>): string {
  return formatHeadline(upstreamOf(change), NOW);
}

describe('the headline of an upstream', () => {
  test('shows what is allowed and what is sent', () => {
    expect(headline({ rate: 84, sentPerSecond: 80 })).toBe('allowed 84/s, sending 80/s, healthy');
    expect(headline({ rate: null, sentPerSecond: 3.21 })).toBe('no limit detected, sending 3.2/s, healthy');
    expect(headline({ state: 'restoring', rate: 84 })).toBe('allowed 84/s and rising, sending 0/s, healthy');
  });

  test('shows for how long a nested limit is blocked, or when it is probed', () => {
    const blocked = nestedOf({ state: 'blocked', until: after(12) });
    const label = (untilWhat: 'blocked until' | 'next probe') => formatNestedLimit({ ...blocked, untilWhat }, NOW);
    expect(label('blocked until')).toMatch(/blocked for another 12 s$/);
    expect(label('next probe')).toMatch(/next probe in 12 s$/);
  });

  test('shows who blocked it, for how long, and when it is probed', () => {
    const blocked = { state: 'blocked', blockedBy: 'upstream', until: after(12) } as const;
    expect(headline({ ...blocked, untilWhat: 'blocked until' })).toBe('blocked by the upstream for another 12 s');
    expect(headline({ ...blocked, untilWhat: 'next probe', until: after(3), queued: 7 })).toBe(
      'blocked by the upstream; next probe in 3 s; 7 waiting',
    );
    expect(headline({ ...blocked, until: null })).toBe('blocked by the upstream; probing now');
    expect(headline({ ...blocked, blockedBy: 'operator', until: null })).toBe('blocked by an operator until unblocked');
    expect(headline({ ...blocked, blockedBy: 'operator', untilWhat: 'blocked until', until: after(299.2) })).toBe(
      'blocked by an operator for another 5 min 00 s',
    );
  });

  test('shows what is wrong', () => {
    expect(headline({ state: 'backoff', rate: 84, throttledPerSecond: 2.5, queued: 1200 })).toBe(
      'cut to 84/s, sending 0/s, 1\u202f200 waiting, 2.5/s rejected by the upstream',
    );
    expect(headline({ rate: 50, sentPerSecond: 49, queued: 14, throttledPerSecond: 1 })).toBe(
      'allowed 50/s, sending 49/s, 14 waiting, healthy',
    );
    expect(headline({ state: 'cooldown', rate: 84, until: after(4) })).toBe(
      'allowed 84/s, sending 0/s, growth resumes in 4 s, healthy',
    );
    expect(headline({ pinned: 50, rate: 50 })).toBe('pinned at 50/s by an operator, sending 0/s');
    const endpoints = [
      { endpoint: 'a:443', healthy: true },
      { endpoint: 'b:443', healthy: false },
    ];
    expect(headline({ endpoints })).toBe('no limit detected, sending 0/s, 1 of 2 endpoints ejected');
  });

  test('shows failures, refusals and a spent retry budget, and is not healthy then', () => {
    const busy = { rate: 50, sentPerSecond: 20 };
    expect(headline({ ...busy, failedShare: 1 })).toBe('allowed 50/s, sending 20/s, every attempt fails');
    expect(headline({ ...busy, failedShare: 0.45 })).toBe('allowed 50/s, sending 20/s, 45 % of attempts fail');
    expect(headline({ ...busy, failedShare: 0.04 })).toBe('allowed 50/s, sending 20/s, healthy');
    expect(headline({ ...busy, refusedPerSecond: 16 })).toBe('allowed 50/s, sending 20/s, 16/s refused');
    expect(headline({ ...busy, budgetSpent: true })).toBe('allowed 50/s, sending 20/s, retry budget spent');
  });

  test('is critical from half of the attempts that fail on, a warning for less and for refusals', () => {
    const severity = (change: Partial<UpstreamStatus>): string => upstreamSeverity(upstreamOf(change));
    expect([0.04, 0.05, 0.49, 0.5, 1].map((failedShare) => severity({ failedShare }))).toEqual([
      'ok',
      'warning',
      'warning',
      'critical',
      'critical',
    ]);
    expect(severity({ refusedPerSecond: 0.1 })).toBe('warning');
    expect(severity({ budgetSpent: true })).toBe('warning');
    expect(stateSeverity(upstreamOf({ failedShare: 1 }))).toBe('muted');
    expect(stateSeverity(upstreamOf())).toBe('ok');
  });

  test('is neither healthy nor wrong before the first attempt', () => {
    const untried = { attempts: 0, failedShare: null };
    expect(headline(untried)).toBe('no limit detected, not tried yet');
    expect(upstreamSeverity(upstreamOf(untried))).toBe('muted');
    expect(stateSeverity(upstreamOf(untried))).toBe('muted');
    expect(headline({ ...untried, inFlight: 1 })).toBe('no limit detected, sending 0/s, healthy');
  });

  test('is never "healthy" unless its mark is too', () => {
    const upstreams = (['open', 'backoff', 'cooldown', 'restoring', 'blocked'] as const).flatMap((state) =>
      [0, 3, 300].flatMap((queued) => [null, 10].map((pinned) => upstreamOf({ state, queued, pinned, rate: 10 }))),
    );
    const healthy = upstreams.filter((upstream) => formatHeadline(upstream, NOW).includes('healthy'));
    expect(healthy.length).toBeGreaterThan(0);
    expect(new Set(healthy.map(upstreamSeverity))).toEqual(new Set(['ok']));
    expect(upstreamSeverity(upstreamOf({ state: 'blocked' }))).toBe('critical');
  });
});

describe('the notices of a process', () => {
  test('are empty in normal operation', () => {
    expect(describeNotices(statusOf())).toEqual([]);
  });

  test('report a drain, an unreachable store, a failed reload and observe mode', () => {
    const texts = (change: Partial<ProcessStatus>): string => JSON.stringify(describeNotices(statusOf(change)));
    expect(texts({ phase: 'draining' })).toContain('Draining');
    expect(texts({ store: { kind: 'redis', degraded: true } })).toContain('The store (redis) is not responding');
    const lastReload = { at: after(-60), ok: false, problem: 'tidegate.yaml:3:1 retyr: unknown key' };
    expect(texts({ config: { loadedAt: after(-600), lastReload } })).toContain('retyr: unknown key');
    expect(texts({ mode: 'observe' })).toContain('Observe mode');
  });
});

describe('screen-reader announcements', () => {
  const announcements = (before: Partial<UpstreamStatus>, after: Partial<UpstreamStatus>): readonly string[] => {
    const [first, second] = [before, after].map((change) => statusOf({ upstreams: [upstreamOf(change)] }));
    return second === undefined ? [] : describeChanges(first, second, NOW);
  };

  test('cover a block, its end, a limit first met, and a pin', () => {
    expect(announcements({}, { state: 'blocked', blockedBy: 'upstream' })).toEqual([
      'payments: blocked by the upstream; probing now.',
    ]);
    expect(announcements({ state: 'blocked' }, { state: 'restoring' })).toHaveLength(1);
    expect(announcements({ state: 'open' }, { state: 'backoff' })).toHaveLength(1);
    expect(announcements({}, { pinned: 5 })).toHaveLength(1);
    expect(announcements({}, { failedShare: 1 })).toEqual([
      'payments: no limit detected, sending 0/s, every attempt fails.',
    ]);
  });

  test('leave out single figures and the steps of a limit at work', () => {
    expect(announcements({ state: 'backoff', rate: 9 }, { state: 'cooldown', rate: 8 })).toEqual([]);
    expect(announcements({ state: 'cooldown' }, { state: 'restoring', sentPerSecond: 7, queued: 3 })).toEqual([]);
  });
});

test('the mark of a request depends on its outcome and on the status that the client got', () => {
  const severities = [200, 402, 429, 500, 503].map((status) => outcomeSeverity('forwarded', status));
  expect(severities).toEqual(['ok', 'muted', 'warning', 'critical', 'critical']);
  expect(outcomeSeverity('recovered', 200)).toBe('ok');
  expect(outcomeSeverity('refused', 429)).toBe('warning');
  expect(outcomeSeverity('unknown', 504)).toBe('critical');
  expect(outcomeSeverity('client_gone', 0)).toBe('muted');
});

test('figures are short, and never claim more precision than they have', () => {
  expect([0, 0.04, 3.14, 9.96, 84.4, 12_345].map(formatRateLabel)).toEqual([
    '0/s',
    '0.04/s',
    '3.1/s',
    '10/s',
    '84/s',
    '12\u202f345/s',
  ]);
  expect(formatRateLabel(null)).toBe('no limit');
  expect([0, 0.004, 0.5, 0.999, 1].map(formatPercent)).toEqual(['0 %', '<1 %', '50 %', '99 %', '100 %']);
  expect([0.000_01, 0.0042, 0.087, 0.412, 0.9999, 1.234, 12.34].map(formatLatency)).toEqual([
    '<0.1 ms',
    '4.2 ms',
    '87 ms',
    '412 ms',
    '1.00 s',
    '1.23 s',
    '12.3 s',
  ]);
  expect([-1, 0.2, 59.5, 61, 3600, 4000, 200_000].map(formatTimeSpan)).toEqual([
    '0 s',
    '1 s',
    '1 min 00 s',
    '1 min 01 s',
    '1 h 00 min',
    '1 h 06 min',
    '2 days',
  ]);
  expect(formatCount(1_234_567)).toBe('1\u202f234\u202f567');
});
