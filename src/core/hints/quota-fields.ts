/**
 * Parses quotas from the RateLimit fields of every draft and from their older relatives.
 */
import type { Millis } from '../scalars.ts';
import type { Quota } from './hints.ts';
import {
  roundDelay,
  maxDefined,
  MAX_DELAY,
  MAX_HINTED_DELAY,
  parseDecimal,
  clampCount,
  minDefined,
} from './hint-numbers.ts';
import { parseDelay, parseReset } from './parse-delay.ts';
import { forEachValue } from './single-value-field.ts';
import { type FieldMember, parseMembers } from './structured-fields.ts';

/** The -Limit, -Remaining and -Reset fields of one family, as collected so far. Of duplicates, the most restrictive value. */
export interface QuotaCounters {
  remaining: number | undefined;
  limit: number | undefined;
  reset: Millis | undefined;
  /** A reset given as a delay. It needs no clock, so it is preferred to `reset`. */
  resetAfter: Millis | undefined;
  window: Millis | undefined;
  /** The upstream reported a limit of 0. */
  isLimitZero: boolean;
}

export function makeQuotaCounters(): QuotaCounters {
  return {
    ...{ remaining: undefined, limit: undefined, reset: undefined, resetAfter: undefined, window: undefined },
    isLimitZero: false,
  };
}

/** A number, or several of which the smallest counts. */
export function recordRemaining(counters: QuotaCounters, field: string): void {
  forEachValue(field, (value) => {
    counters.remaining = minDefined(counters.remaining, clampCount(parseDecimal(value)));
  });
}

/** A number, or the list of earlier drafts and of Envoy: `10, 10;w=1, 1000;w=3600`, of which the first is in force. */
export function recordLimit(counters: QuotaCounters, value: string): void {
  let limit = parseDecimal(value);
  let window: Millis | undefined;
  if (limit === undefined) {
    const members = parseMembers(value) ?? [];
    limit = numberOf(members[0]?.value);
    window = windowOf(members.find((member) => member.value === limit && windowOf(member) !== undefined));
  }
  if (limit === 0) counters.isLimitZero = true;
  limit = plausibleLimit(limit);
  if (limit === undefined || (counters.limit !== undefined && counters.limit <= limit)) return;
  counters.limit = limit;
  counters.window = window;
}

/** A number in any unit, a duration or a date, as `parseReset` reads them. */
export function recordReset(counters: QuotaCounters, field: string, sentAt: () => Millis): void {
  forEachValue(field, (value) => {
    const delay = parseReset(value, sentAt);
    if (delay !== undefined) counters.reset = maxDefined(counters.reset, roundDelay(delay));
  });
}

/** Seconds, or a duration. */
export function recordResetAfter(counters: QuotaCounters, field: string, sentAt: () => Millis): void {
  forEachValue(field, (value) => {
    const delay = parseDelay(value, sentAt);
    if (delay !== undefined) counters.resetAfter = maxDefined(counters.resetAfter, roundDelay(delay));
  });
}

/**
 * @param isSpent the upstream has just rejected the request for its quota: a reset without a count then means that nothing is
 *   left (Square: "Retry-After, then X-RateLimit-Reset").
 */
export function toQuota(counters: QuotaCounters, isSpent: boolean): Quota | undefined {
  const resetIn = counters.resetAfter ?? counters.reset;
  const remaining = counters.remaining ?? (isSpent && resetIn !== undefined ? 0 : undefined);
  // 0 left of a limit of 0, and yet the upstream serves the request: the fields carry no meaning.
  if (remaining === undefined || (remaining === 0 && counters.isLimitZero && !isSpent)) return undefined;
  return { remaining, limit: counters.limit, resetIn: boundReset(resetIn, remaining), window: counters.window };
}

/** A reset beyond a month sets no pace: it is an epoch in place of a delay. An exhausted quota stays exhausted for MAX_DELAY. */
function boundReset(resetIn: Millis | undefined, remaining: number): Millis | undefined {
  if (resetIn === undefined || resetIn <= MAX_DELAY) return resetIn;
  return remaining > 0 ? undefined : MAX_DELAY;
}

const CALLS_MADE = /^[ \t]*(\d+)\/(\d+)[ \t]*$/;

