/** Converts the views of processes to rows of the admin API. */
import type { ClientRow, RequestRow, ProcessStatus, TimelineEvent } from '../api/response-schemas.ts';
import type { AccountStatus, NestedLimitStatus, QuotaStatus, UpstreamStatus } from '../api/upstream-schemas.ts';
import { ZERO_UPSTREAM_COUNTS, histogramQuantile } from '../../telemetry/metrics/request-counts.ts';
import type { EndedRequest } from '../../telemetry/history/recent-requests.ts';
import type { TimelineEntry } from '../../telemetry/history/timeline.ts';
import { describeFailure } from '../../telemetry/describe-failure.ts';
import type { AccountView, EndpointFailure, EndpointView, LimitView } from '../../core/events/gate-views.ts';
import type { QuotaView } from '../../core/quota/calendar/calendar-quota.ts';
import type { Millis } from '../../core/scalars.ts';
import type { CounterWindow } from './counter-rates.ts';
import { ratePerSecond, roundToMilli } from './counter-rates.ts';
import type { ClientView, NestedLimitView, RefusalsView, UpstreamProcessView } from './process-api.ts';

/** The current time by both clocks. */
export interface ClockReading {
  readonly now: Millis;
  /** Wall-clock time at the origin of the monotonic clock, in milliseconds since 1970. */
  readonly origin: Millis;
}

export function toUpstreamStatus(
  view: UpstreamProcessView,
  window: CounterWindow,
  endpoints: readonly EndpointView[],
  clock: ClockReading,
  failedShare: number | undefined,
): UpstreamStatus {
  const { name, scope, mostCritical, limits, queued, inFlight, budget, isBudgetSpent, nested } = view;
  const after = window.after.upstreams.get(name) ?? ZERO_UPSTREAM_COUNTS;
  const before = window.before.upstreams.get(name) ?? ZERO_UPSTREAM_COUNTS;
  const long = window.longBefore.upstreams.get(name) ?? ZERO_UPSTREAM_COUNTS;
  return {
    name,
    scope,
    state: mostCritical?.state ?? 'open',
    ...describeUntil(mostCritical, clock),
    blockedBy:
      mostCritical?.state !== 'blocked' ? null : mostCritical.isBlockedByOperator === true ? 'operator' : 'upstream',
    blockedCause: blockedCause(mostCritical),
    rate: finiteOrNull(mostCritical?.rate),
    ceiling: finiteOrNull(mostCritical?.ceiling),
    places: mostCritical?.concurrencyLimit ?? null,
    pinned: finiteOrNull(mostCritical?.pinnedRate),
    learnedRate: finiteOrNull(mostCritical?.learnedRate ?? mostCritical?.rate),
    limits,
    sentPerSecond: ratePerSecond(window, before.sent, after.sent),
    acceptedPerSecond: ratePerSecond(window, before.accepted, after.accepted),
    throttledPerSecond: ratePerSecond(window, before.throttled, after.throttled),
    retriesPerSecond: ratePerSecond(window, before.retries, after.retries),
    failedPerSecond: ratePerSecond(window, before.failed, after.failed),
    failedShare: failedShare === undefined ? null : roundToMilli(failedShare),
    lastFailure: view.lastFailure === undefined ? null : toFailureRow(view.lastFailure, clock),
    refusedPerSecond: ratePerSecond(window, before.refused, after.refused),
    mostRefused: toMostRefused(view.refusals, clock),
    attempts: after.sent + after.reported,
    queued,
    inFlight,
    quotaLeft: mostCritical?.quotaLeft === undefined ? null : roundToMilli(mostCritical.quotaLeft),
    budgetLeft: roundToMilli(budget),
    budgetSpent: isBudgetSpent,
    p50Seconds: toSeconds(histogramQuantile(0.5, long.durations, after.durations)),
    p99Seconds: toSeconds(histogramQuantile(0.99, long.durations, after.durations)),
    nestedLimits: nested.map((each) => toNestedLimitStatus(each, clock)),
    quotas: (view.quotas ?? []).map(toQuotaStatus),
    accounts: (view.accounts ?? []).map((account) => toAccountStatus(account, clock)),
    endpoints: endpoints
      .filter(({ upstream }) => upstream === name)
      .map(({ endpoint, isHealthy, failure }) => ({
        endpoint,
        healthy: isHealthy,
        failure: failure === undefined ? null : toFailureRow(failure, clock),
      })),
  };
}

