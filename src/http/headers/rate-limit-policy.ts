import type { CalendarQuotaSettings } from '../../core/quota/calendar/calendar-quota.ts';
import { nominalLength } from '../../core/quota/calendar/quota-period.ts';
import type { PerSecond } from '../../core/scalars.ts';

/** The fixed rates and quotas of a class of clients, as RateLimit-Policy names them; each undefined if there are none. */
export interface ClassRatePolicies {
  /** Of clients that have proven their names. */
  readonly proven: string | undefined;
  readonly unproven: string | undefined;
}

/** Windows in seconds, in the order in which they are tried: the smallest that makes the quota a whole number is used. */
const WINDOWS: readonly number[] = [...Array.from({ length: 60 }, (_, i) => i + 1), 3600, 86_400];

/**
 * Formats the RateLimit-Policy of a fixed rate, as draft-ietf-httpapi-ratelimit-headers-10 §3 defines it: `"class:batch";q=20;w=1`. A
 * rate that is no whole number in any window is rounded down, to 1 at least.
 * @param name of letters, digits, `.`, `_`, `-`, `:` and `/`, so that it needs no escapes
 * @param rate above 0
 */
export function formatRatePolicy(name: string, rate: PerSecond): string {
  const fitting = WINDOWS.find((window) => isWhole(rate * window));
  const window = fitting ?? WINDOWS.find((each) => rate * each >= 60) ?? 86_400;
  const quota = fitting === undefined ? Math.max(1, Math.floor(rate * window)) : Math.round(rate * window);
  return `"${name}";q=${quota};w=${window}`;
}

/** The same of a quota: `"class:batch/day";q=10000;w=86400`. Months differ in length, so theirs has no window. */
export function formatQuotaPolicy({ name, limit, period }: CalendarQuotaSettings): string {
  const isMonth = period.kind === 'calendar' && period.unit === 'month';
  return `"${name}";q=${limit}${isMonth ? '' : `;w=${Math.ceil(nominalLength(period) / 1000)}`}`;
}

/** Rates are configured per second, minute or hour: `1/h` is no exact fraction of a second. */
function isWhole(quota: number): boolean {
  return quota > 0.5 && Math.abs(quota - Math.round(quota)) < 1e-6 * quota;
}

export function findRatePolicy(
  policies: ReadonlyMap<string, ClassRatePolicies>,
  { className, isProven }: { readonly className: string | undefined; readonly isProven?: true },
): string | undefined {
  return className === undefined ? undefined : policies.get(className)?.[isProven === true ? 'proven' : 'unproven'];
}
