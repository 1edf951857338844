import type { Millis } from '../../scalars.ts';

export const CALENDAR_UNITS = ['hour', 'day', 'week', 'month'] as const;

/** A week begins on Monday. */
export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

/** A time on the wall clock, in milliseconds of the epoch. The gate's clock has another origin. */
export type EpochMillis = Millis;

/** How far local time is ahead of UTC at an instant. A pure function: it contains the rules of one time zone. */
export type ZoneOffset = (at: EpochMillis) => Millis;

/** What a quota counts together. */
export type QuotaPeriod =
  | {
      readonly kind: 'calendar';
      readonly unit: CalendarUnit;
      /** An IANA name. */
      readonly timeZone: string;
      readonly offsetAt: ZoneOffset;
    }
  | { readonly kind: 'rolling'; readonly length: Millis };

const HOUR: Millis = 3_600_000;
const DAY: Millis = 24 * HOUR;

/** Of a month, the shortest. */
const UNIT_LENGTHS: Readonly<Record<CalendarUnit, Millis>> = { hour: HOUR, day: DAY, week: 7 * DAY, month: 28 * DAY };

/** How long a period is, not counting changes of daylight-saving time. */
export function nominalLength(period: QuotaPeriod): Millis {
  return period.kind === 'rolling' ? period.length : UNIT_LENGTHS[period.unit];
}

/** Identifies a period: counts of one period mean nothing in another. */
export function periodId(period: QuotaPeriod): string {
  return period.kind === 'rolling' ? `rolling ${period.length}` : `${period.unit} ${period.timeZone}`;
}
