import type { SpentQuota } from '../../core/quota/calendar/upstream-quotas.ts';
import { pluralize } from '../format-values.ts';

/** Why a request was refused for its quota, as part of a sentence. */
export function formatSpentQuota({ name, limit, hasReserveLeft, resetAt, isLost }: SpentQuota): string {
  if (isLost === true) {
    return `the count of the quota ${name} is not available: the primary or the store that keeps it does not respond or has lost it, and this process has used what it had leased`;
  }
  const spent = `the quota ${name} of ${pluralize(limit, 'request', 'requests')} is used up until ${new Date(resetAt).toISOString()}`;
  return hasReserveLeft ? `${spent}, except for its reserve: only classes with a weight above 1 may use that` : spent;
}
