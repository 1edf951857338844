import { makeBackOff } from '../../../core/backoff/strategies.ts';
import type { DeliverySchedule } from '../../../core/delivery/delivery-schedule.ts';
import { makeBackOffSchedule, makeTableSchedule } from '../../../core/delivery/delivery-schedule.ts';
import { SCHEDULE_PRESETS } from '../../../core/delivery/schedule-presets.ts';
import type { DeliveryConfig } from '../config-schema.ts';
import { mergeBackOff } from '../retry-overrides.ts';
import { DELIVERY_SCHEDULE, type ScheduleDefaults } from './delivery-schedule-schema.ts';

/** With more attempts than this, one delivery that is never acknowledged loads its upstream for nothing. */
export const MANY_DELIVERY_ATTEMPTS = 500;

/** @throws BackOffOptionError for an impossible backoff, which `checkDeliveries` reports */
export function scheduleInEffect(
  schedule: DeliveryConfig['schedule'],
  defaults: ScheduleDefaults = DELIVERY_SCHEDULE,
): DeliverySchedule {
  if (typeof schedule === 'string') return makeTableSchedule(SCHEDULE_PRESETS[schedule]);
  const { delays, total = defaults.total, ...backOff } = schedule;
  if (delays !== undefined) return makeTableSchedule(delays);
  return makeBackOffSchedule(makeBackOff(mergeBackOff(defaults.backOff, backOff)), total);
}
