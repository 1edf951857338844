import type { Meter } from '../policy/meter.ts';
import type { QuotaOwner } from '../policy/requester.ts';
import type { Millis } from '../policy/types.ts';

/** Until when another meter let nothing pass is kept to by this one, for the same reason. */
export function keepStop(
  meter: Pick<Meter, 'stop' | 'resumeQuota'>,
  blockedUntil: Millis | undefined,
  quotaOwner: QuotaOwner | undefined,
  now: Millis,
): void {
  if (quotaOwner !== undefined && quotaOwner.until > now) meter.resumeQuota(quotaOwner, now);
  if (blockedUntil === undefined || blockedUntil <= now || blockedUntil === quotaOwner?.until) return;
  meter.stop(blockedUntil);
}
