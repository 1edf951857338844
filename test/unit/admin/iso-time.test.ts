import { expect, test } from 'vitest';
import { toIsoTime } from '../../../src/admin/operations/admin-rows.ts';

test('a time is shown as ISO 8601 if a date can have it, and otherwise not at all', () => {
  const clock = { now: 0, origin: 1_800_000_000_000 };
  expect(toIsoTime(500, clock)).toBe('2027-01-15T08:00:00.500Z');
  const impossible = [undefined, Number.NaN, Number.POSITIVE_INFINITY, -1e300, 1e300, 8.64e15];
  expect(impossible.map((at) => toIsoTime(at, clock))).toEqual(impossible.map(() => null));
});
