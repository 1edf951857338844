import type { Millis } from '../../scalars.ts';
import type { Instant } from './calendar-quota.ts';
import type { EpochMillis } from './quota-period.ts';
import type { UpstreamQuota } from './upstream-quota.ts';

/** A quota that is used up, for a refusal. */
export interface SpentQuota {
  readonly name: string;
  readonly limit: number;
  /** Only its reserve is left, which this request may not use. */
  readonly hasReserveLeft: boolean;
  readonly untilReset: Millis;
  readonly resetAt: EpochMillis;
  /** Whether it is used up is not known, because its count is not available, or not complete. */
  readonly isLost?: boolean;
}

export function toSpentQuota(quota: UpstreamQuota, untilReset: Millis, instant: Instant): SpentQuota {
  const { name, limit } = quota.settings;
  const hasReserveLeft = quota.untilReset(true, instant) === 0;
  const lost = quota.isLost ? { isLost: true } : {};
  return { name, limit, hasReserveLeft, untilReset, resetAt: instant.at + untilReset, ...lost };
}
