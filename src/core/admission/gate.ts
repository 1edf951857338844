import { accountsFor, beginUse, limitsAfterOutcome } from '../accounts/assign-account.ts';
import { recordAccountOutcome } from '../accounts/record-account-outcome.ts';
import { isUnfitProbe, refusalForLongWait, refusalIfBlocked } from './refusals/refusal-reasons.ts';
import { clientHeldUntil, estimateWait, findWaitingLimit, tokenDelay } from './wait-estimate.ts';
import { CostSettlement } from '../cost/cost-settlement.ts';
import type { ClientSlot } from './client-allowance.ts';
import type { GateView } from '../events/gate-views.ts';
import { readGateView } from '../events/read-gate-view.ts';
import type { EventSink } from '../events/proxy-events.ts';
import { readDecisionDetails, type DecisionDetails } from './decision-details.ts';
import { settleCount } from './reservations.ts';
import { recordAttemptEnd, recordResponse, recordSent } from '../limits/in-flight-requests.ts';
import { recordOutcome, recordQuota } from './record-outcome.ts';
import { recordGranted, recordReported, presumeAccepted } from '../limits/external-outcomes.ts';
import type { Limit } from '../limits/limit.ts';
import { admitObserved } from './observe-mode.ts';
import { computeRetryAfter, mayTakeEarly } from './refusals/compute-retry-after.ts';
import { recordReturn } from '../limits/client-return.ts';
import { type AdmissionRequest, ClientQuotaAdmission } from '../quota/clients/client-quota-admission.ts';
import { releaseQueued } from '../quota/apply-quota.ts';
import { isCutShort, longestWait } from '../limits/longest-wait.ts';
import { resolveLimits } from '../limits/resolve-limits.ts';
import { type ConnectionSlots, connectionSlotsFor } from './connection-slots.ts';
import type { GateStore } from './gate-store.ts';
import { ADMITTED, NO_LIMITS, type AdmissionResult, type Ticket } from './ticket.ts';
import { earliest, type Millis } from '../scalars.ts';
import type { RefusalReason } from './gate-decision.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import { registerArrival, registerDeparture, releaseQuotas } from './register-arrival.ts';
import { RetryAdmission } from './retry-admission.ts';
import { UpstreamConnections } from './upstream-connections.ts';
import { WaitQueue } from './wait-queue.ts';
import { computeEffectiveWeight } from './effective-weight.ts';

/**
 * Admits, queues or refuses requests, and learns from their outcomes. It owns the limits, queues, clients and budgets. Each
 * event carries its time. A decision is returned at once or, for a queued ticket, passed to `ticket.onSettled`.
 *
 *     requestAdmission ─► admitted │ refused │ queued … settled     onSent ─► onOutcome ─► onAttemptEnd     onExchangeEnd
 *                                                                   onGranted ……… onExternalOutcome
 */
export class Gate {
  readonly #store: GateStore;
  readonly #emit: EventSink;
  readonly #waitQueue: WaitQueue;
  readonly retries: RetryAdmission;
  readonly clientQuotas: ClientQuotaAdmission;
  readonly connections: UpstreamConnections;
  readonly costs: CostSettlement;

