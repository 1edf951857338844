import { expect, test } from 'vitest';
import type { CounterWindow } from '../../../src/admin/operations/counter-rates.ts';
import { FailedShares } from '../../../src/admin/operations/counter-rates.ts';
import type { RequestCounts, UpstreamCounts } from '../../../src/telemetry/metrics/request-counts.ts';
import { ZERO_REQUEST_COUNTS, ZERO_UPSTREAM_COUNTS } from '../../../src/telemetry/metrics/request-counts.ts';

function countsOf(change: Partial<UpstreamCounts>): RequestCounts {
  return { ...ZERO_REQUEST_COUNTS, upstreams: new Map([['payments', { ...ZERO_UPSTREAM_COUNTS, ...change }]]) };
}

function windowOf(longBefore: Partial<UpstreamCounts>, after: Partial<UpstreamCounts>): CounterWindow {
  const [from, to] = [countsOf(longBefore), countsOf(after)];
  return { seconds: 1, before: from, after: to, longSeconds: 1, longBefore: from };
}

test('the share of failed attempts covers the window, not the time before it', () => {
  const shares = new FailedShares();
  expect(shares.update('payments', windowOf({ sent: 100, failed: 0 }, { sent: 120, failed: 5 }))).toBe(0.25);
  expect(shares.update('payments', windowOf({ sent: 120, failed: 5 }, { sent: 140, failed: 5 }))).toBe(0);
});

test('an idle upstream keeps the share of its last busy window, or before one the share since the start', () => {
  const shares = new FailedShares();
  expect(shares.update('payments', windowOf({}, {}))).toBeUndefined();
  const idle = { sent: 8, failed: 2 };
  expect(shares.update('payments', windowOf(idle, idle))).toBe(0.25);
  expect(shares.update('payments', windowOf(idle, { sent: 10, failed: 4 }))).toBe(1);
  expect(shares.update('payments', windowOf({ sent: 10, failed: 4 }, { sent: 10, failed: 4 }))).toBe(1);
  expect(shares.update('ledger', windowOf(idle, idle))).toBeUndefined();
});
