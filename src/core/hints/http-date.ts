import type { Millis } from '../scalars.ts';

const DAY: Millis = 86_400_000;
const MEAN_YEAR: Millis = 365.2425 * DAY;

const IMF_FIXDATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT$/;
const RFC_850 = /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (\d\d)-([A-Z][a-z]{2})-(\d\d) (\d\d):(\d\d):(\d\d) GMT$/;
const ASCTIME = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) (\d{4})$/;

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/**
 * An HTTP-date in any of its three forms (RFC 9110 §5.6.7), in epoch milliseconds. A wrong name of the day
 * is accepted. `now` (epoch ms) settles the century of the obsolete two-digit year.
 * @returns undefined for anything else, 30 February included.
 */
export function parseHttpDate(value: string, now: Millis): Millis | undefined {
  const imf = IMF_FIXDATE.exec(value);
  if (imf !== null) {
    const [, day, month, year, hour, minute, second] = imf;
    return toEpoch(Number(year), month, Number(day), Number(hour), Number(minute), Number(second));
  }
  const rfc850 = RFC_850.exec(value);
  if (rfc850 !== null) {
    const [, day, month, year, hour, minute, second] = rfc850;
    const century = Math.floor((1970 + now / MEAN_YEAR) / 100) * 100;
    const inYear = (full: number) => toEpoch(full, month, Number(day), Number(hour), Number(minute), Number(second));
    const date = inYear(century + Number(year));
    // RFC 9110 §5.6.7: more than 50 years ahead means the most recent year in the past with those digits.
    return date !== undefined && date - now > 50 * MEAN_YEAR ? inYear(century - 100 + Number(year)) : date;
  }
  const asctime = ASCTIME.exec(value);
  if (asctime !== null) {
    const [, month, day, hour, minute, second, year] = asctime;
    return toEpoch(Number(year), month, Number(day), Number(hour), Number(minute), Number(second));
  }
  return undefined;
}

const TIMESTAMP =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?(?:[Zz]| ?UTC| ?GMT| ?([+-])(\d\d):?(\d\d))?$/;

/**
 * A point in time as RFC 3339 §5.6 writes it, or as upstreams nearly do: without seconds, with `UTC`, with an offset without a
 * colon; without any zone it is UTC.
 * @returns epoch ms; undefined for anything else
 */
export function parseTimestamp(value: string): Millis | undefined {
  const [, year, month, day, hour, minute, second = 0, fraction = 0, sign, hours = 0, minutes = 0] =
    TIMESTAMP.exec(value) ?? [];
  if (year === undefined) return undefined;
  const name = MONTHS[Number(month) - 1];
  const epoch = toEpoch(Number(year), name, Number(day), Number(hour), Number(minute), Number(second));
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000;
  if (epoch === undefined) return undefined;
  return epoch + Math.round(Number(fraction) * 1000) + (sign === '-' ? offset : -offset);
}

function toEpoch(
  year: number,
  monthName: string | undefined,
  day: number,
  hour: number,
  minute: number,
  second: number,
): Millis | undefined {
  const month = monthName === undefined ? 0 : MONTHS.indexOf(monthName) + 1;
  if (month === 0 || day < 1 || day > daysInMonth(year, month)) return undefined;
  // Second 60 is a leap second, which epoch time counts as the first of the next minute.
  if (hour > 23 || minute > 59 || second > 60) return undefined;
  const epoch = daysFromCivil(year, month, day) * DAY + ((hour * 60 + minute) * 60 + second) * 1000;
  return Number.isFinite(epoch) ? epoch : undefined;
}

/**
 * Days since 1970-01-01 in the proleptic Gregorian calendar. Years are counted from March, so that the leap day is
 * the last of its year. Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
 */
function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