  constructor(store: GateStore, emit: EventSink) {
    this.#store = store;
    this.#emit = emit;
    this.#waitQueue = new WaitQueue(store, emit);
    this.retries = new RetryAdmission(store, this.#waitQueue, this);
    this.costs = new CostSettlement(store, this.#waitQueue, emit);
    this.connections = new UpstreamConnections(store, this.#waitQueue);
    this.clientQuotas = new ClientQuotaAdmission(store, emit, this);
  }

  /** Returns undefined if the ticket is queued: it will be settled. @param clientTimeout set if the deadline follows from it */
  requestAdmission(ticket: Ticket, deadline: Millis, now: Millis, clientTimeout?: Millis): AdmissionResult | undefined {
    const admission = this.#decide(ticket, deadline, now, clientTimeout);
    return ticket.mode === 'enforce' ? admission : admitObserved(ticket, admission, now);
  }

  /** An attempt is being sent to the upstream. */
  onSent(ticket: Ticket, now: Millis): void {
    recordSent(ticket, now);
  }

  /** An admitted request that the requester sends itself: from here on, only a report can show its outcome. */
  onGranted(ticket: Ticket, now: Millis): void {
    this.onSent(ticket, now);
    recordGranted(ticket.limits, now);
    ticket.probedLimits = NO_LIMITS;
    this.onAttemptEnd(ticket, now);
  }

  /** Records a reported outcome of a granted request. @param ticket a new one, made for this report */
  onExternalOutcome(ticket: Ticket, outcome: AttemptOutcome, sentAt: Millis, now: Millis): void {
    ticket.clientSlot = this.#store.clients.visit(ticket.client, now, ticket.upstream);
    ticket.limits = resolveLimits(this.#store, ticket.limitRefs);
    ticket.sentAt = sentAt;
    for (const limit of ticket.limits) this.#waitQueue.advance(limit, now);
    recordReported(ticket.limits, outcome, sentAt, now);
    this.onOutcome(ticket, outcome, now);
    this.onExchangeEnd(ticket);
  }

  /** Learns from a response head or a failure. Returns the limit that a rejection counts against, if there is one. */
  onOutcome(ticket: Ticket, outcome: AttemptOutcome, now: Millis): Limit | undefined {
    const upstream = this.#store.upstream(ticket.upstream);
    const context = { ticket, upstream, store: this.#store, emit: this.#emit };
    settleCount(ticket, this.#store.clients, outcome, now);
    const excluded = recordAccountOutcome(context, outcome, now);
    const isReleased = outcome.kind === 'response' && recordQuota(context, outcome, now);
    const attributedLimit = recordOutcome(context, outcome, now);
    recordResponse(ticket, now);
    for (const limit of ticket.limits) {
      if (isReleased) this.#waitQueue.serveReadyWithin(limit, now);
      else this.#waitQueue.serveReady(limit, now);
    }
    for (const limit of ticket.probedLimits) this.#waitQueue.serveReadyWithin(limit, now);
    ticket.probedLimits = NO_LIMITS;
    if (ticket.account !== undefined) this.retries.moveWaiting(limitsAfterOutcome(this.#store, ticket, excluded), now);
    return attributedLimit;
  }

  /** The attempt no longer counts as in flight: its response has ended, was aborted, or has become a tunnel. */
  onAttemptEnd(ticket: Ticket, now: Millis): void {
    const { inFlightLimits } = ticket;
    recordAttemptEnd(ticket, now);
    for (const limit of inFlightLimits) if (limit.meter.onEnded(now)) this.#waitQueue.serveReadyWithin(limit, now);
  }

  /** An admitted or queued request will not be sent: releases what it holds. */
  cancel(ticket: Ticket, now: Millis): void {
    this.clientQuotas.cancel(ticket, now);
    this.#waitQueue.cancel(ticket, now);
  }

  /** The exchange is over; its client may be evicted. In observe mode, a ticket that is still queued ends when it is settled. */
  onExchangeEnd(ticket: Ticket): void {
    if (ticket.flow !== undefined) return;
    registerDeparture(this.#store, ticket);
    ticket.clientQuota?.end();
    ticket.clientQuota = undefined;
  }

  /** Leased tokens have arrived, or the terms of the limit have changed. */
  onTokensSupplied(limit: Limit, now: Millis): void {
    const { wasQuotaInForce } = limit;
    limit.wasQuotaInForce = limit.meter.isQuotaInForce(now);
    if (limit.wasQuotaInForce && !wasQuotaInForce) releaseQueued(this.#store, limit, now);
    this.#waitQueue.serveReadyWithin(limit, now);
    if (limit.ref.scope === 'credential') this.retries.moveWaiting(limit.asList, now);
  }

  /** Settings have changed: serves all queues by the limits and connections as they are now. */
  reevaluateQueues(now: Millis): void {
    this.#waitQueue.reevaluate(now);
    this.clientQuotas.reevaluate(now);
  }

  nextWake(): Millis | undefined {
    return earliest(this.#waitQueue.nextWake(), this.clientQuotas.nextWake());
  }

  wake(now: Millis): void {
    this.#waitQueue.wake(now);
    this.clientQuotas.wake(now);
  }

  /** Returns the figures behind the decision just made on a ticket. */
  decisionDetails(ticket: Ticket, now: Millis): DecisionDetails {
    return readDecisionDetails(this.#store, ticket, now);
  }

  /** Iterates over all limits, advanced to `now`. There may be one for each of 100 000 clients: no list is made. */
  *limits(now: Millis): Iterable<Limit> {
    for (const limit of this.#store.limits()) {
      this.#waitQueue.advance(limit, now);
      yield limit;
    }
  }

  view(now: Millis): GateView {
    return readGateView(this.#store, this.limits(now), now);
  }

  #decide(ticket: Ticket, deadline: Millis, now: Millis, clientTimeout?: Millis): AdmissionResult | undefined {
    const upstream = this.#store.upstream(ticket.upstream);
    ticket.limits = resolveLimits(this.#store, ticket.limitRefs);
    ticket.quotas = upstream.quotas;
    if (ticket.mode === 'observe') registerArrival(this.#store, ticket, upstream, now); // it is sent, whatever is decided
    const byQuota = this.clientQuotas.request({ ticket, deadline, clientTimeout }, now);
    const accounts = accountsFor(ticket, upstream);
    if (byQuota !== undefined) {
      // In observe mode it is sent all the same, and needs an account.
      if (ticket.mode === 'observe' && accounts !== undefined) this.retries.assignAccount(ticket, accounts, now);
      return byQuota === 'awaited' ? undefined : byQuota;
    }
    const slot = registerArrival(this.#store, ticket, upstream, now);
    if (accounts !== undefined) {
      this.retries.assignAccount(ticket, accounts, now);
      const stop = beginUse(ticket, accounts, now);
      if (stop !== undefined) return this.#refuse(ticket, slot, stop.why, (ticket.estimatedWait = stop.wait), now);
    }
    releaseQuotas(this.#store, this.#waitQueue, ticket, now);

    const heldFor = clientHeldUntil(this.#store.clients, ticket, slot, now) - now;
    ticket.maxWait = undefined;
    if (heldFor > 0) return this.#refuse(ticket, slot, 'held', (ticket.estimatedWait = heldFor), now);

    for (const each of ticket.limits) this.#waitQueue.advance(each, now);
    if (ticket.isSentExternally) presumeAccepted(ticket.limits, now);
    const isUnfit = isUnfitProbe(ticket, now);
    const slots = connectionSlotsFor(ticket, upstream);
    const limit = findWaitingLimit(ticket, slots, now);
    // Without a limit, there is no queue in which it could wait for a quota.
    const isSpent = ticket.quotas !== undefined && ticket.limits.length === 0 && tokenDelay(ticket, now) > 0;
    if (!isUnfit && !isSpent && limit === undefined) return this.#admit(ticket, slots, now);

    const weight = computeEffectiveWeight(this.#store, ticket, now);
    const wait = estimateWait(ticket, slots, weight, now);
    ticket.estimatedWait = wait;
    if (isSpent) return this.#refuse(ticket, slot, refusalForLongWait(ticket, now), wait, now);
    if (limit === undefined || isUnfit) {
      return this.#refuse(ticket, slot, refusalIfBlocked(ticket, now) ?? 'blocked', wait, now);
    }
    recordReturn(this.#store, ticket, slot, now);
    const maxWait = longestWait(ticket, limit, upstream.queue, deadline, now);
    ticket.maxWait = Math.min(maxWait, deadline - now);
    ticket.clientTimeout = isCutShort(ticket, limit, upstream.queue, now) ? clientTimeout : undefined;
    // A request is not refused if the queue might serve it in time.
    const leastWait = slots === undefined ? wait : estimateWait(ticket, slots, weight, now, slots.bestTurnoverRate);
    if (leastWait > ticket.maxWait) {
      if (mayTakeEarly(ticket, now)) return this.#admit(ticket, slots, now);
      return this.#refuse(ticket, slot, refusalForLongWait(ticket, now), wait, now);
    }
    if (upstream.queueOccupancy.isFull(ticket.fairnessKey, upstream.queue.maxDepth)) {
      upstream.queueOverflows += 1;
      return this.#refuse(ticket, slot, 'queue_full', wait, now);
    }

    ticket.expiresAt = Math.min(deadline, now + Math.max(maxWait, leastWait));
    this.#waitQueue.enqueue(ticket, limit, slot, now);
    return undefined;
  }

  /** Decides again about a request that has waited for something else than a limit. */
  decide({ ticket, deadline, clientTimeout }: AdmissionRequest, now: Millis): void {
    const admission = this.#decide(ticket, deadline, now, clientTimeout);
    if (admission !== undefined) ticket.onSettled(admission, now);
  }

  #admit(ticket: Ticket, slots: ConnectionSlots | undefined, now: Millis): AdmissionResult {
    this.#waitQueue.admit(ticket, slots, now);
    this.#emit({ type: 'decision', upstream: ticket.upstream, decision: 'passed', why: undefined });
    return ADMITTED;
  }

  #refuse(ticket: Ticket, slot: ClientSlot, why: RefusalReason, wait: Millis, now: Millis): AdmissionResult {
    ticket.clientQuota?.release();
    this.#emit({ type: 'decision', upstream: ticket.upstream, decision: 'refused', why });
    return {
      kind: 'refused',
      why,
      retryAfterMs: computeRetryAfter({ store: this.#store, emit: this.#emit }, { ticket, slot, why, wait }, now),
    };
  }
}
