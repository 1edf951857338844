import type { LimitState, LimitView, Scope } from '../policy/events.ts';
import type { Limit } from '../policy/limit.ts';
import type { LimitRef } from '../policy/limit-ref.ts';
import type { Steering } from '../policy/steering.ts';
import { isSteered } from '../policy/steering.ts';
import type { Millis } from '../policy/types.ts';

/** What the limits of one upstream come to. */
export interface Survey {
  readonly limits: number;
  readonly inFlight: number;
  /** The one nearest to trouble. */
  readonly nearest: Limit | undefined;
}

export const NOTHING_FELT: Survey = { limits: 0, inFlight: 0, nearest: undefined };

const TROUBLE: readonly LimitState[] = ['open', 'restoring', 'cooldown', 'backoff', 'blocked'];

/** By upstream, in one pass: there may be one for each client. @param scopeOf what is no limit of this scope is a line for room */
export function surveyLimits(
  limits: Iterable<Limit>,
  now: Millis,
  scopeOf: (upstream: string) => Scope | undefined,
): ReadonlyMap<string, Survey> {
  const surveys = new Map<string, { limits: number; inFlight: number; nearest: Limit }>();
  for (const limit of limits) {
    const { upstream, scope } = limit.ref;
    if (scope !== scopeOf(upstream)) continue;
    const survey = surveys.get(upstream);
    if (survey === undefined) {
      surveys.set(upstream, { limits: 1, inFlight: limit.meter.inFlight, nearest: limit });
      continue;
    }
    survey.limits += 1;
    survey.inFlight += limit.meter.inFlight;
    if (isNearer(limit, survey.nearest, now)) survey.nearest = limit;
  }
  return surveys;
}

function isNearer(one: Limit, other: Limit, now: Millis): boolean {
  const [a, b] = [troubleOf(one, now), troubleOf(other, now)];
  return a === b ? one.meter.rate(now) < other.meter.rate(now) : a > b;
}

function troubleOf(limit: Limit, now: Millis): number {
  return TROUBLE.indexOf(limit.isBlocked(now) ? 'blocked' : limit.meter.phase);
}

/** Of what several processes tell of one limit. */
export function isNearerView(one: LimitView, other: LimitView): boolean {
  const [a, b] = [TROUBLE.indexOf(one.state), TROUBLE.indexOf(other.state)];
  return a === b ? one.rate < other.rate : a > b;
}

/** How a limit would look that nobody has come to yet, by what an operator wants of it; undefined where nobody wants anything. */
export function steeredView(ref: LimitRef, steering: Steering, now: Millis): LimitView | undefined {
  if (!isSteered(steering, now)) return undefined;
  const { pinned, blockedUntil } = steering;
  const isStopped = blockedUntil > now;
  return {
    ...ref,
    state: isStopped ? 'blocked' : 'open',
    rate: pinned ?? Number.POSITIVE_INFINITY,
    ceiling: Number.POSITIVE_INFINITY,
    places: undefined,
    blockedUntil: isStopped && Number.isFinite(blockedUntil) ? blockedUntil : undefined,
    quotaLeft: undefined,
    queued: 0,
    inFlight: 0,
    pinned,
    learned: Number.POSITIVE_INFINITY,
    isStopped,
  };
}
