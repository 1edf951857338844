/** Wording of figures and states, shared by the page and `tidegate top`. */

/** @import { ProcessStatus } from '../api-types.ts' */

/** @typedef {'ok' | 'warning' | 'critical' | 'muted'} Severity `muted`: nothing is known yet, or nobody needs to act */

/** Narrow no-break space, between groups of three digits. */
const THIN_SPACE = '\u202f';
const NO_VALUE = '–';
/** As in the alert on certificates. */
const EXPIRY_NOTICE_MS = 7 * 86_400_000;

/** @param {number} count */
export function formatCount(count) {
  return Math.round(count).toLocaleString('en-US').replaceAll(',', THIN_SPACE);
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
 * The time of day, after the date unless that is today.
 * @param {string} time
 * @param {number} now
 */
export function formatMoment(time, now) {
  const date = new Date(time);
  if (date.toDateString() === new Date(now).toDateString()) return formatClock(time);
  const day = [date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, '0'));
  return `${[date.getFullYear(), ...day].join('-')} ${formatClock(time)}`;
}

/**
 * The first certificate that has expired, in a few words for the title of the page.
 * @param {ProcessStatus} status
 */
export function shortExpiry({ at, certificates }) {
  const expired = certificates.find(({ expiresAt }) => Date.parse(expiresAt) <= Date.parse(at));
  return expired === undefined ? undefined : `certificate of ${expired.setting} expired`;
}

/**
 * @param {string} setting
 * @param {number} left milliseconds; negative after the expiry
 */
function formatExpiry(setting, left) {
  const time = formatCoarseSpan(Math.abs(left));
  if (left > 0) return `Certificate of ${setting} expires in ${time}. Replace it before that.`;
  const effect = setting.startsWith('listen.')
    ? 'clients that verify it cannot connect'
    : 'the server that it is presented to may refuse connections';
  return `Certificate of ${setting} expired ${time} ago: ${effect}.`;
}

/**
 * In whole minutes, hours or days, because a notice is a new row when its text changes.
 * @param {number} ms
 */
function formatCoarseSpan(ms) {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return 'less than a minute';
  if (minutes < 120) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`;
}

/** Upstreams that a notice names. */
const NAMED_UPSTREAMS = 3;

/** @param {readonly string[]} upstreams */
function nameUpstreams(upstreams) {
  const more = upstreams.length - NAMED_UPSTREAMS;
  return `${upstreams.slice(0, NAMED_UPSTREAMS).join(', ')}${more > 0 ? ` and ${formatCount(more)} more` : ''}`;
}

/** Ends of deliveries that somebody has to look at. */
const DELIVERY_PROBLEMS = /** @type {const} */ ([
  ['dead', 'no more attempts are made. Retry those that are still needed before they are removed (keepFor).'],
  ['unknown', 'they may have taken effect. Look up each at the upstream before it is removed here (keepFor).'],
]);

/**
 * Notices about the process itself, the most severe first.
 * @param {ProcessStatus} status
 * @returns {readonly {readonly severity: Severity, readonly text: string}[]}
 */
export function describeNotices({ at, phase, mode, observedUpstreams, store, deliveries, certificates, config }) {
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
    const why = store.problem === null ? '' : `: ${store.problem}`;
    note(
      'critical',
      `The store (${store.kind}) is not responding${why}. Meanwhile this process keeps limits on its own.`,
    );
  }
  for (const [state, advice] of DELIVERY_PROBLEMS) {
    const count = deliveries?.counts[state] ?? 0;
    const which = count === 1 ? '1 stored delivery is' : `${formatCount(count)} stored deliveries are`;
    if (count > 0) note('warning', `${which} ${state}: ${advice}`);
  }
  for (const { setting, expiresAt } of certificates) {
    const left = Date.parse(expiresAt) - Date.parse(at);
    if (left <= EXPIRY_NOTICE_MS) note(left <= 0 ? 'critical' : 'warning', formatExpiry(setting, left));
  }
  const { lastReload } = config;
  if (lastReload?.ok === false) {
    const why = lastReload.problem ?? 'No reason was reported.';
    note('critical', `Reload failed at ${formatClock(lastReload.at)}; the previous config stays in effect. ${why}`);
  }
  if (observedUpstreams.length > 0) {
    const where = mode === 'observe' ? '' : ` for ${nameUpstreams(observedUpstreams)}`;
    note('ok', `Observe mode${where}: requests are forwarded at once, never queued, refused or retried.`);
  }
  return notices;
}