function toAccountStatus(
  { account, isQuarantined, isCommonlyRejected = false, since, probeAt, rate, inFlight }: AccountView,
  clock: ClockReading,
): AccountStatus {
  const [quarantinedSince, nextProbe] = [toIsoTime(since, clock), toIsoTime(probeAt, clock)];
  const quarantine = { quarantined: isQuarantined, commonlyRejected: isCommonlyRejected, quarantinedSince, nextProbe };
  return { name: account, ...quarantine, rate: finiteOrNull(rate), inFlight };
}

function toQuotaStatus({ name, limit, remaining, reserve, resetAt, exhaustedAt }: QuotaView): QuotaStatus {
  const exhausted = Number.isFinite(exhaustedAt) ? new Date(exhaustedAt).toISOString() : null;
  return { name, limit, remaining, reserve, resetAt: new Date(resetAt).toISOString(), exhaustedAt: exhausted };
}

function toFailureRow(
  failure: EndpointFailure,
  { origin }: ClockReading,
): NonNullable<UpstreamStatus['endpoints'][number]['failure']> {
  const { at, reason, code } = failure;
  return { at: new Date(origin + at).toISOString(), reason, code: code ?? null, text: describeFailure(failure) };
}

/** The client with at least half of the recent refusals; null if there is none. */
function toMostRefused({ total, clients }: RefusalsView, clock: ClockReading): UpstreamStatus['mostRefused'] {
  const most = clients.find(({ count }) => count >= total / 2);
  if (most === undefined) return null;
  const { key, name, count, demand, share, heldUntil } = most;
  return {
    key,
    name: name ?? null,
    shareOfRefusals: roundToMilli(count / total),
    demandPerSecond: roundToMilli(demand),
    sharePerSecond: share === undefined ? null : roundToMilli(share),
    heldUntil: heldUntil > clock.now ? toIsoTime(heldUntil, clock) : null,
  };
}

/** Null without a block of the upstream, or if its cause is not known in this process. */
function blockedCause(view: LimitView | undefined): UpstreamStatus['blockedCause'] {
  if (view?.state !== 'blocked' || view.isBlockedByOperator === true) return null;
  if (view.block !== undefined) return view.block.cause;
  if (view.isProbed === true) return null;
  return view.quotaLeft === 0 ? 'quota' : 'retry_after';
}

function toNestedLimitStatus(
  { name, scope, mostCritical, limits, queued, inFlight }: NestedLimitView,
  clock: ClockReading,
): NestedLimitStatus {
  return {
    name,
    scope,
    which: scope === 'upstream' ? (mostCritical?.key ?? '') : '',
    state: mostCritical?.state ?? 'open',
    ...describeUntil(mostCritical, clock),
    blockedCause: blockedCause(mostCritical),
    rate: finiteOrNull(mostCritical?.rate),
    ceiling: finiteOrNull(mostCritical?.ceiling),
    places: mostCritical?.concurrencyLimit ?? null,
    quotaLeft: mostCritical?.quotaLeft === undefined ? null : roundToMilli(mostCritical.quotaLeft),
    limits,
    queued,
    inFlight,
  };
}

