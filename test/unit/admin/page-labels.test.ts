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
import { outcomeSeverity } from '../../../src/admin/page/text/outcome-labels.js';
import { NO_DELIVERIES, statusOf, upstreamOf } from '../../support/admin/status-builders.ts';

const NOW = Date.parse('2026-11-22T03:00:00.000Z');

/** The time this many seconds from now. */
function after(seconds: number): string {
  return new Date(NOW + seconds * 1000).toISOString();
}

describe('the notices of a process', () => {
  test('are empty in normal operation', () => {
    expect(describeNotices(statusOf())).toEqual([]);
  });

  test('report a drain, an unreachable store, a failed reload and observe mode', () => {
    const texts = (change: Partial<ProcessStatus>): string => JSON.stringify(describeNotices(statusOf(change)));
    expect(texts({ phase: 'draining' })).toContain('Draining');
    const store = { kind: 'redis', degraded: true, problem: null } as const;
    expect(texts({ store })).toContain('The store (redis) is not responding. Meanwhile');
    expect(texts({ store: { ...store, problem: 'connect ECONNREFUSED 10.0.0.1:6379' } })).toContain(
      'The store (redis) is not responding: connect ECONNREFUSED 10.0.0.1:6379. Meanwhile',
    );
    const lastReload = { at: after(-60), ok: false, problem: 'tidegate.yaml:3:1 retyr: unknown key' };
    expect(texts({ config: { loadedAt: after(-600), lastReload } })).toContain('retyr: unknown key');
    expect(texts({ mode: 'observe', observedUpstreams: ['api'] })).toContain('Observe mode: ');
    expect(texts({ observedUpstreams: ['a', 'b'] })).toContain('Observe mode for a, b: ');
    expect(texts({ observedUpstreams: ['a', 'b', 'c', 'd', 'e'] })).toContain('Observe mode for a, b, c and 2 more: ');
  });
});

describe('the notice of dead and unknown deliveries', () => {
  const texts = (dead: number, unknown = 0): readonly string[] =>
    describeNotices(
      statusOf({ deliveries: { ...NO_DELIVERIES, counts: { ...NO_DELIVERIES.counts, delivered: 9, dead, unknown } } }),
    ).map(({ severity, text }) => `${severity}: ${text}`);

  test('gives their number', () => {
    expect(texts(0)).toEqual([]);
    expect(texts(1)).toEqual([
      'warning: 1 stored delivery is dead: no more attempts are made. Retry those that are still needed before they are removed (keepFor).',
    ]);
    expect(texts(1200)[0]).toMatch(/^warning: 1\u202f200 stored deliveries are dead: /);
    expect(texts(0, 2)).toEqual([
      'warning: 2 stored deliveries are unknown: they may have taken effect. Look up each at the upstream before it is removed here (keepFor).',
    ]);
  });
});

describe('the notice of a certificate', () => {
  const notices = (seconds: number, setting = 'listen.tls.cert') =>
    describeNotices(statusOf({ at: after(0), certificates: [{ setting, expiresAt: after(seconds) }] }));
  const DAY = 86_400;

  test.each([
    [7 * DAY + 1, []],
    [7 * DAY, [['warning', 'Certificate of listen.tls.cert expires in 7 days. Replace it before that.']]],
    [DAY, [['warning', 'Certificate of listen.tls.cert expires in 24 h. Replace it before that.']]],
    [1, [['warning', 'Certificate of listen.tls.cert expires in less than a minute. Replace it before that.']]],
    [-150, [['critical', 'Certificate of listen.tls.cert expired 2 min ago: clients that verify it cannot connect.']]],
    [
      -3 * DAY,
      [['critical', 'Certificate of listen.tls.cert expired 3 days ago: clients that verify it cannot connect.']],
    ],
  ])('that expires in %d s', (seconds, expected) => {
    expect(notices(seconds).map(({ severity, text }) => [severity, text])).toEqual(expected);
  });

  test('for an upstream names the effect of a client certificate', () => {
    expect(notices(-60, 'upstreams.api.tls.cert')[0]?.text).toBe(
      'Certificate of upstreams.api.tls.cert expired 1 min ago: the server that it is presented to may refuse connections.',
    );
  });
});

describe('screen-reader announcements', () => {
  test('cover the first dead delivery, not each one', () => {
    const [none, one, two] = [0, 1, 2].map((dead) =>
      statusOf({ deliveries: { ...NO_DELIVERIES, counts: { ...NO_DELIVERIES.counts, dead } } }),
    );
    const announced = [describeChanges(none, one!, NOW), describeChanges(one, two!, NOW)];
    expect(announced).toEqual([['Stored deliveries are dead.'], []]);
  });

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
    expect(announcements({}, { failedShare: 1 })).toEqual(['payments: every attempt fails, sending 0/s.']);
  });

  test('cover the expiry of a certificate, and its replacement', () => {
    const [valid, expired] = [60, -60].map((seconds) =>
      statusOf({ at: after(0), certificates: [{ setting: 'listen.tls.cert', expiresAt: after(seconds) }] }),
    ) as [ProcessStatus, ProcessStatus];
    expect(describeChanges(valid, expired, NOW)).toEqual(['The certificate of listen.tls.cert expired.']);
    expect(describeChanges(expired, valid, NOW)).toEqual(['The expired certificate was replaced.']);
    expect(describeChanges(expired, expired, NOW)).toEqual([]);
  });

  test('leave out changes of single figures and the ordinary states of a working limit', () => {
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

test('figures are short, and never more precise than the value they show', () => {
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
