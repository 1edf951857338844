/** Wording of figures and states, shared by the page and `tidegate top`. */

/** @import { NestedLimitStatus, ProcessStatus, UpstreamStatus } from '../api-types.ts' */

/** @typedef {'ok' | 'warning' | 'critical'} Severity */

/** Narrow no-break space, between groups of three digits. */
const THIN_SPACE = '\u202f';
const NO_VALUE = '–';

/** @param {number} count */
export function formatCount(count) {
  return String(Math.round(count)).replaceAll(/\B(?=(?:\d{3})+$)/g, THIN_SPACE);
}

/** @param {number | null} rate requests per second; null: no limit */
export function formatRateLabel(rate) {
  if (rate === null) return 'no limit';
  if (rate === 0 || rate >= 9.95) return `${formatCount(rate)}/s`;
  if (rate < 0.01) return '<0.01/s';
  return `${rate.toFixed(rate < 0.095 ? 2 : 1)}/s`;
}

/** @param {number | null} part 0 to 1 */
export function formatPercent(part) {
  if (part === null) return NO_VALUE;
  const percent = part * 100;
  // Rounding must not turn a little into 0 %, or almost all into 100 %.
  if (percent > 0 && percent < 1) return '<1 %';
  return `${percent < 100 ? Math.min(99, Math.round(percent)) : 100} %`;
}

/**
 * A measured duration, to three digits.
 * @param {number | null} seconds
 */
