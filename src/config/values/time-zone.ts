/** IANA time zones. Their rules are those of the ICU that Node contains. */
import type { ZoneOffset } from '../../core/quota/calendar/quota-period.ts';
import { parseFailure } from './parse-result.ts';
import { suggest } from './suggest.ts';
import { textCodec } from './text-codec.ts';

export const UTC = 'UTC';

/** The name of an IANA time zone, as it is written: `Intl` accepts any case and older names. */
export const TimeZoneSchema = textCodec<string>({
  expected: 'an IANA time zone such as America/Los_Angeles or UTC',
  forms: [{ type: 'string', pattern: '^[A-Za-z][A-Za-z0-9_+/-]*$' }],
  parse(input) {
    const text = String(input);
    if (/^[A-Za-z]/.test(text) && isTimeZone(text)) return { ok: true, value: text };
    const message = 'no time zone has this name: expected an IANA name such as America/Los_Angeles or UTC';
    return parseFailure(message, suggest(text.replaceAll(' ', '_'), [UTC, ...Intl.supportedValuesOf('timeZone')]));
  },
  format: (name) => name,
});

function isTimeZone(name: string): boolean {
  try {
    return Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false; // a RangeError
  }
}

/** Returns the offsets of a time zone from UTC, by date. @param timeZone a valid name */
export function zoneOffset(timeZone: string): ZoneOffset {
  if (timeZone === UTC) return () => 0;
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  return (at) => {
    const name = format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    // `GMT`, `GMT-08:00`, or `GMT-00:44:30` of a date long ago.
    const [, sign, hours = '0', minutes = '0', seconds = '0'] =
      /^GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(name) ?? [];
    const size = 1000 * (3600 * Number(hours) + 60 * Number(minutes) + Number(seconds));
    return sign === '-' ? -size : size;
  };
}
