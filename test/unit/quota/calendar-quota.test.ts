import { describe, expect, test } from 'vitest';
import { CalendarQuota, type Instant } from '../../../src/core/quota/calendar/calendar-quota.ts';
import { UpstreamQuotas } from '../../../src/core/quota/calendar/upstream-quotas.ts';
import { DAY, HOUR, MemoryJournal, quotaSettings, UTC_HOUR } from '../../support/core/quota-builders.ts';

/** Both clocks show the same. */
function at(time: number): Instant {
  return { now: time, at: time };
}

function send(quota: CalendarQuota, count: number, time: number): void {
  for (let i = 0; i < count; i += 1) quota.onSent(at(time));
}

describe('a quota', () => {
  test('admits its limit in a day, and nothing more until midnight', () => {
    const quota = new CalendarQuota('up', quotaSettings({ limit: 3 }));
    send(quota, 2, HOUR);
    expect(quota.delay(false, at(HOUR))).toBe(0);
    quota.reserve(false, HOUR, at(HOUR));
    expect(quota.delay(false, at(HOUR))).toBe(DAY - HOUR);
    quota.release();
    send(quota, 1, HOUR);
    expect(quota.delay(false, at(DAY - 1))).toBe(1);
    expect(quota.delay(false, at(DAY))).toBe(0);
  });

  test('admits nothing more in a rolling period while what is left is reserved, sent or not', () => {
    const quota = new CalendarQuota('up', quotaSettings({ limit: 2, period: { kind: 'rolling', length: HOUR } }));
    quota.reserve(false, 0, at(0));
    expect(quota.delay(false, at(0))).toBe(0);
    quota.reserve(false, 0, at(0));
    expect(quota.delay(false, at(0))).toBe(HOUR);
    quota.release();
    send(quota, 1, 0);
    expect(quota.delay(false, at(0))).toBe(HOUR + HOUR / 120);
    quota.release();
    expect(quota.delay(false, at(0))).toBe(0);
  });

  test('gives back what was not sent', () => {
    const quota = new CalendarQuota('up', quotaSettings({ limit: 1 }));
    send(quota, 1, HOUR);
    expect(quota.delay(false, at(HOUR))).toBeGreaterThan(0);
    quota.giveBack(at(HOUR));
    expect(quota.delay(false, at(HOUR))).toBe(0);
  });

  test('leaves its reserve to requests with priority', () => {
    const quota = new CalendarQuota('up', quotaSettings({ limit: 10, reserve: 2 }));
    send(quota, 8, 0);
    expect([quota.untilReset(false, at(0)), quota.untilReset(true, at(0))]).toEqual([DAY, 0]);
    send(quota, 2, 0);
    expect(quota.untilReset(true, at(0))).toBe(DAY);
  });

  test('spreads what is left over the rest of the day', () => {
    const quota = new CalendarQuota('up', quotaSettings({ limit: 24, pace: 'even' }));
    expect(quota.rate(false, at(0))).toBeCloseTo(24_000 / DAY, 12);
    quota.reserve(false, 0, at(0));
    quota.release();
    send(quota, 1, 0);
    // 23 of them are left for 24 hours.
    expect(quota.delay(false, at(0))).toBeCloseTo(DAY / 23, 6);
    // After 12 idle hours, the same 23 are spread over 12 hours.
    expect(quota.delay(false, at(12 * HOUR))).toBe(0);
    expect(quota.rate(false, at(12 * HOUR))).toBeCloseTo(23_000 / (12 * HOUR), 12);
  });

  test('forecasts when it will be used up from the recent rate', () => {
    const quota = new CalendarQuota('up', quotaSettings({ limit: 10_000 }));
    const view = (time: number) => quota.view(at(time));
    expect(view(0)).toMatchObject({ limit: 10_000, remaining: 10_000, resetAt: DAY, exhaustedAt: Infinity });
    for (let time = 0; time < 6 * HOUR; time += 10_800) send(quota, 5, time); // 10 000 in six hours
    expect(view(3 * HOUR).remaining).toBe(0);
    const half = new CalendarQuota('up', quotaSettings({ limit: 20_000 }));
    for (let time = 0; time < 6 * HOUR; time += 10_800) send(half, 5, time);
    expect(half.view(at(6 * HOUR)).exhaustedAt / HOUR).toBeCloseTo(12, 1);
    const enough = new CalendarQuota('up', quotaSettings({ limit: 41_000 }));
    for (let time = 0; time < 6 * HOUR; time += 10_800) send(enough, 5, time);
    expect(enough.view(at(6 * HOUR)).exhaustedAt).toBe(Infinity);
  });

  test('counts as used up when only its reserve is left', () => {
    const quota = new CalendarQuota('up', quotaSettings({ limit: 10, reserve: 4 }));
    send(quota, 6, HOUR);
    expect(quota.view(at(2 * HOUR))).toMatchObject({ remaining: 4, exhaustedAt: HOUR });
  });

  test('keeps the time at which it was used up', () => {
    const quota = new CalendarQuota('up', quotaSettings({ limit: 2 }));
    send(quota, 1, HOUR);
    send(quota, 5, 2 * HOUR); // observe mode sends more than the limit
    expect(quota.view(at(9 * HOUR))).toMatchObject({ remaining: 0, exhaustedAt: 2 * HOUR });
    expect(quota.view(at(DAY))).toMatchObject({ remaining: 2, exhaustedAt: Infinity });
  });
});

