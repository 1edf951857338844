import type { RequestAttributes } from '../rate/breaker/request-attributes.ts';
import type { Millis } from '../scalars.ts';
import type { Meter } from './meter.ts';

/**
 * Whether an arriving request lacks only a place, as `Pacing.awaitsPlace`. A meter that leases its tokens learns that only while
 * a request waits: before, it is presumed where places are limited and none is leased.
 */
export function mayAwaitPlace(meter: Meter, now: Millis, attributes: RequestAttributes | undefined): boolean {
  if (meter.tokens === undefined) return meter.awaitsPlace(now, attributes);
  const isLimited = meter.concurrencyLimit !== undefined && meter.tokens === 0 && !meter.isQuotaInForce(now);
  return isLimited && meter.isHeldBack?.(now, attributes) !== true;
}