export function toRequestTotals(window: CounterWindow): ProcessStatus['requests'] {
  const { after, before, longBefore, longSeconds } = window;
  const total = (outcomes: ProcessStatus['requests']['outcomes']): number =>
    Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  return {
    perSecond: ratePerSecond(window, total(before.outcomes), total(after.outcomes)),
    // A second of an outage with few requests has none or several: such a rate would come and go.
    failedPerSecond: ratePerSecond({ seconds: longSeconds }, longBefore.serverErrors, after.serverErrors),
    failed: after.serverErrors,
    inFlight: after.inFlight,
    p50Seconds: toSeconds(histogramQuantile(0.5, longBefore.durations, after.durations)),
    p99Seconds: toSeconds(histogramQuantile(0.99, longBefore.durations, after.durations)),
    outcomes: after.outcomes,
  };
}

export function toClientRow(view: ClientView, clock: ClockReading): ClientRow {
  const { key, name, upstream, state, allowance, demand, share, queued, heldUntil, nextSlot, calmAt, lastSeen } = view;
  return {
    key,
    name: name ?? null,
    upstream,
    state,
    allowance: roundAllowance(allowance),
    demandPerSecond: roundToMilli(demand),
    sharePerSecond: share === undefined ? null : roundToMilli(share),
    queued,
    heldUntil: heldUntil > clock.now ? toIsoTime(heldUntil, clock) : null,
    nextSlot: toIsoTime(nextSlot, clock),
    calmAt: calmAt > clock.now ? toIsoTime(calmAt, clock) : null,
    lastSeen: toIsoTime(lastSeen, clock),
  };
}

/** A client that is still restoring has not its whole allowance back, however little is missing. */
function roundAllowance(allowance: number): number {
  return allowance < 1 ? Math.min(0.999, roundToMilli(allowance)) : 1;
}

export function toRequestRow({ at, record }: EndedRequest): RequestRow {
  const { id, route, upstream, client, clientName, method, path, status, outcome, reason, attempts, took } = record;
  return {
    id,
    at: new Date(at).toISOString(),
    route,
    upstream,
    client,
    clientName: clientName ?? null,
    method,
    path,
    status,
    outcome,
    reason: reason ?? null,
    attempts,
    tookSeconds: Math.round(took) / 1000,
  };
}

export function toTimelineEvent({ number, at, kind, upstream, text }: TimelineEntry, process: number): TimelineEvent {
  return { id: `${process}-${number}`, at: new Date(at).toISOString(), kind, upstream: upstream ?? null, text };
}

/** The latest time that a date can have, in milliseconds since 1970 (ECMA-262, time values). */
const MAX_DATE = 8.64e15;

/** Converts a monotonic time to ISO 8601; null if it is undefined, or no date can have it. */
export function toIsoTime(at: Millis | undefined, { origin }: ClockReading): string | null {
  const isDate = at !== undefined && Math.abs(origin + at) <= MAX_DATE;
  return isDate ? new Date(origin + at).toISOString() : null;
}

function describeUntil(view: LimitView | undefined, clock: ClockReading): Pick<UpstreamStatus, 'until' | 'untilWhat'> {
  if (view?.state === 'cooldown' && view.cooldownUntil !== undefined) {
    return { until: toIsoTime(view.cooldownUntil, clock), untilWhat: 'cooldown ends' };
  }
  if (view?.state !== 'blocked') return { until: null, untilWhat: null };
  const { blockedUntil, isProbed, isBlockedByOperator } = view;
  const untilWhat = isProbed === true && isBlockedByOperator !== true ? 'next probe' : 'blocked until';
  // A time in the past: the probe is in flight, or the next request becomes the probe.
  const until = blockedUntil === undefined || blockedUntil <= clock.now ? null : toIsoTime(blockedUntil, clock);
  return { until, untilWhat: until === null && isBlockedByOperator === true ? null : untilWhat };
}

/** JSON has no Infinity. */
function finiteOrNull(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : roundToMilli(value);
}

function toSeconds(time: Millis | undefined): number | null {
  return time === undefined ? null : Math.round(time * 1000) / 1e6;
}
