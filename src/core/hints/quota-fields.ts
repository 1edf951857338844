/**
 * What is left of a quota, from the RateLimit fields of every draft and from their older relatives.
 */
import type { Millis, Quota } from '../exchange/attempt-outcome.ts';
import { anyDelay, larger, LONGEST, MAX_HINT, parseDecimal, plausibleCount, smaller } from './hint-numbers.ts';
import { parseDelay, parseReset } from './parse-delay.ts';
import { eachValue } from './single-value-field.ts';
import { type Member, parseMembers } from './structured-fields.ts';

/** One family of -Limit, -Remaining, -Reset fields, as far as read. Of duplicates, the most restrictive value. */
export interface Tally {
  remaining: number | undefined;
  limit: number | undefined;
  reset: Millis | undefined;
  /** A reset told as a delay; needs no clock, so it is preferred to `reset`. */
  resetAfter: Millis | undefined;
  window: Millis | undefined;
  /** A limit of 0 was told. */
  isNothing: boolean;
}

export function emptyTally(): Tally {
  return {
    ...{ remaining: undefined, limit: undefined, reset: undefined, resetAfter: undefined, window: undefined },
    isNothing: false,
  };
}

/** A number, or several of which the smallest counts. */
export function noteRemaining(tally: Tally, field: string): void {
  eachValue(field, (value) => {
    tally.remaining = smaller(tally.remaining, plausibleCount(parseDecimal(value)));
  });
}

/** A number, or the list of earlier drafts and of Envoy: `10, 10;w=1, 1000;w=3600`, where the first is the one in force. */
export function noteLimit(tally: Tally, value: string): void {
  let limit = parseDecimal(value);
  let window: Millis | undefined;
  if (limit === undefined) {
    const members = parseMembers(value) ?? [];
    limit = numberOf(members[0]?.value);
    window = windowOf(members.find((member) => member.value === limit && windowOf(member) !== undefined));
  }
  if (limit === 0) tally.isNothing = true;
  limit = plausibleLimit(limit);
  if (limit === undefined || (tally.limit !== undefined && tally.limit <= limit)) return;
  tally.limit = limit;
  tally.window = window;
}

/** A number in whatever unit, a duration or a date, as `parseReset` reads them. */
export function noteReset(tally: Tally, field: string, sentAt: () => Millis): void {
  eachValue(field, (value) => {
    const delay = parseReset(value, sentAt);
    if (delay !== undefined) tally.reset = larger(tally.reset, anyDelay(delay));
  });
}

/** Seconds, or a duration. */
export function noteResetAfter(tally: Tally, field: string, sentAt: () => Millis): void {
  eachValue(field, (value) => {
    const delay = parseDelay(value, sentAt);
    if (delay !== undefined) tally.resetAfter = larger(tally.resetAfter, anyDelay(delay));
  });
}

/**
 * @param spent the upstream has just refused for its quota: a reset that comes without a count then counts from zero
 *   (Square: "Retry-After, then X-RateLimit-Reset").
 */
export function tallyToQuota(tally: Tally, spent: boolean): Quota | undefined {
  const resetIn = tally.resetAfter ?? tally.reset;
  const remaining = tally.remaining ?? (spent && resetIn !== undefined ? 0 : undefined);
  // Nothing left of nothing: who serves all the same does not mean it.
  if (remaining === undefined || (remaining === 0 && tally.isNothing && !spent)) return undefined;
  return { remaining, limit: tally.limit, resetIn: boundReset(resetIn, remaining), window: tally.window };
}

/** Beyond a month it is no pace: somebody wrote an epoch where a delay belongs. A quota that is spent stays so for long. */
function boundReset(resetIn: Millis | undefined, remaining: number): Millis | undefined {
  if (resetIn === undefined || resetIn <= LONGEST) return resetIn;
  return remaining > 0 ? undefined : LONGEST;
}

const CALLS_MADE = /^[ \t]*(\d+)\/(\d+)[ \t]*$/;

/** X-Shopify-Shop-Api-Call-Limit: how full the leaky bucket is, `32/40`. */
export function readBucket(value: string): Quota | undefined {
  const [, used, size] = CALLS_MADE.exec(value) ?? [];
  const limit = plausibleLimit(size === undefined ? undefined : Number(size));
  if (limit === undefined) return undefined;
  return { remaining: Math.max(0, limit - Number(used)), limit, resetIn: undefined, window: undefined };
}

