import { describe, expect, test } from 'vitest';
import type { UpstreamStatus } from '../../../src/admin/page/api-types.ts';
import { endpointSeverity, formatEndpoint } from '../../../src/admin/page/text/endpoint-labels.js';
import {
  formatHeadline,
  formatNestedLimit,
  stateSeverity,
  upstreamSeverity,
} from '../../../src/admin/page/text/limit-labels.js';
import { nestedOf, upstreamOf } from '../../support/admin/status-builders.ts';

const NOW = Date.parse('2026-11-22T03:00:00.000Z');

/** The time this many seconds from now. */
function after(seconds: number): string {
  return new Date(NOW + seconds * 1000).toISOString();
}

type Failure = NonNullable<UpstreamStatus['endpoints'][number]['failure']>;

function failureOf(change: Partial<Failure>): Failure {
  return { at: after(0), reason: 'connect', code: null, text: '', ...change };
}

function headline(change: Partial<UpstreamStatus>): string {
  return formatHeadline(upstreamOf(change), NOW);
}

describe('the headline of an upstream', () => {
  test('shows the allowed rate and the rate sent', () => {
    expect(headline({ rate: 84, sentPerSecond: 80 })).toBe('allowed 84/s, sending 80/s, healthy');
    expect(headline({ rate: null, sentPerSecond: 3.21 })).toBe('no limit detected, sending 3.2/s, healthy');
    expect(headline({ state: 'restoring', rate: 84 })).toBe('allowed 84/s and rising, sending 0/s, healthy');
  });

  test('shows for how long a nested limit is blocked, or when it is probed', () => {
    const blocked = nestedOf({ state: 'blocked', blockedCause: 'rejections', until: after(12) });
    const label = (untilWhat: 'blocked until' | 'next probe') => formatNestedLimit({ ...blocked, untilWhat }, NOW);
    expect(label('blocked until')).toBe('blocked by the upstream: it rejects every request; for another 12 s');
    expect(label('next probe')).toBe('blocked by the upstream: it rejects every request; next probe in 12 s');
  });

  test('shows why the upstream blocks it, for how long, and when it is probed', () => {
    const blocked = { state: 'blocked', blockedBy: 'upstream', until: after(12), untilWhat: 'blocked until' } as const;
    expect(headline({ ...blocked, blockedCause: 'retry_after' })).toBe(
      'blocked by the upstream: it asked for a pause (Retry-After); for another 12 s',
    );
    expect(headline({ ...blocked, blockedCause: 'quota' })).toBe(
      'blocked by the upstream: its quota is used up; for another 12 s',
    );
    const probed = { ...blocked, blockedCause: 'rejections', untilWhat: 'next probe' } as const;
    expect(headline({ ...probed, until: after(3), queued: 7 })).toBe(
      'blocked by the upstream: it rejects every request; next probe in 3 s; 7 waiting',
    );
    expect(headline({ ...blocked, until: null })).toBe('blocked by the upstream; probing now');
  });

  test('names the client with the most refusals, and why it is refused', () => {
    const flooding = {
      ...{ key: 'ea5c4a4ec1d7e9ab', name: 'batch', shareOfRefusals: 0.97 },
      ...{ demandPerSecond: 73, sharePerSecond: 5.4, heldUntil: null },
    };
    const line = (mostRefused: UpstreamStatus['mostRefused']) =>
      headline({ rate: 16, sentPerSecond: 16, refusedPerSecond: 65, mostRefused });
    const start = 'allowed 16/s, sending 16/s, 65/s refused';
    expect(line(flooding)).toBe(`${start}, 97 % to client batch (sends 73/s, its share is 5.4/s)`);
    expect(line({ ...flooding, name: null, sharePerSecond: null })).toBe(
      `${start}, 97 % to client ea5c4a4ec1d7e9ab (sends 73/s)`,
    );
    expect(line({ ...flooding, shareOfRefusals: 1, heldUntil: after(40) })).toBe(
      `${start}, all to client batch (the upstream holds it for another 40 s)`,
    );
    expect(line(null)).toBe(start);
  });

  test('names the last failure while others succeed', () => {
    const lastFailure = failureOf({ reason: 'status', code: '500', text: 'responds with 500' });
    expect(headline({ failedShare: 0.33, sentPerSecond: 9, lastFailure })).toBe(
      '33 % of attempts fail (responds with 500), no limit detected, sending 9.0/s',
    );
  });

  test('shows for how long an operator blocks it', () => {
    const blocked = { state: 'blocked', blockedBy: 'operator' } as const;
    expect(headline({ ...blocked, until: null })).toBe('blocked by an operator until unblocked');
    expect(headline({ ...blocked, untilWhat: 'blocked until', until: after(299.2) })).toBe(
      'blocked by an operator for another 5 min 00 s',
    );
  });

  test('names an unreachable upstream and why, blocked or not', () => {
    const refused = failureOf({ reason: 'connect', text: 'unreachable: connection refused' });
    const endpoints = [{ endpoint: 'a:443', healthy: true, failure: refused }];
    const blocked = {
      state: 'blocked',
      blockedBy: 'upstream',
      blockedCause: 'errors',
      untilWhat: 'next probe',
    } as const;
    expect(headline({ ...blocked, until: after(3), endpoints })).toBe(
      'unreachable: connection refused; next probe in 3 s',
    );
    expect(headline({ endpoints, failedShare: 1 })).toBe(
      'unreachable: connection refused, every attempt fails, sending 0/s',
    );
    expect(upstreamSeverity(upstreamOf({ endpoints }))).toBe('critical');
    // Another endpoint, or another attempt, got a response, so the upstream is reachable.
    expect(headline({ endpoints: [...endpoints, { endpoint: 'b:443', healthy: true, failure: null }] })).toBe(
      'no limit detected, sending 0/s, healthy',
    );
    expect(upstreamSeverity(upstreamOf({ endpoints, acceptedPerSecond: 1 }))).toBe('ok');
  });

  test('names the newest failure of several endpoints', () => {
    const endpoints = [
      { endpoint: 'a:443', healthy: true, failure: failureOf({ reason: 'status', text: 'responds with 503' }) },
      {
        endpoint: 'b:443',
        healthy: true,
        failure: failureOf({ reason: 'timeout', text: 'no response in time', at: after(1) }),
      },
    ];
    expect(headline({ endpoints, failedShare: 0.5 })).toBe(
      '50 % of attempts fail (no response in time), no limit detected, sending 0/s',
    );
    expect(headline({ state: 'blocked', blockedCause: 'errors', endpoints })).toBe('no response in time; probing now');
    expect(headline({ state: 'blocked', blockedCause: 'errors' })).toBe('failing; probing now');
  });

  test('shows cuts, waiting requests, 429s, pins and ejected endpoints', () => {
    expect(headline({ state: 'backoff', rate: 84, throttledPerSecond: 2.5, queued: 1200 })).toBe(
      'cut to 84/s, sending 0/s, 1\u202f200 waiting, 2.5/s of 429s from upstream',
    );
    expect(headline({ rate: 50, sentPerSecond: 49, queued: 14, throttledPerSecond: 1 })).toBe(
      'allowed 50/s, sending 49/s, 14 waiting, healthy',
    );
    expect(headline({ state: 'cooldown', rate: 84, until: after(4) })).toBe(
      'allowed 84/s, sending 0/s, growth resumes in 4 s, healthy',
    );
    expect(headline({ pinned: 50, rate: 50 })).toBe('pinned at 50/s by an operator, sending 0/s');
    const endpoints = [
      { endpoint: 'a:443', healthy: true, failure: null },
      { endpoint: 'b:443', healthy: false, failure: null },
    ];
    expect(headline({ endpoints })).toBe('no limit detected, sending 0/s, 1 of 2 endpoints ejected');
  });

  test('shows failures, refusals and a spent retry budget, and does not add "healthy" to them', () => {
    const busy = { rate: 50, sentPerSecond: 20 };
    expect(headline({ ...busy, failedShare: 1 })).toBe('every attempt fails, sending 20/s');
    expect(headline({ ...busy, failedShare: 0.45 })).toBe('45 % of attempts fail, allowed 50/s, sending 20/s');
    expect(headline({ ...busy, failedShare: 0.04 })).toBe('allowed 50/s, sending 20/s, healthy');
    expect(headline({ ...busy, refusedPerSecond: 16 })).toBe('allowed 50/s, sending 20/s, 16/s refused');
    expect(headline({ rate: null, sentPerSecond: 8, throttledPerSecond: 2, refusedPerSecond: 77 })).toBe(
      'no common limit detected, sending 8.0/s, 2.0/s of 429s from upstream, 77/s refused',
    );
    expect(headline({ ...busy, budgetSpent: true })).toBe('allowed 50/s, sending 20/s, retry budget spent');
  });

  test('is critical if half of the attempts fail, and a warning from 5 % on, for refusals and for a spent retry budget', () => {
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
    expect(stateSeverity(upstreamOf({ failedShare: 1 }))).toBe('critical');
    expect(stateSeverity(upstreamOf())).toBe('ok');
  });

  test('is neither "healthy" nor a warning before the first attempt', () => {
    const untried = { attempts: 0, failedShare: null };
    expect(headline(untried)).toBe('no limit detected, not tried yet');
    expect(upstreamSeverity(upstreamOf(untried))).toBe('muted');
    expect(stateSeverity(upstreamOf(untried))).toBe('muted');
    expect(headline({ ...untried, inFlight: 1 })).toBe('no limit detected, sending 0/s, healthy');
  });

  test('contains "healthy" only if its severity is ok', () => {
    const upstreams = (['open', 'backoff', 'cooldown', 'restoring', 'blocked'] as const).flatMap((state) =>
      [0, 3, 300].flatMap((queued) => [null, 10].map((pinned) => upstreamOf({ state, queued, pinned, rate: 10 }))),
    );
    const healthy = upstreams.filter((upstream) => formatHeadline(upstream, NOW).includes('healthy'));
    expect(healthy.length).toBeGreaterThan(0);
    expect(new Set(healthy.map(upstreamSeverity))).toEqual(new Set(['ok']));
    expect(upstreamSeverity(upstreamOf({ state: 'blocked' }))).toBe('critical');
  });
});

test('an endpoint is red when it is ejected or unreachable, with the reason', () => {
  const seen = (change: Partial<UpstreamStatus['endpoints'][number]>): readonly string[] => {
    const endpoint = { endpoint: 'a:443', healthy: true, failure: null, ...change };
    return [endpointSeverity(endpoint), formatEndpoint(endpoint)];
  };
  const refused = failureOf({ reason: 'connect', text: 'unreachable: connection refused' });
  expect(seen({})).toEqual(['ok', 'a:443']);
  expect(seen({ failure: refused })).toEqual(['critical', 'a:443 – unreachable: connection refused']);
  expect(seen({ healthy: false })).toEqual(['critical', 'a:443 – ejected']);
  expect(seen({ healthy: false, failure: refused })).toEqual([
    'critical',
    'a:443 – ejected, unreachable: connection refused',
  ]);
  expect(seen({ failure: failureOf({ reason: 'status', text: 'responds with 503' }) })).toEqual([
    'warning',
    'a:443 – responds with 503',
  ]);
});