export function formatLatency(seconds) {
  if (seconds === null) return NO_VALUE;
  if (seconds < 0.0001) return '<0.1 ms';
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0)} ms`;
  return seconds < 0.9995 ? `${(seconds * 1000).toFixed(0)} ms` : `${seconds.toFixed(seconds < 9.95 ? 2 : 1)} s`;
}

/**
 * Remaining or elapsed time, in whole seconds.
 * @param {number} seconds negative values count as 0
 */
export function formatTimeSpan(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
  const hours = Math.floor(whole / 3600);
  if (hours < 48) return `${hours} h ${String(Math.floor(whole / 60) % 60).padStart(2, '0')} min`;
  return `${Math.floor(hours / 24)} days`;
}

/**
 * @param {string | null} time
 * @param {number} now the server's clock, in milliseconds since 1970
 * @returns {number | undefined} seconds from now; undefined if there is no such time or it has passed
 */
export function secondsUntil(time, now) {
  if (time === null) return undefined;
  const left = (Date.parse(time) - now) / 1000;
  return left > 0 ? left : undefined;
}

/** @param {string} time */
export function formatClock(time) {
  const date = new Date(time);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}

/**
 * Severity of the whole card: state, rejections, queue and endpoints together.
 * @param {UpstreamStatus} upstream
 * @returns {Severity}
 */
export function upstreamSeverity(upstream) {
  const { state, pinned, endpoints } = upstream;
  if (state === 'blocked') return 'critical';
  const isWarning = pinned !== null || isHeavilyThrottled(upstream) || isQueueLong(upstream);
  return isWarning || endpoints.some(({ healthy }) => !healthy) ? 'warning' : 'ok';
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
 * Severity of the state alone.
 * @param {UpstreamStatus} upstream
 * @returns {Severity}
 */
export function stateSeverity({ state, pinned }) {
  if (state === 'blocked') return 'critical';
  return state === 'backoff' || pinned !== null ? 'warning' : 'ok';
}

/**
 * The state under its name in metrics and docs; a pinned rate shows as `pinned`.
 * @param {UpstreamStatus} upstream
 */
export function stateLabel({ state, pinned }) {
  return pinned !== null && state !== 'blocked' ? 'pinned' : state;
}

/**
 * One sentence, without the upstream's name and without a full stop.
 * @param {UpstreamStatus} upstream
 * @param {number} now the server's clock, in milliseconds since 1970
 */
export function formatHeadline(upstream, now) {
  const left = secondsUntil(upstream.until, now);
  const waiting = upstream.queued > 0 ? `${formatCount(upstream.queued)} waiting` : undefined;
  if (upstream.state === 'blocked') return join([formatBlock(upstream, left), waiting], '; ');
  const ejected = upstream.endpoints.filter(({ healthy }) => !healthy).length;
  const throttled = upstream.throttledPerSecond;
  const { state } = upstream;
  const remarks = [
    state === 'cooldown' && upstream.pinned === null && left !== undefined
      ? `growth resumes in ${formatTimeSpan(left)}`
      : undefined,
    waiting,
    isHeavilyThrottled(upstream) ? `${formatRateLabel(throttled)} rejected by the upstream` : undefined,
    ejected > 0 ? `${ejected} of ${upstream.endpoints.length} endpoints ejected` : undefined,
    state !== 'backoff' && upstreamSeverity(upstream) === 'ok' ? 'healthy' : undefined,
  ];
  return join([formatAllowance(upstream), `sending ${formatRateLabel(upstream.sentPerSecond)}`, ...remarks], ', ');
}

/** @param {Pick<UpstreamStatus, 'state' | 'rate' | 'pinned'>} limit */
function formatAllowance({ state, rate, pinned }) {
  if (pinned !== null) return `pinned at ${formatRateLabel(pinned)} by an operator`;
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
 * @param {UpstreamStatus} upstream
 * @param {number | undefined} left
 */
function formatBlock({ blockedBy, untilWhat }, left) {
  const by = blockedBy === 'operator' ? 'blocked by an operator' : 'blocked by the upstream';
  if (left === undefined) return blockedBy === 'operator' ? `${by} until unblocked` : `${by}; probing now`;
  return untilWhat === 'next probe'
    ? `${by}; next probe in ${formatTimeSpan(left)}`
    : `${by} for another ${formatTimeSpan(left)}`;
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
export function formatNestedLimit({ scope, which, state, rate, limits, queued, until, untilWhat }, now) {
  const left = secondsUntil(until, now);
  const count = `${formatCount(limits)} ${limits === 1 ? 'limit' : 'limits'}`;
  const many = scope === 'upstream' ? count : `${count}, one per ${scope}`;
  const one = which === '' ? 'tightest' : which;
  const blocked =
    left === undefined
      ? 'blocked by the upstream'
      : `${untilWhat === 'next probe' ? 'next probe in' : 'blocked for another'} ${formatTimeSpan(left)}`;
  const allowance = state === 'blocked' ? blocked : formatAllowance({ state, rate, pinned: null });
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
 * Notices about the process itself, the most severe first.
 * @param {ProcessStatus} status
 * @returns {readonly {readonly severity: Severity, readonly text: string}[]}
 */
export function describeNotices({ phase, mode, store, config }) {
  /** @type {{readonly severity: Severity, readonly text: string}[]} */
  const notices = [];
  /**
   * @param {Severity} severity
   * @param {string} text
   */
  const note = (severity, text) => notices.push({ severity, text });
  if (phase === 'draining') note('critical', 'Draining: the process exits once the requests in flight are answered.');
  if (phase === 'starting') note('warning', 'Starting: not accepting requests yet.');
  if (store.degraded) {
    note('critical', `The store (${store.kind}) is not responding. Meanwhile this process keeps limits on its own.`);
  }
  const { lastReload } = config;
  if (lastReload?.ok === false) {
    const why = lastReload.problem ?? 'No reason was reported.';
    note('critical', `Reload failed at ${formatClock(lastReload.at)}; the previous config stays in effect. ${why}`);
  }
  if (mode === 'observe') note('ok', 'Observe mode: requests are forwarded at once, never queued, refused or retried.');
  return notices;
}

/**
 * @param {readonly (string | undefined)[]} parts
 * @param {string} separator
 */
function join(parts, separator) {
  return parts.filter((part) => part !== undefined).join(separator);
}
