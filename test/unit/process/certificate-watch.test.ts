import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { CertificateEvent } from '../../../src/core/events/certificate-events.ts';
import { CertificateWatch } from '../../../src/process/certificates/certificate-watch.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.parse('2026-01-01T00:00:00Z');

beforeEach(() => void vi.useFakeTimers({ now: START }));
afterEach(() => void vi.useRealTimers());

function begin(expiries: Map<string, number>) {
  const events: (readonly [after: number, status: CertificateEvent['status'], setting: string])[] = [];
  const watch = new CertificateWatch(
    () => [...expiries].map(([setting, expiresAt]) => ({ setting, expiresAt })),
    Date.now,
    (event) => {
      if (event.type === 'certificate') events.push([Date.now() - START, event.status, event.setting]);
    },
  );
  watch.start();
  return { watch, events };
}

test('reports a certificate a week, a day and an hour ahead, and at its expiry, also beyond the longest timer of Node', () => {
  const { events, watch } = begin(new Map([['listen.tls.cert', START + 26 * DAY + 1]]));
  vi.advanceTimersByTime(27 * DAY); // a timer of Node lasts 24.9 days at most
  expect(events.map(([, status]) => status)).toEqual(['expires', 'expires', 'expires', 'expired']);
  const times = events.map(([at]) => at);
  for (const [i, due] of [19 * DAY, 25 * DAY, 26 * DAY - HOUR].entries()) {
    expect(times[i]).toBeGreaterThanOrEqual(due);
    expect(times[i]).toBeLessThanOrEqual(due + 5001);
  }
  expect(times[3]).toBe(26 * DAY + 1);
  watch.stop();
  expect(vi.getTimerCount()).toBe(0);
});

test('reports each expired certificate once at the start, and a replacement within five seconds', () => {
  const expiries = new Map([
    ['listen.tls.cert', START - DAY],
    ['upstreams.api.tls.cert', START + 2 * DAY],
    ['state.tls.cert', START + 30 * DAY],
  ]);
  const { events, watch } = begin(expiries);
  vi.advanceTimersByTime(60_000);
  expect(events).toEqual([
    [0, 'expired', 'listen.tls.cert'],
    [0, 'expires', 'upstreams.api.tls.cert'],
  ]);
  expiries.set('listen.tls.cert', START + 90 * DAY);
  vi.advanceTimersByTime(5000);
  expect(events.slice(2)).toEqual([[65_000, 'renewed', 'listen.tls.cert']]);
  watch.stop();
});

test('reports a certificate again if it is removed and added, and none that is valid for more than a week', () => {
  const expiries = new Map([['listen.tls.cert', START + 8 * DAY]]);
  const { events, watch } = begin(expiries);
  expect(events).toEqual([]);
  expiries.set('upstreams.api.tls.cert', START);
  vi.advanceTimersByTime(5000);
  expiries.delete('upstreams.api.tls.cert');
  vi.advanceTimersByTime(5000);
  expiries.set('upstreams.api.tls.cert', START);
  vi.advanceTimersByTime(5000);
  expect(events.map(([, status]) => status)).toEqual(['expired', 'expired']);
  watch.stop();
});
