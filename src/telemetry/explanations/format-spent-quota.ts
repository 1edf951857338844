import type { SpentQuota } from '../../core/quota/calendar/spent-quota.ts';
import type { SpentClientQuota } from '../../core/quota/clients/client-quotas.ts';
import { pluralize } from '../format-values.ts';

const SUBJECTS: Readonly<Record<SpentClientQuota['subject'], string>> = {
  class: ' for all clients of this class',
  client: ' for this client',
};

/** Why a request was refused for its quota, as part of a sentence. */
export function formatSpentQuota(quota: SpentQuota | SpentClientQuota): string {
  const { name, limit, hasReserveLeft, resetAt, isLost } = quota;
  if (isLost === true) {
    return `the count of the quota ${name} is not available: the primary or the store that keeps it does not respond, has lost it, or leaves the rest after the reset to other processes that may still send it, and this process has used what it had leased`;
  }
  const spent = `the quota ${name} of ${pluralize(limit, 'request', 'requests')}${'subject' in quota ? SUBJECTS[quota.subject] : ''} is used up until ${new Date(resetAt).toISOString()}`;
  return hasReserveLeft ? `${spent}, except for its reserve: only classes with a weight above 1 may use that` : spent;
}
