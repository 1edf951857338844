import type { GateStore, GateUpstream } from './gate-store.ts';
import type { CutCause } from '../limits/limit-state.ts';
import type { EventSink } from '../events/proxy-events.ts';
import type { Limit } from '../limits/limit.ts';
import type { LimitRef } from '../limits/limit-ref.ts';
import { attributedLimitRef, requestQuotaRef } from '../limits/attributed-limit.ts';
import { nestedLimitField } from '../limits/limit-ref.ts';
import { isQuotaScarce } from '../quota/quota-pacing.ts';
import { applyQuota, quotaLeftNow } from '../quota/apply-quota.ts';
import type { FailedSend } from '../rate/failed-send.ts';
import { largestSample } from '../rate/rate-state.ts';
import { attributesFor, type Ticket } from './ticket.ts';
import type { Hints } from '../hints/hints.ts';
import type { Millis } from '../scalars.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import { isGatewayError, isLocalFailure, isThrottled } from '../exchange/attempt-outcome.ts';

type UpstreamResponse = Extract<AttemptOutcome, { readonly kind: 'response' }>;

interface OutcomeContext {
  readonly ticket: Ticket;
  readonly upstream: GateUpstream;
  readonly store: GateStore;
  readonly emit: EventSink;
}

/**
 * Updates the limits of a request by the outcome of an attempt:
 *
 * - A 429, or what the preset calls throttled, is a rejection: it concerns the rate of one limit.
 * - 502 to 504 and broken connections are failures: they concern the upstream's health.
 * - Everything else is accepted. So is a 500: the fault of one operation says nothing about capacity.
 * - An object lock, a client that disconnected, and a failure or a rejection of one endpoint while others work are neutral; but
 *   where a limit learns from latency, a client that disconnected at its timeout shows that the upstream has not responded for so long.
 *
 * Returns the limit that a rejection counts against; undefined if the outcome is no rejection, or its limit is unknown.
 */
export function recordOutcome(context: OutcomeContext, outcome: AttemptOutcome, now: Millis): Limit | undefined {
  if (outcome.kind === 'response') {
    const { status, hints } = outcome;
    if (isThrottled(status, hints)) {
      const { ticket, emit } = context;
      emit({ type: 'throttled', upstream: ticket.upstream, reason: hints.reason ?? 'unspecified', status });
      return outcome.isTakenOver === true ? abandonProbes(ticket) : recordRejection(context, hints, now);
    }
    if (!isGatewayError(status)) recordAnswer(context, outcome, now);
    else if (outcome.otherEndpointsWork === true || hints.isFromCache === true) abandonProbes(context.ticket);
    else recordFailure(context, { retryAfterMs: hints.retryAfterMs }, now);
    return undefined;
  }
  if (isLocalFailure(outcome) || outcome.isStaleConnection === true || outcome.otherEndpointsWork === true) {
    if (outcome.isClientTimeout === true && outcome.sent) recordAbandoned(context.ticket, now);
    abandonProbes(context.ticket);
  } else {
    const isUnreachable = outcome.reason === 'connect' && outcome.isEndpointConnected !== true;
    recordFailure(context, { retryAfterMs: undefined, isUnreachable }, now);
  }
  return undefined;
}

/** A response that is neither a rejection nor a sign of a broken upstream. */
function recordAnswer(context: OutcomeContext, { status, hints }: UpstreamResponse, now: Millis): void {
  const { ticket, upstream } = context;
  const lacksQuota = hints.quota === undefined && status < 400 && hints.isFromCache !== true;
  if (lacksQuota && ticket.limitRefs.at(-1)?.nested === '') upstream.unmeteredSuccesses.onSuccess(ticket.client, now);
  for (const limit of ticket.limits) {
    recordAccepted(context, limit, ticket.countsAtSend(limit)?.inFlightAtSend ?? 0, now);
  }
  if (status < 500) upstream.retryBudget.earn(ticket.fairnessKey, now);
}

/**
 * Applies the quota that a response reports, if it does, to the limit that the response names, else to the innermost. A
 * limit that does not exist yet is created once the quota is scarce.
 *
 * Returns whether requests that wait at the limit, or at limits nested in it, are no longer held back by a quota.
 */
export function recordQuota(context: OutcomeContext, response: UpstreamResponse, now: Millis): boolean {
  const { ticket, upstream, store } = context;
  const { quota, limit: rejectedBy, quotaLimit = rejectedBy } = response.hints;
  if (quota === undefined || response.isTakenOver === true) return false;
  const { sentAt } = ticket;
  const ref = quotaLimit === undefined ? requestQuotaRef(ticket) : attributedLimitRef(ticket, quotaLimit, upstream);
  if (ref === undefined) return false;
  const limit =
    findTicketLimit(ticket, ref) ?? (isQuotaScarce(quota) ? findOrCreateLimit(context, ref, now) : undefined);
  if (limit === undefined) return false;
  if (!limit.mayBeOverrun(sentAt)) {
    return applyQuota(
      store,
      limit,
      ticket,
      quotaLeftNow(quota, limit, ticket.countsAtSend(limit)),
      response.status,
      now,
    );
  }
  // Under an overrun, the quota was spent by requests that the limit would not have let pass: its reset says nothing.
  const known = quota.remaining === 0 ? { ...quota, resetIn: undefined } : quota;
  return applyQuota(store, limit, ticket, known, response.status, now);
}

/**
 * Records a rejection at the limit it is about, and an accepted response at the others. If it names no limit, outer limits learn that
 * not one part alone may be rejected there. A limit that does not exist yet is created, with the client's demand as its history.
 * Returns the limit that the rejection counts against.
 */
