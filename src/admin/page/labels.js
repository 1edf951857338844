/** What the figures come to, in words: the same in the page and in the terminal. */

/** @import { NestedLimitStatus, Status, UpstreamStatus } from './api-types.ts' */

/** @typedef {'well' | 'wary' | 'trouble'} Mood */

/** Narrow and unbreakable, between thousands. */
const THIN = '\u202f';
const NONE = '–';

/** @param {number} count */
export function writeCount(count) {
  return String(Math.round(count)).replaceAll(/\B(?=(?:\d{3})+$)/g, THIN);
}

/** @param {number | null} rate requests a second */
export function writeRate(rate) {
  if (rate === null) return 'no limit';
  if (rate === 0 || rate >= 9.95) return `${writeCount(rate)}/s`;
  if (rate < 0.01) return '<0.01/s';
  return `${rate.toFixed(rate < 0.095 ? 2 : 1)}/s`;
}

/** @param {number | null} part of 1 */
export function writePart(part) {
  if (part === null) return NONE;
  const percent = part * 100;
  // What is left of a little is not nothing, and not all of it is all.
  if (percent > 0 && percent < 1) return '<1 %';
  return `${percent < 100 ? Math.min(99, Math.round(percent)) : 100} %`;
}

/**
 * How long something took.
 * @param {number | null} seconds
 */
