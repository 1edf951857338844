import { limitsAfterOutcome } from '../accounts/assign-account.ts';
import { recordAccountOutcome } from '../accounts/record-account-outcome.ts';
import { CostSettlement } from '../cost/cost-settlement.ts';
import type { GateView } from '../events/gate-views.ts';
import { readGateView } from '../events/read-gate-view.ts';
import type { EventSink } from '../events/proxy-events.ts';
import { readDecisionDetails, type DecisionDetails } from './decision-details.ts';
import { settleCount } from './reservations.ts';
import { recordAttemptEnd, recordResponse, recordSent } from '../limits/in-flight-requests.ts';
import { recordOutcome, recordQuota } from './record-outcome.ts';
import { recordGranted, recordReported } from '../limits/external-outcomes.ts';
import type { Limit } from '../limits/limit.ts';
import type { ClientQuotaAdmission } from '../quota/clients/client-quota-admission.ts';
import { releaseQueued } from '../quota/apply-quota.ts';
import { resolveLimits } from '../limits/resolve-limits.ts';
import type { GateStore } from './gate-store.ts';
import { NO_LIMITS, type Ticket } from './ticket.ts';
import type { AdmissionResult } from './gate-decision.ts';
import { earliest, type Millis } from '../scalars.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import { registerDeparture } from './register-arrival.ts';
import type { RetryAdmission } from './retry-admission.ts';
import { UpstreamConnections } from './upstream-connections.ts';
import { WaitQueue } from './wait-queue.ts';
import { RequestAdmission } from './request-admission.ts';

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
  readonly #admission: RequestAdmission;
  readonly retries: RetryAdmission;
  readonly clientQuotas: ClientQuotaAdmission;
  readonly connections: UpstreamConnections;
  readonly costs: CostSettlement;

  constructor(store: GateStore, emit: EventSink) {
    this.#store = store;
    this.#emit = emit;
    this.#waitQueue = new WaitQueue(store, emit);
    this.#admission = new RequestAdmission(store, this.#waitQueue, emit);
    this.retries = this.#admission.retries;
    this.clientQuotas = this.#admission.clientQuotas;
    this.costs = new CostSettlement(store, this.#waitQueue, emit);
    this.connections = new UpstreamConnections(store, this.#waitQueue);
  }

  /** Returns undefined if the ticket is queued: it will be settled. @param clientTimeout set if the deadline follows from it */
  requestAdmission(ticket: Ticket, deadline: Millis, now: Millis, clientTimeout?: Millis): AdmissionResult | undefined {
    return this.#admission.request({ ticket, deadline, clientTimeout }, now);
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
}