/** X-Shopify-Shop-Api-Call-Limit: how full the leaky bucket is, `32/40`. */
export function parseBucketField(value: string): Quota | undefined {
  const [, used, size] = CALLS_MADE.exec(value) ?? [];
  const limit = plausibleLimit(Number(size)); // NaN without a size
  if (limit === undefined) return undefined;
  return { remaining: Math.max(0, limit - Number(used)), limit, resetIn: undefined, window: undefined };
}

/**
 * `RateLimit` with `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers): `"p";r=50;t=30` with `"p";q=100;w=60`
 * since draft 08, `limit=100, remaining=50, reset=30` with `100;w=60` in draft 07. Several policies: the tightest.
 * Quotas in units other than requests (bytes, concurrent requests) say nothing about a rate and are skipped.
 */
export function parseRateLimitField(field: string, policyField: string): Quota | undefined {
  const members = parseMembers(field) ?? [];
  const policies = parseMembers(policyField) ?? [];
  if (members.some((member) => member.key !== undefined)) return parseDraft7(members, policies);
  let quota: Quota | undefined;
  for (const member of members) {
    const policy = policies.find((candidate) => candidate.value === member.value);
    const unit = policy?.parameters.get('qu');
    if (unit !== undefined && unit !== 'requests') continue;
    const remaining = clampCount(numberOf(member.parameters.get('r')));
    if (remaining === undefined) continue;
    const limit = plausibleLimit(numberOf(policy?.parameters.get('q')));
    const resetIn = boundReset(secondsOf(member.parameters.get('t')), remaining);
    quota = stricterQuota(quota, { remaining, limit, resetIn, window: windowOf(policy) });
  }
  return quota;
}

function parseDraft7(members: readonly FieldMember[], policies: readonly FieldMember[]): Quota | undefined {
  // In a Dictionary the last of equal keys counts (RFC 9651 §4.2.2).
  const valueOf = (key: string) => members.findLast((member) => member.key === key)?.value;
  const remaining = clampCount(numberOf(valueOf('remaining')));
  if (remaining === undefined) return undefined;
  const limit = plausibleLimit(numberOf(valueOf('limit')));
  const window = limit === undefined ? undefined : windowOf(policies.find((policy) => policy.value === limit));
  return { remaining, limit, resetIn: boundReset(secondsOf(valueOf('reset')), remaining), window };
}

/**
 * The stricter of two quotas: an exhausted one, and of two exhausted ones the one that resets later; otherwise the one with
 * the slower pace, computed as quota pacing computes it: max(limit/window, remaining/time left).
 */
export function stricterQuota(a: Quota | undefined, b: Quota | undefined): Quota | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  if (a.remaining === 0 && b.remaining === 0) return (b.resetIn ?? -1) > (a.resetIn ?? -1) ? b : a;
  if (a.remaining === 0 || b.remaining === 0) return a.remaining === 0 ? a : b;
  const [paceOfA, paceOfB] = [quotaPace(a), quotaPace(b)];
  if (paceOfA !== paceOfB) return paceOfB < paceOfA ? b : a;
  return b.remaining < a.remaining ? b : a;
}

/** Requests a millisecond; Infinity if the upstream reports only a count. */
function quotaPace({ remaining, limit, resetIn, window }: Quota): number {
  const whole = limit === undefined || window === undefined ? 0 : limit / window;
  const left = resetIn === undefined ? 0 : remaining / resetIn;
  return Math.max(whole, left) || Number.POSITIVE_INFINITY;
}

/**
 * The reset of an exhausted quota is a "not before" and bounded like one. While requests are left, the reset only sets a
 * pace, and cutting an hour to five minutes would make that pace twelve times too fast.
 */
export function clampSpentReset(quota: Quota): Quota {
  if (quota.remaining > 0 || quota.resetIn === undefined || quota.resetIn <= MAX_HINTED_DELAY) return quota;
  return { ...quota, resetIn: MAX_HINTED_DELAY };
}

function numberOf(value: number | string | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

function secondsOf(value: number | string | undefined): Millis | undefined {
  return typeof value === 'number' ? roundDelay(value * 1000) : undefined;
}

/** `w`, or `window` as some upstreams spell it. A window of length 0 is ignored. */
function windowOf(policy: FieldMember | undefined): Millis | undefined {
  const window = secondsOf(policy?.parameters.get('w') ?? policy?.parameters.get('window')) || undefined;
  return window !== undefined && window <= MAX_DELAY ? window : undefined;
}

function plausibleLimit(limit: number | undefined): number | undefined {
  return clampCount(limit) || undefined;
}
