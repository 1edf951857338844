/** Wording and severity of the accounts of an upstream. */
import { formatClock, formatCount, formatRateLabel, formatTimeSpan, secondsUntil } from './labels.js';

/** @import { UpstreamStatus } from '../api-types.ts' */
/** @import { Severity } from './labels.js' */

/**
 * @param {Pick<UpstreamStatus['accounts'][number], 'quarantined'>} account
 * @returns {Severity}
 */
export function accountSeverity({ quarantined }) {
  return quarantined ? 'warning' : 'ok';
}

/**
 * @param {UpstreamStatus['accounts'][number]} account
 * @param {number} now the server's clock, in milliseconds since 1970
 */
export function formatAccount(account, now) {
  const { name, quarantined, commonlyRejected, quarantinedSince, nextProbe, rate, inFlight } = account;
  const use = `${rate === null ? 'no limit' : formatRateLabel(rate)}, ${formatCount(inFlight)} in flight`;
  if (!quarantined) return `${name} – ${use}`;
  const since = quarantinedSince === null ? '' : ` since ${formatClock(quarantinedSince)}`;
  const left = secondsUntil(nextProbe, now);
  const probe = left === undefined ? 'probe due' : `next probe in ${formatTimeSpan(left)}`;
  const scope = commonlyRejected ? 'several unrelated clients' : 'one client or address';
  return `${name} – credential rejected${since} for ${scope}, ${probe}; ${use}`;
}
