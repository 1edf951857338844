import type { AdmissionResult, RefusalReason } from '../../admission/gate-decision.ts';
import type { Ticket } from '../../admission/ticket.ts';
import type { GateStore } from '../../admission/gate-store.ts';
import { BinaryHeap } from '../../collections/binary-heap.ts';
import type { EventSink } from '../../events/proxy-events.ts';
import type { Millis } from '../../scalars.ts';
import type { UpstreamQuota } from '../calendar/upstream-quota.ts';
import type { ClientQuotaUse } from './client-quota-use.ts';

/** A request for admission, to be decided again. */
export interface AdmissionRequest {
  readonly ticket: Ticket;
  readonly deadline: Millis;
  readonly clientTimeout: Millis | undefined;
}

/** The parts of a gate that this uses. */
export interface DecidingGate {
  /** Decides about a request that has its parts now. */
  decide(request: AdmissionRequest, now: Millis): void;
}

/** A request lacks a part of a quota: it is refused, or waits for the part. */
type LackingPart =
  | { readonly kind: 'refused'; readonly why: Extract<RefusalReason, 'quota_exceeded' | 'client_quota_exceeded'> }
  | { readonly kind: 'awaited'; readonly quota: UpstreamQuota };

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
    const lacking = findLackingPart(use, now);
    if (lacking?.kind === 'awaited' && ticket.mode === 'enforce') return this.#wait(request, lacking.quota, now);
    ticket.partExpiresAt = undefined;
    if (lacking?.kind === 'refused') return this.#refuse(ticket, lacking.why, now);
    // In observe mode, a request whose part is awaited is sent at once, and counts without one.
    if (lacking === undefined) use.reserve(now);
    return undefined;
  }

  #wait(request: AdmissionRequest, awaited: UpstreamQuota, now: Millis): AdmissionResult | typeof AWAITED {
    const { ticket, deadline } = request;
    const { upstream } = ticket;
    const { queue, queueOccupancy, classQuotas } = this.#store.upstream(upstream);
    if (queueOccupancy.isFull(ticket.fairnessKey, queue.maxDepth)) {
      this.#store.upstream(upstream).queueOverflows += 1;
      return this.#refuse(ticket, 'queue_full', now);
    }
    ticket.queuedAt = now;
    // A part of another quota does not make the wait longer.
    ticket.partExpiresAt ??= Math.min(now + Math.max(queue.maxWait, classQuotas?.leaseWait ?? 0), deadline);
    ticket.expiresAt = ticket.partExpiresAt;
    ticket.maxWait = ticket.expiresAt - now;
    ticket.awaitedQuota = awaited;
    const others = this.#waiting.get(awaited);
    if (others === undefined) this.#waiting.set(awaited, new Map([[ticket, request]]));
    else others.set(ticket, request);
    this.#expiries.push(ticket);
    queueOccupancy.add(ticket);
    this.#emit({ type: 'decision', upstream, decision: 'queued', why: undefined });
    return AWAITED;
  }

  /** A reply about a quota has come: decides about the requests that wait for it, until they have to wait for the next one. */
  onSupplied(quota: UpstreamQuota, now: Millis): void {
    for (const [ticket, request] of this.#waiting.get(quota) ?? []) {
      const lacking = ticket.clientQuota && findLackingPart(ticket.clientQuota, now);
      if (lacking?.kind === 'awaited' && lacking.quota === quota) return;
      this.#decideAgain(request, now);
    }
  }

  #decideAgain(request: AdmissionRequest, now: Millis): void {
    this.cancel(request.ticket, now);
    this.#gate.decide(request, now);
  }

  /** Settings have changed: some quotas may have been removed. */
  reevaluate(now: Millis): void {
    for (const requests of [...this.#waiting.values()]) {
      for (const request of [...requests.values()]) {
        // The decision about one request may end another one.
        if (request.ticket.awaitedQuota !== undefined) this.#decideAgain(request, now);
      }
    }
  }

  /** When to call `wake`; undefined if nothing waits. */
  nextWake(): Millis | undefined {
    return this.#expiries.peek()?.expiresAt;
  }

  wake(now: Millis): void {
    for (let late = this.#expiries.peek(); late !== undefined && late.expiresAt <= now; late = this.#expiries.peek()) {
      this.cancel(late, now);
      late.onSettled(this.#refuse(late, 'queue_timeout', now), now);
    }
  }

  /** The request waits no longer. */
  cancel(ticket: Ticket, now: Millis): void {
    const { awaitedQuota, upstream, queuedAt } = ticket;
    if (awaitedQuota === undefined) return;
    ticket.awaitedQuota = undefined;
    const requests = this.#waiting.get(awaitedQuota);
    requests?.delete(ticket);
    if (requests?.size === 0) this.#waiting.delete(awaitedQuota);
    this.#expiries.remove(ticket);
    this.#store.upstream(upstream).queueOccupancy.remove(ticket);
    this.#emit({ type: 'dequeued', upstream, waited: now - queuedAt, admitted: false });
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

/** Calls for the parts that the request lacks; undefined if it lacks none. */
function findLackingPart(use: ClientQuotaUse, now: Millis): LackingPart | undefined {
  const spent = use.findSpent(now);
  if (spent !== undefined && spent.isLost !== true) return { kind: 'refused', why: 'client_quota_exceeded' };
  const quota = use.findAwaited(now);
  if (quota !== undefined) return { kind: 'awaited', quota };
  // Whether the client has used up its quota is not known: the upstream's other clients are refused for the same reason.
  return spent === undefined ? undefined : { kind: 'refused', why: 'quota_exceeded' };
}
