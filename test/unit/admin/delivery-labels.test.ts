import { describe, expect, test } from 'vitest';
import type { DeliveryRow } from '../../../src/admin/page/api-types.ts';
import {
  deliverySeverity,
  describeDelivery,
  describeStored,
  formatBytes,
  formatLastResult,
  formatNextOrEnd,
} from '../../../src/admin/page/text/delivery-labels.js';
import { deliveryOf, NO_DELIVERIES } from '../../support/admin/status-builders.ts';

const NOW = Date.parse('2026-11-22T03:00:00.000Z');

/** The time this many seconds from now. */
function after(seconds: number): string {
  return new Date(NOW + seconds * 1000).toISOString();
}

test.each([
  [{ state: 'waiting' }, 'muted', 'Attempt 1 is due.'],
  [{ state: 'waiting', attempts: 2, nextAttemptAt: after(65) }, 'warning', 'Attempt 3 begins in 1 min 05 s.'],
  [
    { state: 'waiting', nextAttemptAt: after(-5), orderKey: 'order' },
    'muted',
    'Attempt 1 is due. Earlier deliveries with its order key are sent first.',
  ],
  [{ state: 'sending', attempts: 1 }, 'warning', 'Attempt 2 is in progress.'],
  [
    { state: 'delivered', attempts: 1, endedAt: after(12) },
    'ok',
    'Delivered 12 s after it was accepted, with 1 attempt.',
  ],
  [
    { state: 'dead', attempts: 9, endedAt: after(0) },
    'critical',
    'Dead after 9 attempts: no more are made, unless it is retried.',
  ],
  [
    { state: 'unknown', attempts: 1, endedAt: after(0) },
    'critical',
    'Unknown after 1 attempt: it may have taken effect. Look it up at the upstream.',
  ],
  [{ state: 'canceled', attempts: 0, endedAt: after(0) }, 'muted', 'Canceled by an operator after 0 attempts.'],
] satisfies readonly (readonly [Partial<DeliveryRow>, string, string])[])(
  'describes a delivery in a sentence: %j',
  (change, severity, text) => {
    const delivery = deliveryOf(change);
    expect([deliverySeverity(delivery), describeDelivery(delivery, NOW)]).toEqual([severity, text]);
  },
);

test('gives the time of the next attempt, of the present one, or of the end', () => {
  const format = (change: Partial<DeliveryRow>) => formatNextOrEnd(deliveryOf(change), NOW);
  expect(format({ nextAttemptAt: after(3) })).toEqual({ time: after(3), text: 'in 3 s' });
  expect(format({ nextAttemptAt: after(-3) })).toEqual({ time: after(-3), text: 'due' });
  const clock = expect.stringMatching(/\d\d:\d\d:\d\d$/) as string;
  expect(format({ state: 'sending', sendingSince: after(0) })).toEqual({ time: after(0), text: clock });
  expect(format({ state: 'dead', endedAt: after(0) })).toEqual({ time: after(0), text: clock });
});

describe('the last result', () => {
  test.each([
    [503, 'status_503', '503'],
    [200, 'not_acknowledged', '200 not_acknowledged'],
    [200, null, '200'],
    [null, 'connect', 'connect'],
    [null, null, 'no response'],
  ])('of a status %j and a reason %j is %s', (status, reason, text) => {
    const lastAttempt = { at: after(0), tookSeconds: 1, status, reason };
    expect(formatLastResult(deliveryOf({ lastAttempt }))).toBe(text);
  });

  test('is a dash before the first attempt', () => {
    expect(formatLastResult(deliveryOf())).toBe('–');
  });
});

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [20 * 1024 ** 2, '20 MiB'],
  [3 * 1024 ** 4, '3.0 TiB'],
  [5000 * 1024 ** 4, '5000 TiB'],
])('formats %d bytes as %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test('describes what is stored, and how long the oldest one has waited', () => {
  const counts = { ...NO_DELIVERIES.counts, waiting: 1200, dead: 1 };
  expect(describeStored({ counts, bytes: 2048, oldestAt: after(-61) }, NOW)).toEqual([
    ['waiting', '1\u202f200'],
    ['sending', '0'],
    ['delivered', '0'],
    ['dead', '1'],
    ['canceled', '0'],
    ['unknown', '0'],
    ['messages', '2.0 KiB'],
    ['oldest waits for', '1 min 01 s'],
  ]);
  expect(describeStored(NO_DELIVERIES, NOW).at(-1)).toEqual(['oldest waits for', '–']);
});
