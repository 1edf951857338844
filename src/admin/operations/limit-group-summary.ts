import type { LimitState, LimitScope } from '../../core/limits/limit-state.ts';
import type { LimitView } from '../../core/events/gate-views.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { OperatorOverride } from '../../core/limits/operator-override.ts';
import { isOverridden } from '../../core/limits/operator-override.ts';
import type { Millis } from '../../core/scalars.ts';
import type { NestedLimitView } from './process-api.ts';

/** Summary of the limits of an upstream, or of its nested limits of one name. */
export interface LimitGroupSummary {
  readonly limits: number;
  readonly inFlight: number;
  readonly queued: number;
  /** The limit in the most severe state, and of those the one with the lowest rate. */
  readonly mostCritical: Limit | undefined;
}

export const EMPTY_SUMMARY: LimitGroupSummary = { limits: 0, inFlight: 0, queued: 0, mostCritical: undefined };

const STATE_SEVERITY: readonly LimitState[] = ['open', 'restoring', 'cooldown', 'backoff', 'blocked'];

/**
 * Summarises limits by upstream and name in one pass, because there may be one for each client.
 * @param scopeOf scope of an upstream's own limits; a limit of another scope is the queue for connections and is skipped
 */
export function summarizeLimits(
  limits: Iterable<Limit>,
  now: Millis,
  scopeOf: (upstream: string) => LimitScope | undefined,
): LimitGroupSummaries {
  const summaries = new Map<string, Map<string, MutableGroupSummary>>();
  for (const limit of limits) {
    const { upstream, nested, scope } = limit.ref;
    if (nested === '' && scope !== scopeOf(upstream)) continue;
    const ofUpstream = summaries.get(upstream) ?? new Map<string, MutableGroupSummary>();
    summaries.set(upstream, ofUpstream);
    const summary = ofUpstream.get(nested);
    if (summary === undefined) {
      ofUpstream.set(nested, {
        limits: 1,
        inFlight: limit.meter.inFlight,
        queued: limit.queue.size,
        mostCritical: limit,
      });
      continue;
    }
    summary.limits += 1;
    summary.queued += limit.queue.size;
    summary.inFlight += limit.meter.inFlight;
    if (isMoreCritical(limit, summary.mostCritical, now)) summary.mostCritical = limit;
  }
  return summaries;
}

interface MutableGroupSummary {
  limits: number;
  inFlight: number;
  queued: number;
  mostCritical: Limit;
}

/** By upstream and name of the nested limit; the name of an upstream's own limits is empty. */
export type LimitGroupSummaries = ReadonlyMap<string, ReadonlyMap<string, LimitGroupSummary>>;

/** @param names all configured nested limits, each with its scope */
export function nestedLimitViews(
  summaries: ReadonlyMap<string, LimitGroupSummary> | undefined,
  names: Iterable<readonly [name: string, scope: LimitScope]>,
  now: Millis,
): NestedLimitView[] {
  return [...names].map(([name, scope]) => {
    const { mostCritical, limits, queued, inFlight } = summaries?.get(name) ?? EMPTY_SUMMARY;
    return { name, scope, limits, mostCritical: mostCritical?.view(now), queued, inFlight };
  });
}

function isMoreCritical(one: Limit, other: Limit, now: Millis): boolean {
  const [a, b] = [severityOf(one, now), severityOf(other, now)];
  return a === b ? one.meter.rate(now) < other.meter.rate(now) : a > b;
}

function severityOf(limit: Limit, now: Millis): number {
  return STATE_SEVERITY.indexOf(limit.isBlocked(now) ? 'blocked' : limit.meter.phase);
}

/** Compares the views that two processes have of one limit. */
export function isViewMoreCritical(one: LimitView, other: LimitView): boolean {
  const [a, b] = [STATE_SEVERITY.indexOf(one.state), STATE_SEVERITY.indexOf(other.state)];
  return a === b ? one.rate < other.rate : a > b;
}

/** The view of a limit that has no requests yet, by the override of an operator; undefined without an override. */
export function overrideView(ref: LimitRef, override: OperatorOverride, now: Millis): LimitView | undefined {
  if (!isOverridden(override, now)) return undefined;
  const { pinnedRate, blockedUntil } = override;
  const isBlocked = blockedUntil > now;
  return {
    ...ref,
    state: isBlocked ? 'blocked' : 'open',
    rate: pinnedRate ?? Number.POSITIVE_INFINITY,
    ceiling: Number.POSITIVE_INFINITY,
    concurrencyLimit: undefined,
    blockedUntil: isBlocked && Number.isFinite(blockedUntil) ? blockedUntil : undefined,
    quotaLeft: undefined,
    queued: 0,
    inFlight: 0,
    pinnedRate,
    learnedRate: Number.POSITIVE_INFINITY,
    isBlockedByOperator: isBlocked,
  };
}
