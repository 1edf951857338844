import type { Millis } from '../../scalars.ts';
import type { CalendarUnit, EpochMillis, ZoneOffset } from './quota-period.ts';

/** A half-open interval of time: `end` belongs to the next window. */
export interface QuotaWindow {
  readonly start: EpochMillis;
  readonly end: EpochMillis;
}

const HOUR: Millis = 3_600_000;
const DAY: Millis = 24 * HOUR;
/** 1970-01-01 was a Thursday. */
const MONDAY_OFFSET = 3;

/**
 * Returns the hour, day, week or month of a time zone that contains `at`. Where daylight-saving time begins or ends, a day has 23
 * or 25 hours.
 */
export function calendarWindow(unit: CalendarUnit, at: EpochMillis, offsetAt: ZoneOffset): QuotaWindow {
  const offset = offsetAt(at);
  if (unit === 'hour') {
    // Whole hours of the offset in force: of the hour that a change repeats, each has a window of its own.
    const start = Math.floor((at + offset) / HOUR) * HOUR - offset;
    return { start, end: start + HOUR };
  }
  const localStart = startOfLocalUnit(unit, at + offset);
  return { start: toEpoch(localStart, offsetAt), end: toEpoch(nextLocalUnit(unit, localStart), offsetAt) };
}

/** Local times here are milliseconds since 1970-01-01 00:00 on the local clock. */
type LocalMillis = number;

function startOfLocalUnit(unit: Exclude<CalendarUnit, 'hour'>, local: LocalMillis): LocalMillis {
  const day = Math.floor(local / DAY);
  if (unit === 'day') return day * DAY;
  if (unit === 'week') return (day - ((((day + MONDAY_OFFSET) % 7) + 7) % 7)) * DAY;
  return startOfMonth(day) * DAY;
}

function nextLocalUnit(unit: Exclude<CalendarUnit, 'hour'>, start: LocalMillis): LocalMillis {
  if (unit === 'day') return start + DAY;
  if (unit === 'week') return start + 7 * DAY;
  return startOfMonth(start / DAY + LONGEST_MONTH) * DAY;
}

const LONGEST_MONTH = 31;

/** The first day of the month that contains a day; days are counted from 1970-01-01. */
function startOfMonth(day: number): number {
  return day - dayOfMonth(day) + 1;
}

/**
 * From 1. In the calendar used here, a year begins with March, so that the leap day is its last day. Howard Hinnant,
 * "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
 */
function dayOfMonth(day: number): number {
  const shifted = day + 719_468;
  const dayOfEra = shifted - Math.floor(shifted / 146_097) * 146_097;
  const leaps = Math.floor(dayOfEra / 1460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leaps) / 365);
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const month = Math.floor((5 * dayOfYear + 2) / 153);
  return dayOfYear - Math.floor((153 * month + 2) / 5) + 1;
}

/**
 * Returns the instant at which the local clock shows `local`: the first if it does so twice. If a change skips that time, returns
 * the instant of the change.
 */
function toEpoch(local: LocalMillis, offsetAt: ZoneOffset): EpochMillis {
  const before = offsetAt(local - DAY);
  const after = offsetAt(local + DAY);
  const early = local - before;
  if (before === after || offsetAt(early) === before) return early;
  const late = local - after;
  if (offsetAt(late) === after) return late;
  return findChange(late, early, after, offsetAt);
}

/** The first instant in (from, to] at which the offset is `after`. */
function findChange(from: EpochMillis, to: EpochMillis, after: Millis, offsetAt: ZoneOffset): EpochMillis {
  let [low, high] = [from, to];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle) === after) high = middle;
    else low = middle;
  }
  return high;
}
