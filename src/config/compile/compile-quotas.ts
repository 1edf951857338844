import type { CalendarQuotaSettings } from '../../core/quota/calendar/calendar-quota.ts';
import type { QuotaPeriod } from '../../core/quota/calendar/quota-period.ts';
import { type QuotaConfig, quotaName, reservedRequests } from '../schema/limits/quota-schema.ts';
import { UTC, zoneOffset } from '../values/time-zone.ts';

/** The quotas of an upstream, as the core counts them. */
export function compileQuotas(quotas: readonly QuotaConfig[]): CalendarQuotaSettings[] {
  return quotas.map((quota) => ({
    name: quotaName(quota),
    limit: quota.limit,
    reserve: reservedRequests(quota),
    pace: quota.pace,
    period: compilePeriod(quota),
  }));
}

function compilePeriod({ per, timezone = UTC }: QuotaConfig): QuotaPeriod {
  return per.kind === 'rolling' ? per : { ...per, timeZone: timezone, offsetAt: zoneOffset(timezone) };
}
