import type { LimitState, LimitView, Scope } from '../../core/events/proxy-events.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Steering } from '../../core/limits/operator-override.ts';
import { isSteered } from '../../core/limits/operator-override.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { NestedLook } from './process-api.ts';

/** What an upstream's own limits come to, or the nested ones of one name. */
export interface Survey {
  readonly limits: number;
  readonly inFlight: number;
  readonly queued: number;
  /** The one nearest to trouble. */
  readonly nearest: Limit | undefined;
}

export const NOTHING_FELT: Survey = { limits: 0, inFlight: 0, queued: 0, nearest: undefined };

const TROUBLE: readonly LimitState[] = ['open', 'restoring', 'cooldown', 'backoff', 'blocked'];

/**
 * By upstream and name, in one pass: there may be one for each client.
 * @param scopeOf of an upstream's own limits: what is of another is a line for room
 */
export function surveyLimits(
  limits: Iterable<Limit>,
  now: Millis,
  scopeOf: (upstream: string) => Scope | undefined,
): Surveys {
  const surveys = new Map<string, Map<string, Growing>>();
  for (const limit of limits) {
    const { upstream, nested, scope } = limit.ref;
    if (nested === '' && scope !== scopeOf(upstream)) continue;
    const ofUpstream = surveys.get(upstream) ?? new Map<string, Growing>();
    surveys.set(upstream, ofUpstream);
    const survey = ofUpstream.get(nested);
    if (survey === undefined) {
      ofUpstream.set(nested, { limits: 1, inFlight: limit.meter.inFlight, queued: limit.queue.size, nearest: limit });
      continue;
    }
    survey.limits += 1;
    survey.queued += limit.queue.size;
    survey.inFlight += limit.meter.inFlight;
    if (isNearer(limit, survey.nearest, now)) survey.nearest = limit;
  }
  return surveys;
}

interface Growing {
  limits: number;
  inFlight: number;
  queued: number;
  nearest: Limit;
}

/** By upstream, and by the name of a nested limit; that of its own is empty. */
export type Surveys = ReadonlyMap<string, ReadonlyMap<string, Survey>>;

/** @param names of the nested limits that are configured, felt or not, each with its scope */
export function lookAtNested(
  surveys: ReadonlyMap<string, Survey> | undefined,
  names: Iterable<readonly [name: string, scope: Scope]>,
  now: Millis,
): NestedLook[] {
  return [...names].map(([name, scope]) => {
    const { nearest, limits, queued, inFlight } = surveys?.get(name) ?? NOTHING_FELT;
    return { name, scope, limits, nearest: nearest?.view(now), queued, inFlight };
  });
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
