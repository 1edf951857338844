/** Points in time, in the forms of HTTP-date and of RFC 3339. */
import { describe, expect, test } from 'vitest';
import { parseHttpDate, parseTimestamp } from '../../../src/core/hints/http-date.ts';

const NOW = Date.parse('2026-11-21T11:26:30Z');
const TIME = Date.parse('2026-11-21T11:26:45Z');
const HALF_CENTURY = 50 * 365.2425 * 86_400_000;
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

describe('an HTTP-date', () => {
  test('has three forms in RFC 9110, which denote the same moment', () => {
    const moment = Date.UTC(1994, 10, 6, 8, 49, 37);
    expect(parseHttpDate('Sun, 06 Nov 1994 08:49:37 GMT', NOW)).toBe(moment);
    expect(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT', NOW)).toBe(moment);
    expect(parseHttpDate('Sun Nov  6 08:49:37 1994', NOW)).toBe(moment);
  });

  test.each(WEEKDAYS)('may be on any day of the week: %s', (day) => {
    const name = { Tue: 'Tues', Wed: 'Wednes', Thu: 'Thurs', Sat: 'Satur' }[day] ?? day;
    expect([
      parseHttpDate(`${day}, 21 Nov 2026 11:26:45 GMT`, NOW),
      parseHttpDate(`${name}day, 21-Nov-26 11:26:45 GMT`, NOW),
      parseHttpDate(`${day} Nov 21 11:26:45 2026`, NOW),
    ]).toEqual([TIME, TIME, TIME]);
  });

  test.each([
    ...['21 Nov 2026 11:26:45 GMT', 'xSat, 21 Nov 2026 11:26:45 GMT', 'Sat, 21 Nov 2026 11:26:45 GMTx'],
    ...['sat, 21 Nov 2026 11:26:45 GMT', 'Sat, 21 nov 2026 11:26:45 GMT', 'Sat, 21 Nove 2026 11:26:45 GMT'],
    ...['Sat, 1 Nov 2026 11:26:45 GMT', 'Sat, 21 Nov 26 11:26:45 GMT', 'Sat, 21 Nov 2026 1:26:45 GMT'],
    ...['Sat, 21 Nov 2026 11:26:45 CET', '2026-11-21T11:26:45Z', ''],
    ...['Sat, 21 Nov 2026 11:26 GMT', 'Sat, 21 Nov 2026 11:26:45', 'Sat, 21 Foo 2026 11:26:45 GMT'],
    ...['xSaturday, 21-Nov-26 11:26:45 GMT', 'Saturday, 21-Nov-26 11:26:45 GMTx', 'Sat, 21-Nov-26 11:26:45 GMT'],
    ...['Saturday, 21-Nov-2026 11:26:45 GMT', 'Saturday, 21-Foo-26 11:26:45 GMT'],
    ...['xSat Nov 21 11:26:45 2026', 'Sat Nov 21 11:26:45 2026x', 'Sat Nov 6 11:26:45 2026'],
    ...['Sat Foo 21 11:26:45 2026', 'Sat Nov x1 11:26:45 2026'],
  ])('is invalid as %j', (value) => {
    expect(parseHttpDate(value, NOW)).toBeUndefined();
  });

  test.each<[string, boolean]>([
    ['00:00:00', true],
    ['23:59:59', true],
    ['23:59:60', true],
    ['24:00:00', false],
    ['23:60:00', false],
    ['23:59:61', false],
  ])('is valid at %s: %j', (time, isValid) => {
    expect(parseHttpDate(`Sat, 21 Nov 2026 ${time} GMT`, NOW) !== undefined).toBe(isValid);
  });

  test.each([1600, 1700, 1900, 1970, 2000, 2024, 2026, 2100, 2400])(
    'is at the first or last day of each month, and no day before or after it, in %i',
    (year) => {
      for (const [month, name] of MONTHS.entries()) {
        const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
        const read = [0, 1, last, last + 1].map((day) =>
          parseHttpDate(`Sat, ${String(day).padStart(2, '0')} ${name} ${year} 00:00:00 GMT`, NOW),
        );
        expect(read).toEqual([undefined, Date.UTC(year, month, 1), Date.UTC(year, month, last), undefined]);
      }
    },
  );

  test.each<[now: string, year: string, full: number]>([
    ['1994-06-01', '94', 1994],
    ['1994-06-01', '00', 1900],
    ['2000-01-02', '00', 2000],
    ['2026-11-21', '99', 1999],
    ['2026-11-21', '76', 2076],
    ['2026-11-21', '77', 1977],
    ['2110-06-01', '05', 2105],
    ['2110-06-01', '95', 2095],
  ])('at %s with the year %s is of %i', (today, year, full) => {
    expect(parseHttpDate(`Saturday, 01-Jan-${year} 00:00:00 GMT`, Date.parse(today))).toBe(Date.UTC(full, 0, 1));
  });

  test('with a year of two digits is at most 50 years ahead', () => {
    const date = Date.UTC(2076, 10, 20);
    const read = (now: number) => parseHttpDate('Friday, 20-Nov-76 00:00:00 GMT', now);
    expect([read(date - HALF_CENTURY), read(date - HALF_CENTURY - 1)]).toEqual([date, Date.UTC(1976, 10, 20)]);
  });

  test('is read with an invalid clock, except for a year of two digits', () => {
    expect(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT', Number.NaN)).toBeUndefined();
    expect(parseHttpDate('Sun, 06 Nov 1994 08:49:37 GMT', Number.NaN)).toBe(Date.UTC(1994, 10, 6, 8, 49, 37));
  });

  test('may be a leap second, which is the first of the next minute', () => {
    expect(parseHttpDate('Sat, 31 Dec 2016 23:59:60 GMT', NOW)).toBe(Date.UTC(2017, 0, 1));
  });
});

describe('a timestamp', () => {
  test.each<[string, string]>([
    ['2026-11-21T11:26:45Z', '2026-11-21T11:26:45.000Z'],
    ['2026-11-21t11:26:45z', '2026-11-21T11:26:45.000Z'],
    ['2026-11-21 11:26:45', '2026-11-21T11:26:45.000Z'],
    ['2026-11-21T11:26', '2026-11-21T11:26:00.000Z'],
    ['2026-11-21T11:26:45UTC', '2026-11-21T11:26:45.000Z'],
    ['2026-11-21T11:26:45 UTC', '2026-11-21T11:26:45.000Z'],
    ['2026-11-21T11:26:45GMT', '2026-11-21T11:26:45.000Z'],
    ['2026-11-21T11:26:45 GMT', '2026-11-21T11:26:45.000Z'],
    ['2026-11-21T11:26:45.5Z', '2026-11-21T11:26:45.500Z'],
    ['2026-11-21T11:26:45.0625Z', '2026-11-21T11:26:45.063Z'],
    ['2026-11-21T11:26:45.999999999Z', '2026-11-21T11:26:46.000Z'],
    ['2026-11-21T11:26:45+01:30', '2026-11-21T09:56:45.000Z'],
    ['2026-11-21T11:26:45-01:30', '2026-11-21T12:56:45.000Z'],
    ['2026-11-21T11:26:45 +0130', '2026-11-21T09:56:45.000Z'],
    ['2026-11-21T11:26:45.25 -0000', '2026-11-21T11:26:45.250Z'],
    ['2026-11-21T11:26-02:00', '2026-11-21T13:26:00.000Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
    ['0000-01-01T00:00Z', '0000-01-01T00:00:00.000Z'],
    ['0000-03-01T00:00Z', '0000-03-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
  ])('of %s is %s', (value, time) => {
    expect(parseTimestamp(value)).toBe(Date.parse(time));
  });

  test.each([
    ...['', 'x2026-11-21T11:26:45Z', '2026-11-21T11:26:45Zx', '2026-11-21', '2026-11-21T11', '26-11-21T11:26:45Z'],
    ...['2026-1-21T11:26:45Z', '2026-11-1T11:26:45Z', '2026-11-21X11:26:45Z', '2026-11-21T11:26.5Z'],
    ...['2026-11-21T11:26:45.Z', '2026-11-21T11:26:45.1234567890Z', '2026-11-21T11:26:45CET', '2026-11-21T11:26:45+1'],
    ...['2026-00-21T11:26:45Z', '2026-13-21T11:26:45Z', '2026-02-30T11:26:45Z', '2026-11-21T24:00:00Z'],
    ...['2026-11-21T11:26:45  UTC', '2026-11-21T11:26:45  +01:00'],
  ])('is invalid as %j', (value) => {
    expect(parseTimestamp(value)).toBeUndefined();
  });
});
