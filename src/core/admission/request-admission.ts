import { accountsFor, beginUse } from '../accounts/assign-account.ts';
import { isUnfitProbe, refusalForLongWait, refusalIfBlocked } from './refusals/refusal-reasons.ts';
import { clientHeldUntil, estimateWait, findWaitingLimit, tokenDelay } from './wait-estimate.ts';
import type { ClientSlot } from './client-allowance.ts';
import type { EventSink } from '../events/proxy-events.ts';
import { presumeAccepted } from '../limits/external-outcomes.ts';
import { admitObserved } from './observe-mode.ts';
import { computeRetryAfter, mayTakeEarly } from './refusals/compute-retry-after.ts';
import { recordReturn } from '../limits/client-return.ts';
import { isCutShort, longestWait } from '../limits/longest-wait.ts';
import { resolveLimits } from '../limits/resolve-limits.ts';
import { type ConnectionSlots, connectionSlotsFor } from './connection-slots.ts';
import type { GateStore } from './gate-store.ts';
import { ADMITTED, type AdmissionResult, type RefusalReason } from './gate-decision.ts';
import type { Ticket } from './ticket.ts';
import type { Millis } from '../scalars.ts';
import { registerArrival, releaseQuotas } from './register-arrival.ts';
import { RetryAdmission } from './retry-admission.ts';
import type { WaitQueue } from './wait-queue.ts';
import { computeEffectiveWeight } from './effective-weight.ts';
import {
  type AdmissionRequest,
  ClientQuotaAdmission,
  type DecidingGate,
} from '../quota/clients/client-quota-admission.ts';

/** Admits, queues or refuses requests: the limits, connections, quotas, holds and accounts that apply to one are considered here in order. */
export class RequestAdmission implements DecidingGate {
  readonly #store: GateStore;
  readonly #emit: EventSink;
  readonly #waitQueue: WaitQueue;
  readonly retries: RetryAdmission;
  readonly clientQuotas: ClientQuotaAdmission;

  constructor(store: GateStore, waitQueue: WaitQueue, emit: EventSink) {
    this.#store = store;
    this.#emit = emit;
    this.#waitQueue = waitQueue;
    this.retries = new RetryAdmission(store, waitQueue, this);
    this.clientQuotas = new ClientQuotaAdmission(store, emit, this);
  }

  /** See `Gate.requestAdmission`. */
  request(request: AdmissionRequest, now: Millis): AdmissionResult | undefined {
    const admission = this.#decide(request, now);
    return request.ticket.mode === 'enforce' ? admission : admitObserved(request.ticket, admission, now);
  }

  #decide(request: AdmissionRequest, now: Millis): AdmissionResult | undefined {
    const { ticket, deadline, clientTimeout } = request;
    const upstream = this.#store.upstream(ticket.upstream);
    ticket.limits = resolveLimits(this.#store, ticket.limitRefs);
    ticket.quotas = upstream.quotas;
    if (ticket.mode === 'observe') registerArrival(this.#store, ticket, upstream, now); // it is sent, whatever is decided
    const byQuota = this.clientQuotas.request(request, now);
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
  decide(request: AdmissionRequest, now: Millis): void {
    const admission = this.#decide(request, now);
    if (admission !== undefined) request.ticket.onSettled(admission, now);
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
