/** Delays and resets, in the forms in which upstreams state them. */
import { describe, expect, test } from 'vitest';
import { parseDelay, parseReset } from '../../../src/core/hints/parse-delay.ts';

const NOW = Date.parse('2026-11-21T11:26:00Z');
const now = () => NOW;

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;

describe('a delay', () => {
  test.each<[string, number]>([
    ['7', 7000],
    [' 1.5\t', 1500],
    ['2d', 2 * DAY],
    ['2 day', 2 * DAY],
    ['2 days', 2 * DAY],
    ['3h', 3 * HOUR],
    ['3 hr', 3 * HOUR],
    ['3 hrs', 3 * HOUR],
    ['3 hour', 3 * HOUR],
    ['3 hours', 3 * HOUR],
    ['4m', 4 * MINUTE],
    ['4 min', 4 * MINUTE],
    ['4 mins', 4 * MINUTE],
    ['4 minute', 4 * MINUTE],
    ['4 minutes', 4 * MINUTE],
    ['5s', 5000],
    ['5 sec', 5000],
    ['5 secs', 5000],
    ['5 second', 5000],
    ['5 seconds', 5000],
    ['6ms', 6],
    ['7us', 0.007],
    ['7\u00B5s', 0.007],
    // Go reads the Greek letter too.
    ['7\u03BCs', 0.007],
    ['8ns', 0.000008],
    ['1.5h', 90 * MINUTE],
    ['1D2H3M4S5MS', DAY + 2 * HOUR + 3 * MINUTE + 4005],
    ['\t1 Day\t2 Hours 3  minutes ', DAY + 2 * HOUR + 3 * MINUTE],
    ['0s', 0],
    ['Sat, 21 Nov 2026 11:26:07 GMT', 7000],
    ['2026-11-21T11:26:07Z', 7000],
    ['2026-11-21T11:25:53Z', -7000],
  ])('of %j is %d ms', (value, delay) => {
    expect(parseDelay(value, now)).toBe(delay);
  });

  test.each([
    ...['', 's', '5x', '5 sx', '5 parsecs', '5s6', '5 5', 'in 5s', '.5s', '5.s', '-5s', '5,5s', '5s,', '5s x'],
    ...['5 da', '5 dayss', '5 hs', '5 ours', '5 hays', '5 ms ec', '5 mours', '5 sin', '5 minut', '5 seco', '5 dmin'],
    ...['2026-02-30T00:00:00Z', 'Sat, 31 Nov 2026 00:00:00 GMT'],
  ])('of %j is unknown', (value) => {
    expect(parseDelay(value, now)).toBeUndefined();
  });
});

describe('a reset', () => {
  test.each<[string, number]>([
    ['30', 30_000],
    ['30s', 30_000],
    ['2026-11-21T11:27Z', MINUTE],
    ['999999999.5', 999_999_999_500],
    ['1000000000', 1e12],
    ['1000000001', 1_000_000_001_000 - NOW],
    ['1795260420', 60_000],
    ['1000000000000', 1e15 - NOW],
    ['1000000000001', 1_000_000_000_001 - NOW],
    ['1795260420000', 60_000],
    ['100000000000000', 1e14 - NOW],
    ['100000000001000', 100_000_000_001 - NOW],
    ['1795260420000000', 60_000],
    ['100000000000000000', 1e14 - NOW],
    ['100000000001000000', 100_000_000_001 - NOW],
    ['1795260420000000000', 60_000],
  ])('of %s is %d ms away', (value, delay) => {
    expect(parseReset(value, now)).toBe(delay);
  });

  test.each(['', 'soon', '-1'])('of %j is unknown', (value) => {
    expect(parseReset(value, now)).toBeUndefined();
  });
});