describe('the journal of a quota', () => {
  test('shows the first look at a restored quota as the time at which it was used up', () => {
    const journal = new MemoryJournal();
    send(new CalendarQuota('up', quotaSettings(), journal), 10, HOUR);
    const quota = new CalendarQuota('up', quotaSettings(), journal);
    expect([2 * HOUR, 3 * HOUR].map((time) => quota.view(at(time)).exhaustedAt)).toEqual([2 * HOUR, 2 * HOUR]);
  });

  test('never contains fewer requests than were sent, and at most 0.1 % more', () => {
    const journal = new MemoryJournal();
    const quota = new CalendarQuota('up', quotaSettings({ limit: 10_000 }), journal);
    for (let sent = 1; sent <= 5000; sent += 1) {
      quota.onSent(at(sent));
      const [[, stored] = [0, 0]] = journal.load('up', 'day')?.counts ?? [];
      expect(stored).toBeGreaterThanOrEqual(sent);
      expect(stored).toBeLessThanOrEqual(sent + 9);
    }
    expect(journal.writes).toBe(500);
  });

  test('contains the exact number after a clean end, also of an evening that gave some back', () => {
    const journal = new MemoryJournal();
    const quota = new CalendarQuota('up', quotaSettings({ limit: 10_000 }), journal);
    send(quota, 15, HOUR);
    quota.giveBack(at(HOUR));
    journal.close();
    expect(journal.load('up', 'day')?.counts).toEqual([[0, 14]]);
    const next = new CalendarQuota('up', quotaSettings({ limit: 10_000 }), journal);
    expect(next.view(at(2 * HOUR)).remaining).toBe(10_000 - 14);
  });

  test('is written at most about once a second at the pace of a short period', () => {
    const journal = new MemoryJournal();
    const quota = new CalendarQuota('up', quotaSettings({ limit: 36_000, period: UTC_HOUR }), journal);
    send(quota, 100, 0); // 10 a second is an even pace, 0.1 % is 36
    expect(journal.writes).toBe(3);
  });

  test('does not count requests of another period or time zone', () => {
    const journal = new MemoryJournal();
    const quota = new CalendarQuota('up', quotaSettings(), journal);
    send(quota, 10, HOUR);
    journal.close();
    const hourly = new CalendarQuota('up', quotaSettings({ period: UTC_HOUR }), journal);
    expect(hourly.view(at(HOUR)).remaining).toBe(10);
  });
});

describe('the quotas of an upstream', () => {
  const wallTimeAt = (now: number): number => now + 5 * DAY;
  const anybody = { classWeight: 1 };

  test('admit a request when each of them does', () => {
    const hourly = quotaSettings({ name: 'hour', limit: 1, period: UTC_HOUR });
    const quotas = new UpstreamQuotas('up', [quotaSettings({ limit: 2 }), hourly], { wallTimeAt });
    quotas.onSent(0);
    expect(quotas.findSpent(anybody, 0)).toEqual({
      name: 'hour',
      limit: 1,
      hasReserveLeft: false,
      untilReset: HOUR,
      resetAt: 5 * DAY + HOUR,
    });
    quotas.onSent(HOUR);
    expect(quotas.findSpent(anybody, HOUR)).toMatchObject({ name: 'day', untilReset: DAY - HOUR });
  });

  test('keep their counts when only the limit changes, and start anew with another period', () => {
    const quotas = new UpstreamQuotas('up', [quotaSettings({ limit: 2 })], { wallTimeAt });
    quotas.onSent(0);
    quotas.reconfigure([quotaSettings({ limit: 5 })]);
    expect(quotas.views(0)[0]?.remaining).toBe(4);
    quotas.reconfigure([quotaSettings({ limit: 5, period: { kind: 'rolling', length: DAY } })]);
    expect(quotas.views(0)[0]?.remaining).toBe(5);
  });

  test('store the counts of a new period when a reload changes the period of a name', () => {
    const journal = new MemoryJournal();
    const quotas = new UpstreamQuotas('up', [quotaSettings()], { wallTimeAt, journal });
    quotas.onSent(0);
    quotas.reconfigure([quotaSettings({ period: UTC_HOUR })]);
    quotas.onSent(0);
    journal.close();
    expect(journal.stored.get('up day')).toEqual({ period: 'hour UTC', counts: [[5 * DAY, 1]] });
  });

  test('release what a request reserved before a reload added another quota', () => {
    const quotas = new UpstreamQuotas('up', [quotaSettings()], { wallTimeAt });
    const reserved = quotas.reserve(anybody, 0, 0);
    quotas.reconfigure([quotaSettings(), quotaSettings({ name: 'hour', limit: 1, period: UTC_HOUR })]);
    for (const quota of reserved) quota.release();
    quotas.reserve(anybody, 0, 0);
    expect(quotas.untilReset(anybody, 0)).toBe(HOUR);
  });
});
