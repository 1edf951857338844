/** Wording and severity of quotas, for the page. */
import { formatCount, formatPercent } from './labels.js';

/** @import { UpstreamStatus } from '../api-types.ts' */
/** @import { Severity } from './labels.js' */

/**
 * The configured quota of which the smallest share is left; without one, the quota that the upstream reports. Those of classes of
 * clients concern these alone.
 * @param {Pick<UpstreamStatus, 'quotaLeft' | 'quotas'>} upstream
 * @returns {{ text: string, severity: Severity | undefined }}
 */
export function describeQuota({ quotaLeft, quotas }) {
  const own = quotas.filter(({ name }) => !name.startsWith('class:'));
  const [tightest] = own.toSorted((a, b) => a.remaining / a.limit - b.remaining / b.limit);
  if (tightest === undefined) {
    return { text: quotaLeft === null ? 'not reported' : formatPercent(quotaLeft), severity: undefined };
  }
  const { name, limit, remaining, reserve, exhaustedAt } = tightest;
  const isSpent = remaining <= reserve;
  return {
    text: `${formatCount(remaining)} of ${formatCount(limit)} (${name})`,
    severity: isSpent ? 'critical' : exhaustedAt === null ? undefined : 'warning',
  };
}