function recordRejection(context: OutcomeContext, hints: Hints, now: Millis): Limit | undefined {
  const { ticket, upstream } = context;
  const { clientSlot } = ticket;
  const ref = attributedLimitRef(ticket, hints.limit, upstream);
  const limit = ref === undefined ? undefined : (findTicketLimit(ticket, ref) ?? findOrCreateLimit(context, ref, now));
  if (hints.isFromCache === true) {
    abandonProbes(ticket);
    const until = now + (hints.retryAfterMs ?? 0);
    if (limit === undefined || until <= now) return undefined;
    // A limit of one client or credential is not stopped, but holds this client: with other credentials it may continue.
    if (limit.ref.scope === 'upstream') holdClient(context, limit, until, now);
    else limit.holdClient(ticket.client, until, now);
    return undefined;
  }
  for (const other of ticket.limits) {
    if (other === limit) continue;
    const isShared = other.ref.scope === 'upstream' && !other.isClassLimit;
    const mayBeRejected = isShared && hints.limit === undefined && !ticket.probedLimits.includes(other);
    recordAccepted(context, other, 0, now, mayBeRejected);
    if (mayBeRejected) other.meter.onUnattributedRejection?.(ticket.attributes, now);
  }
  if (limit === undefined || clientSlot === undefined) return undefined;

  const rejection = {
    sentAt: ticket.sentAt,
    inFlightAtSend: ticket.countsAtSend(limit)?.inFlightAtSend ?? 0,
    retryAfterMs: hints.retryAfterMs,
    activeClients: limit.ref.scope === 'upstream' ? upstream.activeClients.count(now) : 1,
    overrun: limit.mayBeOverrun(ticket.sentAt),
    attributes: ticket.attributes,
    cost: ticket.costAt(limit)?.counted ?? 1,
  };
  const from = limit.meter.rate(now);
  const cause = limit.meter.onRejected(rejection, now);
  if (cause !== undefined) emitRateCut(context, limit, cause, from, now);

  if (hints.retryAfterMs === undefined || hints.retryAfterMs === 0 || rejection.overrun) return limit;
  const until = now + hints.retryAfterMs;
  // At a shared limit, Retry-After addresses this client; others get their own. A limit of one client stops.
  if (limit.ref.scope !== 'upstream') limit.meter.stop(until);
  else holdClient(context, limit, until, now);
  return limit;
}

/** Holds the client: at the whole upstream, or only at the nested limit that the response is about. */
function holdClient({ ticket, store }: OutcomeContext, limit: Limit, until: Millis, now: Millis): void {
  if (ticket.clientSlot === undefined || until <= now) return;
  if (limit.ref.nested === '') store.clients.hold(ticket.clientSlot, until, now);
  else limit.holdClient(ticket.client, until, now);
}

function findTicketLimit({ limits }: Ticket, { nested }: LimitRef): Limit | undefined {
  return limits.find(({ ref }) => ref.nested === nested);
}

function findOrCreateLimit({ ticket, store }: OutcomeContext, ref: LimitRef, now: Millis): Limit | undefined {
  if (ticket.clientSlot === undefined) return undefined;
  const existing = store.findLimit(ref); // created by another rejection while this request was in flight
  if (existing !== undefined) return existing;
  const limit = store.findOrCreateLimit(ref);
  const cost = ticket.costAt(limit);
  const units = cost === undefined ? 1 : Math.min(cost.charged, largestSample(cost.rule.expected));
  limit.meter.seedHistory(store.clients.demand(ticket.clientSlot, now) * units, now);
  return limit;
}

/** @param isAnonymous whether its sender is not known to be accepted there */
function recordAccepted(
  context: OutcomeContext,
  limit: Limit,
  inFlightAtSend: number,
  now: Millis,
  isAnonymous = false,
): void {
  const { meter } = limit;
  const { sentAt, attributes } = context.ticket;
  const needsAttributes = !isAnonymous && (meter.hasBlock === true || meter.needsAttributes === true);
  const from = meter.rate(now);
  const cause = meter.onAccepted(sentAt, inFlightAtSend, now, needsAttributes ? attributes : undefined);
  if (cause !== undefined) emitRateCut(context, limit, cause, from, now);
}

function recordFailure(
  context: OutcomeContext,
  failure: Pick<FailedSend, 'retryAfterMs' | 'isUnreachable'>,
  now: Millis,
): void {
  const { ticket } = context;
  const { sentAt, attributes } = ticket;
  for (const limit of ticket.limits) {
    if (limit.isClassLimit) continue;
    const from = limit.meter.rate(now);
    const overrun = limit.mayBeOverrun(sentAt);
    const cause = limit.meter.onFailed({ ...failure, sentAt, overrun, attributes }, now);
    if (cause !== undefined) emitRateCut(context, limit, cause, from, now);
  }
}

function recordAbandoned({ limits, sentAt }: Ticket, now: Millis): void {
  const failure = { sentAt, retryAfterMs: undefined, isAbandoned: true };
  for (const { meter, isClassLimit } of limits) if (!isClassLimit) meter.onFailed(failure, now);
}

function abandonProbes(ticket: Ticket): undefined {
  for (const { meter } of ticket.probedLimits) meter.abandonProbe(attributesFor(meter, ticket));
}

function emitRateCut({ ticket, emit }: OutcomeContext, limit: Limit, cause: CutCause, from: number, now: Millis): void {
  const { scope } = limit.ref;
  emit({
    type: 'cut',
    upstream: ticket.upstream,
    ...nestedLimitField(limit.ref),
    scope,
    cause,
    from,
    to: limit.meter.rate(now),
  });
}
