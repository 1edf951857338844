/** What stations tell, in the words of the admin API. */
import type {
  ClientRow,
  NestedLimitStatus,
  RequestRow,
  Status,
  TimelineEvent,
  UpstreamStatus,
} from '../api/response-schemas.ts';
import { NOTHING_SENT, quantile } from '../../telemetry/metrics/request-counts.ts';
import type { EndedRequest } from '../../telemetry/history/recent-requests.ts';
import type { Moment } from '../../telemetry/history/timeline.ts';
import type { EndpointView, LimitView } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Span } from './counter-rates.ts';
import { perSecond, round } from './counter-rates.ts';
import type { ClientLook, NestedLook, UpstreamLook } from './process-api.ts';

/** When it is, by both clocks. */
export interface Moments {
  readonly now: Millis;
  /** Milliseconds of the epoch at the origin of the monotonic clock. */
  readonly origin: Millis;
}

export function describeUpstream(
  look: UpstreamLook,
  span: Span,
  endpoints: readonly EndpointView[],
  moments: Moments,
): UpstreamStatus {
  const { name, scope, nearest, limits, queued, inFlight, budget, nested } = look;
  const after = span.after.upstreams.get(name) ?? NOTHING_SENT;
  const before = span.before.upstreams.get(name) ?? NOTHING_SENT;
  const long = span.longBefore.upstreams.get(name) ?? NOTHING_SENT;
  return {
    name,
    scope,
    state: nearest?.state ?? 'open',
    ...describeEnd(nearest, moments),
    blockedBy: nearest?.state !== 'blocked' ? null : nearest.isStopped === true ? 'operator' : 'upstream',
    rate: bounded(nearest?.rate),
    ceiling: bounded(nearest?.ceiling),
    places: nearest?.places ?? null,
    pinned: bounded(nearest?.pinned),
    learnedRate: bounded(nearest?.learned ?? nearest?.rate),
    limits,
    sentPerSecond: perSecond(span, before.sent, after.sent),
    acceptedPerSecond: perSecond(span, before.accepted, after.accepted),
    throttledPerSecond: perSecond(span, before.throttled, after.throttled),
    retriesPerSecond: perSecond(span, before.retries, after.retries),
    queued,
    inFlight,
    quotaLeft: nearest?.quotaLeft === undefined ? null : round(nearest.quotaLeft),
    budgetLeft: round(budget),
    p50Seconds: seconds(quantile(0.5, long.durations, after.durations)),
    p99Seconds: seconds(quantile(0.99, long.durations, after.durations)),
    nestedLimits: nested.map((each) => describeNested(each, moments)),
    endpoints: endpoints
      .filter(({ upstream }) => upstream === name)
      .map(({ endpoint, isHealthy }) => ({ endpoint, healthy: isHealthy })),
  };
}

function describeNested(
  { name, scope, nearest, limits, queued, inFlight }: NestedLook,
  moments: Moments,
): NestedLimitStatus {
  return {
    name,
    scope,
    which: scope === 'upstream' ? (nearest?.key ?? '') : '',
    state: nearest?.state ?? 'open',
    ...describeEnd(nearest, moments),
    rate: bounded(nearest?.rate),
    ceiling: bounded(nearest?.ceiling),
    places: nearest?.places ?? null,
    quotaLeft: nearest?.quotaLeft === undefined ? null : round(nearest.quotaLeft),
    limits,
    queued,
    inFlight,
  };
}

export function describeRequests(span: Span): Status['requests'] {
  const { after, before, longBefore } = span;
  const total = (outcomes: Status['requests']['outcomes']): number =>
    Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  return {
    perSecond: perSecond(span, total(before.outcomes), total(after.outcomes)),
    inFlight: after.inFlight,
    p50Seconds: seconds(quantile(0.5, longBefore.durations, after.durations)),
    p99Seconds: seconds(quantile(0.99, longBefore.durations, after.durations)),
    outcomes: after.outcomes,
  };
}

export function describeClient(look: ClientLook, moments: Moments): ClientRow {
  const { key, upstream, state, allowance, demand, share, queued, heldUntil, nextSlot, calmAt, lastSeen } = look;
  return {
    key,
    upstream,
    state,
    allowance: round(allowance),
    demandPerSecond: round(demand),
    sharePerSecond: share === undefined ? null : round(share),
    queued,
    heldUntil: heldUntil > moments.now ? iso(heldUntil, moments) : null,
    nextSlot: iso(nextSlot, moments),
    calmAt: calmAt > moments.now ? iso(calmAt, moments) : null,
    lastSeen: iso(lastSeen, moments),
  };
}

export function describeRequest({ at, record }: EndedRequest): RequestRow {
  const { id, route, upstream, client, method, path, status, outcome, reason, attempts, took } = record;
  return {
    id,
    at: new Date(at).toISOString(),
    route,
    upstream,
    client,
    method,
    path,
    status,
    outcome,
    reason: reason ?? null,
    attempts,
    tookSeconds: Math.round(took) / 1000,
  };
}

export function describeMoment({ number, at, kind, upstream, text }: Moment, station: number): TimelineEvent {
  return { id: `${station}-${number}`, at: new Date(at).toISOString(), kind, upstream: upstream ?? null, text };
}

/** A monotonic time; null where it is none. */
export function iso(at: Millis | undefined, { origin }: Moments): string | null {
  return at === undefined || !Number.isFinite(at) ? null : new Date(origin + at).toISOString();
}

function describeEnd(view: LimitView | undefined, moments: Moments): Pick<UpstreamStatus, 'until' | 'untilWhat'> {
  if (view?.state === 'cooldown' && view.cooldownUntil !== undefined) {
    return { until: iso(view.cooldownUntil, moments), untilWhat: 'cooldown ends' };
  }
  if (view?.state !== 'blocked') return { until: null, untilWhat: null };
  const { blockedUntil, isProbed, isStopped } = view;
  const untilWhat = isProbed === true && isStopped !== true ? 'next probe' : 'blocked until';
  // In the past: the probe is out, or the next request is it.
  const until = blockedUntil === undefined || blockedUntil <= moments.now ? null : iso(blockedUntil, moments);
  return { until, untilWhat: until === null && isStopped === true ? null : untilWhat };
}

/** JSON has no Infinity. */
function bounded(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : round(value);
}

function seconds(time: Millis | undefined): number | null {
  return time === undefined ? null : Math.round(time * 1000) / 1e6;
}
