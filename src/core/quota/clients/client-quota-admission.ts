import type { AdmissionResult, Ticket } from '../../admission/ticket.ts';
import type { EnforcementMode, RefusalReason } from '../../admission/gate-decision.ts';
import type { GateStore } from '../../admission/gate-store.ts';
import { BinaryHeap } from '../../collections/binary-heap.ts';
import type { EventSink } from '../../events/proxy-events.ts';
import type { Millis } from '../../scalars.ts';
import type { UpstreamQuota } from '../calendar/upstream-quota.ts';

/** A request for admission, to be decided again. */
export interface AdmissionRequest {
  readonly ticket: Ticket;
  readonly deadline: Millis;
  readonly clientTimeout: Millis | undefined;
}

/** The parts of a gate that this uses. */
export interface DecidingGate {
  /** May change. */
  readonly mode: EnforcementMode;
  /** Decides about a request that has its parts now. */
  decide(request: AdmissionRequest, now: Millis): void;
}

const AWAITED = 'awaited';
const SHORTEST_RETURN: Millis = 1000;

/**
 * Gives each request a part of the quotas of its client before anything else is decided about it, or refuses it. A request whose part
 * another process has to grant waits here and in no limit's queue, so that it delays no other client.
 */
export class ClientQuotaAdmission {
  readonly #store: GateStore;
  readonly #emit: EventSink;
  readonly #gate: DecidingGate;
  /** In the order of their arrival, by the quota whose part they lack. */
  readonly #waiting = new Map<UpstreamQuota, Map<Ticket, AdmissionRequest>>();
  readonly #expiries = new BinaryHeap<Ticket>((a, b) => a.expiresAt < b.expiresAt);

  constructor(store: GateStore, emit: EventSink, gate: DecidingGate) {
    this.#store = store;
    this.#emit = emit;
    this.#gate = gate;
  }

  /** Reserves the parts. Returns undefined if the request has them or needs none; `awaited` if it will be decided again. */
  request(request: AdmissionRequest, now: Millis): AdmissionResult | typeof AWAITED | undefined {
    const { ticket } = request;
    const { classQuotas } = this.#store.upstream(ticket.upstream);
    ticket.clientQuota ??= classQuotas?.use(ticket);
    const use = ticket.clientQuota;
    if (use?.needsPart !== true) return undefined;
    const spent = use.findSpent(now);
    // Whether the client has used up its quota is not known: the upstream's other clients are refused for the same reason.
    if (spent?.isLost === true) return this.#refuse(ticket, 'quota_exceeded', now);
    if (spent !== undefined) return this.#refuse(ticket, 'client_quota_exceeded', now);
    const awaited = use.findAwaited(now);
    if (awaited !== undefined && this.#gate.mode === 'enforce') return this.#wait(request, awaited, now);
    // In observe mode, the request is sent at once, and counts without a part.
    if (awaited === undefined) use.reserve(now);
    return undefined;
  }

  #wait(request: AdmissionRequest, awaited: UpstreamQuota, now: Millis): AdmissionResult | typeof AWAITED {
    const { ticket, deadline } = request;
    const { queue, queueOccupancy, classQuotas } = this.#store.upstream(ticket.upstream);
    if (queueOccupancy.isFull(ticket.fairnessKey, queue.maxDepth)) {
      this.#store.upstream(ticket.upstream).queueOverflows += 1;
      return this.#refuse(ticket, 'queue_full', now);
    }
    ticket.queuedAt = now;
    ticket.maxWait = Math.min(Math.max(queue.maxWait, classQuotas?.leaseWait ?? 0), deadline - now);
    ticket.expiresAt = now + ticket.maxWait;
    ticket.awaitedQuota = awaited;
    const others = this.#waiting.get(awaited);
    if (others === undefined) this.#waiting.set(awaited, new Map([[ticket, request]]));
    else others.set(ticket, request);
    this.#expiries.push(ticket);
    queueOccupancy.add(ticket);
    return AWAITED;
  }

  /** A reply about a quota has come: decides about the requests that wait for it, until they have to wait for the next one. */
  onSupplied(quota: UpstreamQuota, now: Millis): void {
    for (const [ticket, request] of this.#waiting.get(quota) ?? []) {
      const isStillAwaited = ticket.clientQuota?.findAwaited(now) === quota;
      if (isStillAwaited && ticket.clientQuota?.findSpent(now) === undefined) return;
      this.cancel(ticket);
      this.#gate.decide(request, now);
    }
  }

  /** Settings have changed: some quotas may have been removed. */
  reevaluate(now: Millis): void {
    for (const requests of [...this.#waiting.values()]) {
      for (const request of [...requests.values()]) {
        this.cancel(request.ticket);
        this.#gate.decide(request, now);
      }
    }
  }

  /** When to call `wake`; undefined if nothing waits. */
  nextWake(): Millis | undefined {
    return this.#expiries.peek()?.expiresAt;
  }

  wake(now: Millis): void {
    for (let late = this.#expiries.peek(); late !== undefined && late.expiresAt <= now; late = this.#expiries.peek()) {
      this.cancel(late);
      late.onSettled(this.#refuse(late, 'queue_timeout', now), now);
    }
  }

  /** The request waits no longer. */
  cancel(ticket: Ticket): void {
    const { awaitedQuota } = ticket;
    if (awaitedQuota === undefined) return;
    ticket.awaitedQuota = undefined;
    const requests = this.#waiting.get(awaitedQuota);
    requests?.delete(ticket);
    if (requests?.size === 0) this.#waiting.delete(awaitedQuota);
    this.#expiries.remove(ticket);
    this.#store.upstream(ticket.upstream).queueOccupancy.remove(ticket);
  }

  /** The client is asked to return when all its quotas and those of the upstream allow it. It takes no return slot of a limit. */
  #refuse(ticket: Ticket, why: RefusalReason, now: Millis): AdmissionResult {
    const { upstream, clientQuota } = ticket;
    const untilReturn = Math.max(clientQuota?.returnDelay(now) ?? 0, ticket.quotas?.returnDelay(ticket, now) ?? 0);
    const retryAfterMs = 1000 * Math.ceil(Math.max(untilReturn, SHORTEST_RETURN) / 1000);
    ticket.estimatedWait = untilReturn;
    ticket.returnSlot = undefined;
    this.#emit({ type: 'decision', upstream, decision: 'refused', why });
    return { kind: 'refused', why, retryAfterMs };
  }
}
