import type { SpentQuota } from '../../core/quota/calendar/request-quotas.ts';
import type { QuotaSubject } from '../../core/quota/calendar/quota-group.ts';
import { pluralize } from '../format-values.ts';

const SUBJECTS: Readonly<Record<QuotaSubject, string>> = {
  upstream: '',
  class: ' for all clients of this class',
  client: ' for this client',
};

/** Why a request was refused for its quota, as part of a sentence. */
export function formatSpentQuota({ name, subject, limit, hasReserveLeft, resetAt, isLost }: SpentQuota): string {
  if (isLost === true) {
    return `the count of the quota ${name} is not available: the primary or the store that keeps it does not respond or has lost it, and this process has used what it had leased`;
  }
  const spent = `the quota ${name} of ${pluralize(limit, 'request', 'requests')}${SUBJECTS[subject]} is used up until ${new Date(resetAt).toISOString()}`;
  return hasReserveLeft ? `${spent}, except for its reserve: only classes with a weight above 1 may use that` : spent;
}