/**
 * `RateLimit` with `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers): `"p";r=50;t=30` with `"p";q=100;w=60`
 * since draft 08, `limit=100, remaining=50, reset=30` with `100;w=60` in draft 07. Several policies: the tightest.
 * Quotas in other units than requests (bytes, concurrent requests) say nothing about a rate and are passed over.
 */
export function readRateLimit(field: string, policyField: string): Quota | undefined {
  const members = parseMembers(field) ?? [];
  const policies = parseMembers(policyField) ?? [];
  if (members.some((member) => member.key !== undefined)) return readDraft7(members, policies);
  let quota: Quota | undefined;
  for (const member of members) {
    const policy = policies.find((candidate) => candidate.value === member.value);
    const unit = policy?.parameters.get('qu');
    if (unit !== undefined && unit !== 'requests') continue;
    const remaining = plausibleCount(numberOf(member.parameters.get('r')));
    if (remaining === undefined) continue;
    const limit = plausibleLimit(numberOf(policy?.parameters.get('q')));
    const resetIn = boundReset(secondsOf(member.parameters.get('t')), remaining);
    quota = tighter(quota, { remaining, limit, resetIn, window: windowOf(policy) });
  }
  return quota;
}

function readDraft7(members: readonly Member[], policies: readonly Member[]): Quota | undefined {
  // In a Dictionary the last of equal keys counts (RFC 9651 §4.2.2).
  const told = (key: string) => members.findLast((member) => member.key === key)?.value;
  const remaining = plausibleCount(numberOf(told('remaining')));
  if (remaining === undefined) return undefined;
  const limit = plausibleLimit(numberOf(told('limit')));
  const window = limit === undefined ? undefined : windowOf(policies.find((policy) => policy.value === limit));
  return { remaining, limit, resetIn: boundReset(secondsOf(told('reset')), remaining), window };
}

/**
 * The quota that restrains more: one that is spent, and of those the one that stays so for longest; else the one
 * with the slower pace, reckoned as the pacing reckons it: max(limit/window, remaining/time left).
 */
export function tighter(a: Quota | undefined, b: Quota | undefined): Quota | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  if (a.remaining === 0 && b.remaining === 0) return (b.resetIn ?? -1) > (a.resetIn ?? -1) ? b : a;
  if (a.remaining === 0 || b.remaining === 0) return a.remaining === 0 ? a : b;
  const [paceOfA, paceOfB] = [paceOf(a), paceOf(b)];
  if (paceOfA !== paceOfB) return paceOfB < paceOfA ? b : a;
  return b.remaining < a.remaining ? b : a;
}

/** Requests a millisecond; Infinity where only a count is told. */
function paceOf({ remaining, limit, resetIn, window }: Quota): number {
  const whole = limit === undefined || window === undefined ? 0 : limit / window;
  const left = resetIn === undefined ? 0 : remaining / resetIn;
  return Math.max(whole, left) || Number.POSITIVE_INFINITY;
}

/**
 * A spent quota's reset is a "not before" and bounded like one. While something is left the reset only sets a pace,
 * and cutting an hour to five minutes would make that pace twelve times too fast.
 */
export function boundStop(quota: Quota): Quota {
  if (quota.remaining > 0 || quota.resetIn === undefined || quota.resetIn <= MAX_HINT) return quota;
  return { ...quota, resetIn: MAX_HINT };
}

function numberOf(value: number | string | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

function secondsOf(value: number | string | undefined): Millis | undefined {
  return typeof value === 'number' ? anyDelay(value * 1000) : undefined;
}

/** `w`, or `window` as some upstreams spell it. A window of no length is none. */
function windowOf(policy: Member | undefined): Millis | undefined {
  const window = secondsOf(policy?.parameters.get('w') ?? policy?.parameters.get('window')) || undefined;
  return window !== undefined && window <= LONGEST ? window : undefined;
}

function plausibleLimit(limit: number | undefined): number | undefined {
  return plausibleCount(limit) || undefined;
}
