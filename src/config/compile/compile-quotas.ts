import type { CalendarQuotaSettings } from '../../core/quota/calendar/calendar-quota.ts';
import type { QuotaPeriod } from '../../core/quota/calendar/quota-period.ts';
import { classLimitName, clientLimitName } from '../../core/limits/limit-ref.ts';
import type { ClassQuotaSettings } from '../../core/quota/clients/class-quotas.ts';
import type { Config } from '../schema/config-schema.ts';
import {
  type ClientQuotaConfig,
  type QuotaConfig,
  quotaName,
  reservedRequests,
} from '../schema/limits/quota-schema.ts';
import { toList } from '../values/one-or-many.ts';
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

interface ClassesWithQuotas extends Pick<Config['clients'], 'auth'> {
  readonly classes: Readonly<Record<string, ClassWithQuotas>>;
}

interface ClassWithQuotas {
  readonly quota?: ClientQuotaConfig | readonly ClientQuotaConfig[] | undefined;
  readonly perClient?: Pick<ClassWithQuotas, 'quota'> | undefined;
}

/** The quotas of `clients.classes`, at each upstream. Their names begin as those of the limits do: `class:batch/day`. */
export function compileClassQuotas({ classes, auth }: ClassesWithQuotas): ClassQuotaSettings[] {
  return Object.entries(classes).flatMap(([className, { quota, perClient }]) => {
    const shared = compileClientQuotas(toList(quota), classLimitName(className));
    const ofClients = compileClientQuotas(toList(perClient?.quota), clientLimitName(className));
    return shared.length + ofClients.length === 0
      ? []
      : [{ className, shared, perClient: ofClients, needsProof: auth !== undefined }];
  });
}

function compileClientQuotas(quotas: readonly ClientQuotaConfig[], prefix: string): CalendarQuotaSettings[] {
  return quotas.map((quota) => ({
    name: `${prefix}/${quotaName(quota)}`,
    limit: quota.limit,
    reserve: 0,
    pace: 'asNeeded',
    period: compilePeriod(quota),
  }));
}

function compilePeriod({ per, timezone = UTC }: Pick<QuotaConfig, 'per' | 'timezone'>): QuotaPeriod {
  return per.kind === 'rolling' ? per : { ...per, timeZone: timezone, offsetAt: zoneOffset(timezone) };
}
