import { describe, expect, test } from 'vitest';
import { makeQuotaCounts, type QuotaCounts } from '../../../src/core/quota/calendar/quota-counts.ts';
import { DAY, HOUR, UTC_DAY } from '../../support/core/quota-builders.ts';

const PART = DAY / 120;
const ROLLING_DAY = { kind: 'rolling', length: DAY } as const;

function addMany(counts: QuotaCounts, count: number, at: number): void {
  for (let i = 0; i < count; i += 1) counts.add(at);
}

describe('the counts of a day', () => {
  test('begin anew at midnight, and not before', () => {
    const counts = makeQuotaCounts(UTC_DAY);
    addMany(counts, 3, 5 * HOUR);
    counts.advance(DAY - 1);
    expect([counts.used, counts.end, counts.belowAt(1)]).toEqual([3, DAY, DAY]);
    counts.advance(DAY);
    expect([counts.used, counts.end]).toEqual([0, 2 * DAY]);
  });

  test('remain when the wall clock is set back, into the same day or an earlier one', () => {
    const counts = makeQuotaCounts(UTC_DAY);
    addMany(counts, 3, DAY + 5 * HOUR);
    counts.advance(DAY + HOUR);
    expect(counts.used).toBe(3);
    counts.advance(DAY - HOUR);
    expect([counts.used, counts.end]).toEqual([3, DAY]);
    addMany(counts, 1, DAY - 1);
    counts.advance(DAY); // the day in which the three were counted, for a second time
    expect([counts.used, counts.end]).toEqual([4, 2 * DAY]);
    counts.advance(2 * DAY);
    expect(counts.used).toBe(0);
  });

  test('remain for the day in which they were counted, with days between, when the clock is set back for a while', () => {
    const counts = makeQuotaCounts(UTC_DAY);
    addMany(counts, 3, 5 * DAY);
    counts.advance(2 * DAY);
    addMany(counts, 4, 3 * DAY);
    expect(counts.used).toBe(4);
    counts.advance(5 * DAY);
    expect(counts.used).toBe(3);
    counts.advance(6 * DAY);
    expect(counts.used).toBe(0);
  });

  test('do not outlast a day that began later than the one in which they were counted', () => {
    const counts = makeQuotaCounts(UTC_DAY);
    addMany(counts, 3, 5 * DAY);
    counts.advance(4 * DAY);
    counts.advance(6 * DAY);
    expect(counts.used).toBe(0);
  });

  test('remain for the day in which they were counted after a start whose clock was behind', () => {
    const first = makeQuotaCounts(UTC_DAY);
    addMany(first, 3, 5 * DAY);
    let counts = first;
    // Its clock is two hours behind, it ends, and the clock is corrected while the next one runs.
    for (const time of [5 * DAY - 2 * HOUR, 5 * DAY - HOUR]) {
      const next = makeQuotaCounts(UTC_DAY);
      next.restore(counts.stored());
      next.add(time);
      counts = next;
    }
    expect(counts.used).toBe(5);
    counts.advance(5 * DAY);
    expect(counts.used).toBe(5);
  });

  test('give back a request of the same day only', () => {
    const counts = makeQuotaCounts(UTC_DAY);
    addMany(counts, 2, DAY + HOUR);
    expect([counts.remove(DAY + HOUR), counts.used]).toEqual([true, 1]);
    expect([counts.remove(DAY - HOUR), counts.used]).toEqual([false, 1]);
  });

  test('are restored within the day, and forgotten after it', () => {
    const first = makeQuotaCounts(UTC_DAY);
    addMany(first, 7, 5 * HOUR);
    const [sameDay, nextDay] = [makeQuotaCounts(UTC_DAY), makeQuotaCounts(UTC_DAY)];
    sameDay.restore(first.stored());
    sameDay.advance(20 * HOUR);
    nextDay.restore(first.stored());
    nextDay.advance(DAY + 1);
    expect([sameDay.used, nextDay.used]).toEqual([7, 0]);
  });
});

describe('the counts of the last 24 hours', () => {
  test('contain a request for 24 hours at least, and for at most one part more', () => {
    const counts = makeQuotaCounts(ROLLING_DAY);
    counts.add(PART + 5);
    counts.advance(PART + 5 + DAY);
    expect(counts.used).toBe(1);
    expect(counts.belowAt(1)).toBe(2 * PART + DAY);
    counts.advance(2 * PART + DAY);
    expect(counts.used).toBe(0);
  });

  test('never exceed what was sent in any 24 hours, and need no more than 122 parts', () => {
    const counts = makeQuotaCounts(ROLLING_DAY);
    const sent: number[] = [];
    for (let at = 0; at < 3 * DAY; at += 97_531) {
      counts.add(at);
      sent.push(at);
      const exact = sent.filter((each) => each > at - DAY).length;
      expect(counts.used).toBeGreaterThanOrEqual(exact);
      expect(counts.used).toBeLessThanOrEqual(exact + PART / 97_531 + 1);
    }
    expect(counts.stored().length).toBeLessThanOrEqual(122);
  });

  test('fall below a limit when enough of the oldest parts are forgotten', () => {
    const counts = makeQuotaCounts(ROLLING_DAY);
    addMany(counts, 2, 0);
    addMany(counts, 3, PART);
    addMany(counts, 4, 5 * PART);
    expect([8, 7, 5, 4].map((limit) => counts.belowAt(limit))).toEqual([
      PART + DAY, // 9 − 2 < 8
      2 * PART + DAY,
      2 * PART + DAY,
      6 * PART + DAY,
    ]);
  });

  test('last no longer than 24 hours from a step back of the wall clock', () => {
    const counts = makeQuotaCounts(ROLLING_DAY);
    addMany(counts, 5, 400 * DAY);
    counts.advance(10 * DAY);
    expect([counts.used, counts.belowAt(1)]).toEqual([5, 11 * DAY + PART]);
  });

  test('are restored with the age of each part', () => {
    const first = makeQuotaCounts(ROLLING_DAY);
    addMany(first, 2, 0);
    addMany(first, 3, 10 * PART);
    const second = makeQuotaCounts(ROLLING_DAY);
    second.restore(first.stored());
    second.advance(DAY + 5 * PART);
    expect([second.used, second.belowAt(1)]).toEqual([3, DAY + 11 * PART]);
  });
});
