import { describe, expect, test } from 'vitest';
import { calendarWindow } from '../../../src/core/quota/calendar/calendar-window.ts';
import type { CalendarUnit } from '../../../src/core/quota/calendar/quota-period.ts';
import { zoneOffset } from '../../../src/config/values/time-zone.ts';

/** The window of `unit` that contains `at`, as ISO times. */
function windowOf(unit: CalendarUnit, timeZone: string, at: string): string[] {
  const { start, end } = calendarWindow(unit, Date.parse(at), zoneOffset(timeZone));
  return [start, end].map((time) => new Date(time).toISOString().replace('.000Z', 'Z'));
}

describe('a window of the calendar', () => {
  test.each<[CalendarUnit, string, string, string, string]>([
    ['hour', 'UTC', '2026-03-01T10:59:59.999Z', '2026-03-01T10:00:00Z', '2026-03-01T11:00:00Z'],
    ['hour', 'Asia/Kolkata', '2026-03-01T10:10:00Z', '2026-03-01T09:30:00Z', '2026-03-01T10:30:00Z'],
    ['day', 'UTC', '2026-03-01T00:00:00Z', '2026-03-01T00:00:00Z', '2026-03-02T00:00:00Z'],
    ['day', 'America/Los_Angeles', '2026-01-15T07:59:59Z', '2026-01-14T08:00:00Z', '2026-01-15T08:00:00Z'],
    ['day', 'Asia/Tokyo', '2026-01-15T15:00:00Z', '2026-01-15T15:00:00Z', '2026-01-16T15:00:00Z'],
    ['day', 'Pacific/Kiritimati', '2026-01-15T09:59:59Z', '2026-01-14T10:00:00Z', '2026-01-15T10:00:00Z'],
    ['week', 'UTC', '2026-11-29T23:59:59Z', '2026-11-23T00:00:00Z', '2026-11-30T00:00:00Z'],
    ['week', 'UTC', '2026-11-30T00:00:00Z', '2026-11-30T00:00:00Z', '2026-12-07T00:00:00Z'],
    ['week', 'America/New_York', '2026-11-30T04:59:59Z', '2026-11-23T05:00:00Z', '2026-11-30T05:00:00Z'],
    ['week', 'UTC', '1969-12-31T12:00:00Z', '1969-12-29T00:00:00Z', '1970-01-05T00:00:00Z'],
    ['month', 'UTC', '2028-02-29T12:00:00Z', '2028-02-01T00:00:00Z', '2028-03-01T00:00:00Z'],
    ['month', 'Europe/Berlin', '2026-12-31T23:00:00Z', '2026-12-31T23:00:00Z', '2027-01-31T23:00:00Z'],
  ])('of a %s in %s that contains %s begins at %s and ends at %s', (unit, timeZone, at, start, end) => {
    expect(windowOf(unit, timeZone, at)).toEqual([start, end]);
  });

  test.each<[string, CalendarUnit, string, string, string, string]>([
    // Spring forward at 02:00: a day of 23 hours.
    [
      'begins daylight-saving time',
      'day',
      'America/Los_Angeles',
      '2026-03-08T20:00:00Z',
      '2026-03-08T08:00:00Z',
      '2026-03-09T07:00:00Z',
    ],
    // Fall back at 02:00: a day of 25 hours.
    [
      'ends daylight-saving time',
      'day',
      'America/Los_Angeles',
      '2026-11-01T20:00:00Z',
      '2026-11-01T07:00:00Z',
      '2026-11-02T08:00:00Z',
    ],
    [
      'ends daylight-saving time',
      'week',
      'Europe/Berlin',
      '2026-10-25T12:00:00Z',
      '2026-10-18T22:00:00Z',
      '2026-10-25T23:00:00Z',
    ],
    [
      'begins daylight-saving time',
      'month',
      'Europe/Berlin',
      '2026-03-15T12:00:00Z',
      '2026-02-28T23:00:00Z',
      '2026-03-31T22:00:00Z',
    ],
    // Beirut changes at midnight: 00:00 to 01:00 do not exist on 2026-03-29.
    ['has no midnight', 'day', 'Asia/Beirut', '2026-03-29T12:00:00Z', '2026-03-28T22:00:00Z', '2026-03-29T21:00:00Z'],
    // Havana goes from 01:00 back to 00:00: the day begins at the first of two midnights.
    [
      'has two midnights',
      'day',
      'America/Havana',
      '2026-11-01T12:00:00Z',
      '2026-11-01T04:00:00Z',
      '2026-11-02T05:00:00Z',
    ],
    // Samoa skipped 2011-12-30.
    ['was skipped', 'day', 'Pacific/Apia', '2011-12-30T10:00:00Z', '2011-12-30T10:00:00Z', '2011-12-31T10:00:00Z'],
    // Lord Howe Island shifts by half an hour.
    [
      'shifts by half an hour',
      'day',
      'Australia/Lord_Howe',
      '2026-04-05T00:00:00Z',
      '2026-04-04T13:00:00Z',
      '2026-04-05T13:30:00Z',
    ],
  ])('of a period that %s, a %s in %s, contains %s and is from %s to %s', (_, unit, timeZone, at, start, end) => {
    expect(windowOf(unit, timeZone, at)).toEqual([start, end]);
  });

  test('follows the one before it without a gap or an overlap through two years of changes', () => {
    for (const timeZone of [
      'America/Los_Angeles',
      'Asia/Beirut',
      'America/Havana',
      'Australia/Lord_Howe',
      'Europe/London',
    ]) {
      const offsetAt = zoneOffset(timeZone);
      for (const unit of ['day', 'week', 'month'] as const) {
        let { start, end } = calendarWindow(unit, Date.UTC(2025, 0, 1), offsetAt);
        while (end < Date.UTC(2027, 0, 1)) {
          const next = calendarWindow(unit, end, offsetAt);
          expect([timeZone, unit, next.start]).toEqual([timeZone, unit, end]);
          expect(calendarWindow(unit, next.end - 1, offsetAt)).toEqual(next);
          expect(start).toBeLessThan(end);
          ({ start, end } = next);
        }
      }
    }
  });
});