export function writeTook(seconds) {
  if (seconds === null) return NONE;
  if (seconds < 0.0001) return '<0.1 ms';
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0)} ms`;
  return seconds < 0.9995 ? `${(seconds * 1000).toFixed(0)} ms` : `${seconds.toFixed(seconds < 9.95 ? 2 : 1)} s`;
}

/**
 * How long something is yet to last, or has lasted.
 * @param {number} seconds
 */
export function writeSpan(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
  const hours = Math.floor(whole / 3600);
  if (hours < 48) return `${hours} h ${String(Math.floor(whole / 60) % 60).padStart(2, '0')} min`;
  return `${Math.floor(hours / 24)} days`;
}

/**
 * @param {string | null} time
 * @param {number} now as the server has it, in milliseconds since 1970
 * @returns {number | undefined} seconds from now; undefined where there is no such time, or it is over
 */
export function secondsTo(time, now) {
  if (time === null) return undefined;
  const left = (Date.parse(time) - now) / 1000;
  return left > 0 ? left : undefined;
}

/** @param {string} time */
export function writeClock(time) {
  const date = new Date(time);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}

/**
 * How it stands with an upstream.
 * @param {UpstreamStatus} upstream
 * @returns {Mood}
 */
export function moodOf(upstream) {
  const { state, pinned, endpoints } = upstream;
  if (state === 'blocked') return 'trouble';
  const isWary = pinned !== null || isRefusedMuch(upstream) || isQueueLong(upstream);
  return isWary || endpoints.some(({ healthy }) => !healthy) ? 'wary' : 'well';
}

/**
 * A limit is felt by going beyond it now and then: that alone is no trouble.
 * @param {UpstreamStatus} upstream
 */
function isRefusedMuch({ throttledPerSecond, sentPerSecond }) {
  return throttledPerSecond > 0.05 * sentPerSecond;
}

/**
 * To wait is how a rate is kept to, as long as it is not for more than a second.
 * @param {UpstreamStatus} upstream
 */
function isQueueLong({ queued, rate, sentPerSecond }) {
  return queued > Math.max(1, rate ?? sentPerSecond);
}

/**
 * @param {UpstreamStatus} upstream
 * @returns {Mood}
 */
export function moodOfState({ state, pinned }) {
  if (state === 'blocked') return 'trouble';
  return state === 'backoff' || pinned !== null ? 'wary' : 'well';
}

/**
 * The state as metrics and docs call it.
 * @param {UpstreamStatus} upstream
 */
export function writeState({ state, pinned }) {
  return pinned !== null && state !== 'blocked' ? 'pinned' : state;
}

/**
 * One sentence, without the name of the upstream and the full stop.
 * @param {UpstreamStatus} upstream
 * @param {number} now as the server has it, in milliseconds since 1970
 */
export function writeHeadline(upstream, now) {
  const left = secondsTo(upstream.until, now);
  const waiting = upstream.queued > 0 ? `${writeCount(upstream.queued)} waiting` : undefined;
  if (upstream.state === 'blocked') return join([writeBlock(upstream, left), waiting], '; ');
  const broken = upstream.endpoints.filter(({ healthy }) => !healthy).length;
  const throttled = upstream.throttledPerSecond;
  const { state } = upstream;
  const remarks = [
    state === 'cooldown' && upstream.pinned === null && left !== undefined
      ? `growing again in ${writeSpan(left)}`
      : undefined,
    waiting,
    isRefusedMuch(upstream) ? `${writeRate(throttled)} refused by the upstream` : undefined,
    broken > 0 ? `${broken} of ${upstream.endpoints.length} endpoints left out` : undefined,
    state !== 'backoff' && moodOf(upstream) === 'well' ? 'all well' : undefined,
  ];
  return join([writeAllowance(upstream), `sending ${writeRate(upstream.sentPerSecond)}`, ...remarks], ', ');
}

/** @param {Pick<UpstreamStatus, 'state' | 'rate' | 'pinned'>} limit */
function writeAllowance({ state, rate, pinned }) {
  if (pinned !== null) return `pinned at ${writeRate(pinned)} by an operator`;
  if (rate === null) return 'no limit felt';
  const allowed = writeRate(rate);
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
function writeBlock({ blockedBy, untilWhat }, left) {
  const by = blockedBy === 'operator' ? 'blocked by an operator' : 'blocked by the upstream';
  if (left === undefined) return blockedBy === 'operator' ? `${by} until somebody unblocks it` : `${by}; probing now`;
  return untilWhat === 'next probe' ? `${by}; next probe in ${writeSpan(left)}` : `${by} for ${writeSpan(left)} more`;
}

/**
 * The name of a nested limit, or of that of a class.
 * @param {NestedLimitStatus} limit
 */
export function writeLimitName({ name }) {
  return name.replace(':', ' ');
}

/**
 * How it stands with nested limits of one name, in half a sentence.
 * @param {NestedLimitStatus} limit
 * @param {number} now as the server has it, in milliseconds since 1970
 */
export function writeNested({ scope, which, state, rate, limits, queued, until, untilWhat }, now) {
  const left = secondsTo(until, now);
  const many = scope === 'upstream' ? `${writeCount(limits)} of them` : `${writeCount(limits)}, one a ${scope}`;
  const one = which === '' ? 'the tightest' : which;
  const blocked =
    left === undefined ? 'blocked by the upstream' : `${untilWhat ?? 'blocked until'} in ${writeSpan(left)}`;
  const allowance = state === 'blocked' ? blocked : writeAllowance({ state, rate, pinned: null });
  return join(
    [
      scope !== 'upstream' || limits > 1 || which !== '' ? `${many}, ${one} ${allowance}` : allowance,
      queued > 0 ? `${writeCount(queued)} waiting` : undefined,
    ],
    ', ',
  );
}

/**
 * @param {NestedLimitStatus} limit
 * @returns {Mood}
 */
export function moodOfNested({ state }) {
  if (state === 'blocked') return 'trouble';
  return state === 'backoff' ? 'wary' : 'well';
}

/**
 * What is out of the ordinary with the process itself, the worst first.
 * @param {Status} status
 * @returns {readonly {readonly mood: Mood, readonly text: string}[]}
 */
export function writeNotices({ phase, mode, store, config }) {
  /** @type {{readonly mood: Mood, readonly text: string}[]} */
  const notices = [];
  /**
   * @param {Mood} mood
   * @param {string} text
   */
  const note = (mood, text) => notices.push({ mood, text });
  if (phase === 'draining') note('trouble', 'Draining: it takes no more requests, and ends when all are answered.');
  if (phase === 'starting') note('wary', 'Starting: it takes no requests yet.');
  if (store.degraded) {
    note('trouble', `The store (${store.kind}) does not answer: this process limits on its own until it does.`);
  }
  const { lastReload } = config;
  if (lastReload?.ok === false) {
    const why = lastReload.problem ?? 'No reason was told.';
    note('trouble', `The config of ${writeClock(lastReload.at)} is not used: the one before still is. ${why}`);
  }
  if (mode === 'observe') note('well', 'Observing: all is forwarded at once, nothing held back, refused or retried.');
  return notices;
}

/**
 * @param {readonly (string | undefined)[]} parts
 * @param {string} by
 */
function join(parts, by) {
  return parts.filter((part) => part !== undefined).join(by);
}
