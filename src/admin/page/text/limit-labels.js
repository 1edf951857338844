/** Wording and severity of upstreams and their limits, shared by the page and `tidegate top`. */
import { formatMostRefused } from './client-labels.js';
import { hasExcluded, isUnreachable, newestFailure } from './endpoint-labels.js';
import { formatCount, formatPercent, formatRateLabel, formatTimeSpan, secondsUntil } from './labels.js';

/** @import { NestedLimitStatus, UpstreamStatus } from '../api-types.ts' */
/** @import { Severity } from './labels.js' */

/** From this share of failed attempts on, an upstream has a problem; from the second on, it hardly works. */
const NOTABLE_FAILED_SHARE = 0.05;
const CRITICAL_FAILED_SHARE = 0.5;

/**
 * Severity of the whole card: state, failures, rejections, refusals, queue and endpoints together.
 * @param {UpstreamStatus} upstream
 * @returns {Severity}
 */
export function upstreamSeverity(upstream) {
  const { state, pinned, failedShare, refusedPerSecond, budgetSpent } = upstream;
  if (state === 'blocked' || isUnreachable(upstream) || (failedShare ?? 0) >= CRITICAL_FAILED_SHARE) return 'critical';
  const isWarning =
    pinned !== null ||
    isHeavilyThrottled(upstream) ||
    isQueueLong(upstream) ||
    (failedShare ?? 0) >= NOTABLE_FAILED_SHARE ||
    refusedPerSecond > 0 ||
    budgetSpent ||
    hasExcluded(upstream);
  if (isWarning) return 'warning';
  return isUntried(upstream) ? 'muted' : 'ok';
}

/**
 * Nothing was sent since the start, so nothing is known about the upstream.
 * @param {UpstreamStatus} upstream
 */
function isUntried({ attempts, inFlight }) {
  return attempts === 0 && inFlight === 0;
}

/**
 * An adaptive rate exceeds its limit now and then to find it, so a few rejections are normal.
 * @param {UpstreamStatus} upstream
 */
function isHeavilyThrottled({ throttledPerSecond, sentPerSecond }) {
  return throttledPerSecond > 0.05 * sentPerSecond;
}

/**
 * Queueing is how pacing works. More than one second's worth of requests is a long queue.
 * @param {UpstreamStatus} upstream
 */
function isQueueLong({ queued, rate, sentPerSecond }) {
  return queued > Math.max(1, rate ?? sentPerSecond);
}

/**
 * Severity of the state. A harmless state has the mark of whatever else is wrong.
 * @param {UpstreamStatus} upstream
 * @returns {Severity}
 */
export function stateSeverity(upstream) {
  const severity = upstreamSeverity(upstream);
  return severity !== 'critical' && upstream.state === 'backoff' ? 'warning' : severity;
}

/**
 * More than a few requests are refused.
 * @param {UpstreamStatus} upstream
 */
export function isRefusingMany({ refusedPerSecond, sentPerSecond }) {
  return refusedPerSecond > 0.05 * (refusedPerSecond + sentPerSecond);
}

/**
 * The problem of a critical upstream, in a word.
 * @param {UpstreamStatus} upstream
 */
export function shortProblem(upstream) {
  if (isUnreachable(upstream)) return 'unreachable';
  return upstream.state === 'blocked' ? 'blocked' : 'failing';
}

/**
 * The state under its name in metrics and docs; a pinned rate shows as `pinned`.
 * @param {UpstreamStatus} upstream
 */
export function stateLabel({ state, pinned }) {
  return pinned !== null && state !== 'blocked' ? 'pinned' : state;
}

/**
 * One sentence, without the upstream's name and without a full stop. A failure comes first; while nothing succeeds, the rate does
 * not matter.
 * @param {UpstreamStatus} upstream
 * @param {number} now the server's clock, in milliseconds since 1970
 */
export function formatHeadline(upstream, now) {
  const left = secondsUntil(upstream.until, now);
  const waiting = upstream.queued > 0 ? `${formatCount(upstream.queued)} waiting` : undefined;
  if (upstream.state === 'blocked') return join([formatBlock(upstream, left), waiting], '; ');
  const ejected = upstream.endpoints.filter(({ healthy }) => !healthy).length;
  const throttled = upstream.throttledPerSecond;
  const { state, refusedPerSecond, budgetSpent } = upstream;
  const remarks = [
    state === 'cooldown' && upstream.pinned === null && left !== undefined
      ? `growth resumes in ${formatTimeSpan(left)}`
      : undefined,
    waiting,
    isHeavilyThrottled(upstream) ? `${formatRateLabel(throttled)} of 429s from upstream` : undefined,
    refusedPerSecond > 0
      ? `${formatRateLabel(refusedPerSecond)} refused${formatMostRefused(upstream, now)}`
      : undefined,
    budgetSpent ? 'retry budget spent' : undefined,
    ejected > 0 ? `${ejected} of ${upstream.endpoints.length} endpoints ejected` : undefined,
    state !== 'backoff' && upstreamSeverity(upstream) === 'ok' ? 'healthy' : undefined,
  ];
  const sending = isUntried(upstream) ? 'not tried yet' : `sending ${formatRateLabel(upstream.sentPerSecond)}`;
  const unreachable = isUnreachable(upstream) ? newestFailure(upstream)?.text : undefined;
  const nothingSucceeds = upstream.failedShare === 1 || isUnreachable(upstream);
  const allowance = nothingSucceeds && upstream.pinned === null ? undefined : formatAllowance(upstream);
  return join([unreachable, formatFailures(upstream), allowance, sending, ...remarks], ', ');
}

/**
 * The share of failed attempts, if it is more than a few.
 * @param {UpstreamStatus} upstream
 */
function formatFailures(upstream) {
  const { failedShare } = upstream;
  if (failedShare === null || failedShare < NOTABLE_FAILED_SHARE) return undefined;
  const share = failedShare === 1 ? 'every attempt fails' : `${formatPercent(failedShare)} of attempts fail`;
  const failure = isUnreachable(upstream) ? undefined : newestFailure(upstream);
  return failure === undefined ? share : `${share} (${failure.text})`;
}

/**
 * Requests may be refused although no limit of all requests is known: some clients are held, or a part is blocked.
 * @param {UpstreamStatus} upstream
 */
function formatAllowance(upstream) {
  const { state, rate, pinned, refusedPerSecond } = upstream;
  if (pinned !== null) return `pinned at ${formatRateLabel(pinned)} by an operator`;
  if (rate === null) {
    return refusedPerSecond > 0 || isHeavilyThrottled(upstream) ? 'no common limit detected' : 'no limit detected';
  }
  return formatRate({ state, rate });
}

/** @param {Pick<NestedLimitStatus, 'state' | 'rate'>} limit */
function formatRate({ state, rate }) {
  if (rate === null) return 'no limit detected';
  const allowed = formatRateLabel(rate);
  switch (state) {
    case 'backoff':
      return `cut to ${allowed}`;
    case 'restoring':
      return `allowed ${allowed} and rising`;
    case 'open':
    case 'cooldown':
    case 'blocked':
      return `allowed ${allowed}`;
  }
}

/**
 * Why it is blocked, and for how long.
 * @param {UpstreamStatus} upstream
 * @param {number | undefined} left
 */
function formatBlock(upstream, left) {
  if (upstream.blockedBy === 'operator') {
    const by = 'blocked by an operator';
    return left === undefined ? `${by} until unblocked` : `${by} for another ${formatTimeSpan(left)}`;
  }
  const cause =
    upstream.blockedCause === 'errors' ? (newestFailure(upstream)?.text ?? 'failing') : formatBlockedCause(upstream);
  return `${cause}; ${formatBlockEnd(upstream, left)}`;
}

/** @param {Pick<UpstreamStatus, 'blockedCause'>} limit */
function formatBlockedCause({ blockedCause }) {
  switch (blockedCause) {
    case 'rejections':
      return 'blocked by the upstream: it rejects every request';
    case 'errors':
      return 'blocked: requests fail';
    case 'quota':
      return 'blocked by the upstream: its quota is used up';
    case 'retry_after':
      return 'blocked by the upstream: it asked for a pause (Retry-After)';
    case null:
      return 'blocked by the upstream';
  }
}

/**
 * @param {Pick<UpstreamStatus, 'untilWhat'>} limit
 * @param {number | undefined} left
 */
function formatBlockEnd({ untilWhat }, left) {
  if (left === undefined) return 'probing now';
  return untilWhat === 'next probe' ? `next probe in ${formatTimeSpan(left)}` : `for another ${formatTimeSpan(left)}`;
}

/**
 * The name of a nested limit, or of the limit of a client class (`class:NAME`).
 * @param {NestedLimitStatus} limit
 */
export function formatLimitName({ name }) {
  return name.replace(':', ' ');
}

/**
 * State of the nested limits of one name; the most critical one stands for all.
 * @param {NestedLimitStatus} limit
 * @param {number} now the server's clock, in milliseconds since 1970
 */
export function formatNestedLimit({ scope, which, state, rate, limits, queued, until, untilWhat, blockedCause }, now) {
  const left = secondsUntil(until, now);
  const count = `${formatCount(limits)} ${limits === 1 ? 'limit' : 'limits'}`;
  const many = scope === 'upstream' ? count : `${count}, one per ${scope}`;
  const one = which === '' ? 'tightest' : which;
  const blocked = `${formatBlockedCause({ blockedCause })}; ${formatBlockEnd({ untilWhat }, left)}`;
  const allowance = state === 'blocked' ? blocked : formatRate({ state, rate });
  return join(
    [
      scope !== 'upstream' || limits > 1 || which !== '' ? `${many}; ${one} ${allowance}` : allowance,
      queued > 0 ? `${formatCount(queued)} waiting` : undefined,
    ],
    ', ',
  );
}

/**
 * @param {NestedLimitStatus} limit
 * @returns {Severity}
 */
export function nestedLimitSeverity({ state }) {
  if (state === 'blocked') return 'critical';
  return state === 'backoff' ? 'warning' : 'ok';
}

/**
 * @param {readonly (string | undefined)[]} parts
 * @param {string} separator
 */
function join(parts, separator) {
  return parts.filter((part) => part !== undefined).join(separator);
}
