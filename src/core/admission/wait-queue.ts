import { BinaryHeap } from '../collections/binary-heap.ts';
import type { EventSink } from '../events/proxy-events.ts';
import { earliest, type Millis } from '../scalars.ts';
import type { Limit } from '../limits/limit.ts';
import { MAX_LATENESS } from '../rate/pacer.ts';
import { advanceLimit } from './advance-limit.ts';
import type { ClientSlot } from './client-allowance.ts';
import { computeRetryAfter, mayTakeEarly } from './refusals/compute-retry-after.ts';
import { usePromise } from '../limits/client-return.ts';
import { type ConnectionSlots, connectionSlotsFor } from './connection-slots.ts';
import { hasSharedPlaces } from '../limits/limit-places.ts';
import { computeEffectiveWeight, convertWeight } from './effective-weight.ts';
import type { GateStore } from './gate-store.ts';
import {
  findBottleneckLimit,
  findCompetingTicket,
  findNextTicket,
  slotsAwaitedAt,
  soonestDelay,
} from './queue-selection.ts';
import { continueRelease } from '../quota/apply-quota.ts';
import { isClientHeld } from './register-arrival.ts';
import { isSpentTooLong, isUnfitProbe, refusalIfStopped } from './refusals/refusal-reasons.ts';
import { abandonReservations, reserveConnection, takeTokens, takeTokensAtOnce } from './reservations.ts';
import { ADMITTED } from './gate-decision.ts';
import type { Ticket } from './ticket.ts';
import { countTurn } from '../cost/queued-units.ts';
import { clientHeldUntil, estimateWait, tokenDelay } from './wait-estimate.ts';

/** The interval between the parts of a check of waiting tickets, so that other events are not delayed. */
const REVIEW_INTERVAL: Millis = 1;

/**
 * The tickets that wait for a token or a connection, in one queue per limit. Each is settled once: served when it has
 * its tokens and a connection, or refused when its wait expires.
 */
export class WaitQueue {
  readonly #store: GateStore;
  readonly #emit: EventSink;
  readonly #expiries = new BinaryHeap<Ticket>((a, b) => a.expiresAt < b.expiresAt);
  readonly #wakes = new BinaryHeap<Limit>((a, b) => a.wakeAt < b.wakeAt);

  constructor(store: GateStore, emit: EventSink) {
    this.#store = store;
    this.#emit = emit;
  }

  /** When to call `wake`; undefined if nothing waits. */
  nextWake(): Millis | undefined {
    return earliest(this.#expiries.peek()?.expiresAt, this.#wakes.peek()?.wakeAt);
  }

  wake(now: Millis): void {
    for (let limit = this.#wakes.peek(); limit !== undefined && limit.wakeAt <= now; limit = this.#wakes.peek()) {
      this.serveReady(limit, now);
    }
    for (let late = this.#expiries.peek(); late !== undefined && late.expiresAt <= now; late = this.#expiries.peek()) {
      this.#expire(late, now);
    }
  }

  /** Queues a ticket from now until `ticket.expiresAt` at the latest. */
  enqueue(ticket: Ticket, limit: Limit, slot: ClientSlot, now: Millis): void {
    ticket.queuedAt = now;
    ticket.costs?.onAsked();
    if (ticket.isReturning) usePromise(this.#store, ticket, slot, now);
    this.#expiries.push(ticket);
    if (limit !== ticket.limits.at(-1)) takeTokens(ticket, now, now); // only a connection is lacking
    limit.enqueue(ticket, slot, computeEffectiveWeight(this.#store, ticket, now), now);
    this.#store.upstream(ticket.upstream).queueOccupancy.add(ticket);
    this.#schedule(limit, now);
    this.#emit({ type: 'decision', upstream: ticket.upstream, decision: 'queued', why: undefined });
  }

  /** Removes a ticket without settling it. */
  dequeue(ticket: Ticket, now: Millis): void {
    const { waitingLimit } = ticket;
    waitingLimit?.dequeue(ticket);
    this.#finishWaiting(ticket, false, now);
    // The next client of the same address may have a larger share of the places.
    if (waitingLimit !== undefined && hasSharedPlaces(ticket)) this.#schedule(waitingLimit, now);
  }

  /** Admits a ticket that need not wait. Its client may then hold most places in flight, so that others leave it none. */
  admit(ticket: Ticket, slots: ConnectionSlots | undefined, now: Millis): void {
    takeTokensAtOnce(ticket, this.#store.clients, now);
    this.grantConnection(ticket, slots, now);
    for (const limit of ticket.limits) if (limit.places && limit.queue.size > 0) this.#schedule(limit, now);
  }

  /** An admitted or queued request will not be sent: releases what it holds. */
  cancel(ticket: Ticket, now: Millis): void {
    const { reservedLimits, reservedSlots } = ticket;
    if (ticket.flow !== undefined) this.dequeue(ticket, now);
    abandonReservations(ticket, this.#store.clients, now);
    ticket.clientQuota?.release();
    for (const limit of reservedLimits) this.serveReadyWithin(limit, now);
    if (reservedSlots !== undefined) this.serveReady(reservedSlots.queueLimit, now);
  }

  /** Reserves a connection for a ticket that has its tokens, and records its admission. */
  grantConnection(ticket: Ticket, slots: ConnectionSlots | undefined, now: Millis): void {
    if (slots !== undefined) reserveConnection(ticket, slots, now);
    if (ticket.clientSlot === undefined) return;
    this.#store.clients.onAdmitted(ticket.clientSlot, now);
    // Requests that were admitted at once leave their client's promise: it only lets them wait longer.
    if (ticket.isSentExternally) usePromise(this.#store, ticket, ticket.clientSlot, now);
  }

  /** Serves a limit's queue as far as tokens and connections allow. */
  serveReady(limit: Limit, now: Millis): void {
    advanceLimit(this.#store, limit, this.#emit, now);
    if (limit.quotaReview !== undefined && continueRelease(this.#store, limit, now)) this.#serveInner(limit, now);
    const due = limit.wakeAt <= now ? Math.max(limit.wakeAt, now - MAX_LATENESS) : now;
    for (
      let ticket = findNextTicket(this.#store, limit, now);
      ticket !== undefined;
      ticket = findNextTicket(this.#store, limit, now)
    ) {
      if (this.#hasExpired(ticket, now)) {
        this.#expire(ticket, now);
        continue;
      }
      // A ticket that waits only for a connection has its tokens already.
      const hasTokens = limit !== ticket.limits.at(-1);
      if (!hasTokens && tokenDelay(ticket, now) > 0) break;
      const upstream = this.#store.upstream(ticket.upstream);
      const slots = connectionSlotsFor(ticket, upstream);
      if (limit === slots?.queueLimit && !slots.hasFreeFor(ticket, now)) break;
      const competitor = hasTokens
        ? undefined
        : findCompetingTicket(this.#store, ticket, limit, upstream.connectionSlots, now);
      if (competitor?.waitingLimit === undefined) this.#serve(ticket, limit, slots, due, now);
      else if (this.#hasExpired(competitor, now)) this.#expire(competitor, now);
      else {
        const otherLimit = competitor.waitingLimit;
        this.#serve(competitor, otherLimit, connectionSlotsFor(competitor, upstream), due, now);
        this.#schedule(otherLimit, now);
      }
    }
    this.#schedule(limit, now);
  }

  /** Takes the tokens that the ticket lacks and admits it; if no connection is free, it goes on to wait for one. */
  #serve(ticket: Ticket, limit: Limit, slots: ConnectionSlots | undefined, due: Millis, now: Millis): void {
    const hasTokens = limit !== ticket.limits.at(-1);
    const weight = computeEffectiveWeight(this.#store, ticket, now);
    limit.serve(ticket, weight, now);
    if (!hasTokens) {
      const bottleneck = ticket.clientSlot === undefined ? undefined : findBottleneckLimit(ticket, now);
      if (bottleneck?.nestedWithWaiters !== undefined && ticket.clientSlot !== undefined) {
        const shared = convertWeight(weight, ticket, limit, bottleneck);
        bottleneck.scheduler.onServed(ticket.fairnessKey, shared, countTurn(bottleneck, ticket, now));
      }
      takeTokens(ticket, due, now);
    }
    if (slots !== undefined && ticket.clientSlot !== undefined && !slots.hasFreeFor(ticket, now)) {
      // After a second change of scope, it waits where tickets lack both, and takes its tokens again.
      if (slots.queueLimit === ticket.limits.at(-1)) abandonReservations(ticket, this.#store.clients, now);
      slots.queueLimit.enqueue(ticket, ticket.clientSlot, weight, now);
      if (!slots.isFull) this.#schedule(slots.queueLimit, now);
      return;
    }
    this.grantConnection(ticket, slots, now);
    this.#finishWaiting(ticket, true, now);
    ticket.onSettled(ADMITTED, now);
  }

  /** Serves a limit and the limits nested in it, after a change that no wake time accounts for. */
  serveReadyWithin(limit: Limit, now: Millis): void {
    this.serveReady(limit, now);
    this.#serveInner(limit, now);
  }

  #serveInner(limit: Limit, now: Millis): void {
    for (const inner of limit.nestedWithWaiters ?? []) this.serveReady(inner, now);
  }

  /** Serves all queues, after a change of settings. */
  reevaluate(now: Millis): void {
    // First the connections: tickets that wait for one at a former queue move to the present one.
    for (const { connectionSlots: slots } of this.#store.upstreams()) {
      for (const former of slots?.takeFormerQueues() ?? []) this.serveReady(former, now);
    }
    for (const limit of [...this.#store.limits()]) if (limit.queue.size > 0) this.serveReadyWithin(limit, now);
    for (const { connectionSlots: slots } of this.#store.upstreams()) {
      if (slots !== undefined) this.serveReady(slots.queueLimit, now);
    }
  }

  /** Advances a limit to `now`. If its rate changes, the next token comes at another time. */
  advance(limit: Limit, now: Millis): void {
    if (limit.queue.size === 0) return advanceLimit(this.#store, limit, this.#emit, now);
    const before = limit.meter.rate(now);
    advanceLimit(this.#store, limit, this.#emit, now);
    if (limit.meter.rate(now) !== before) this.#schedule(limit, now);
  }

  #schedule(limit: Limit, now: Millis): void {
    const ticket = findNextTicket(this.#store, limit, now);
    this.#wakes.remove(limit);
    const slots = slotsAwaitedAt(this.#store, limit);
    // Without a wake time: an empty queue, and one that waits for leased tokens, a connection or the end of a request.
    const hasNoWake = ticket === undefined || slots?.isFull === true;
    limit.wakeAt = hasNoWake ? Number.POSITIVE_INFINITY : now + soonestDelay(limit, ticket, slots, now);
    ticket?.quotas?.onWaiting(limit);
    if (limit.quotaReview !== undefined) limit.wakeAt = Math.min(limit.wakeAt, now + REVIEW_INTERVAL);
    if (limit.wakeAt !== Number.POSITIVE_INFINITY) this.#wakes.push(limit);
  }

  #expire(ticket: Ticket, now: Millis): void {
    const { clientSlot, reservedLimits, waitingLimit } = ticket;
    if (waitingLimit !== undefined && mayTakeEarly(ticket, now) && !isClientHeld(this.#store.clients, ticket, now)) {
      this.#serve(ticket, waitingLimit, undefined, now, now);
      return this.#schedule(waitingLimit, now);
    }
    this.dequeue(ticket, now);
    abandonReservations(ticket, this.#store.clients, now);
    ticket.clientQuota?.release();
    for (const limit of reservedLimits) this.serveReady(limit, now);
    if (clientSlot === undefined) return;
    const slots = connectionSlotsFor(ticket, this.#store.upstream(ticket.upstream));
    const heldFor = clientHeldUntil(this.#store.clients, ticket, clientSlot, now) - now;
    const wait = Math.max(heldFor, estimateWait(ticket, slots, computeEffectiveWeight(this.#store, ticket, now), now));
    ticket.estimatedWait = wait;
    const why = heldFor > 0 ? 'held' : (refusalIfStopped(ticket, now) ?? 'queue_timeout');
    if (why === 'queue_timeout' && slots?.isFull === true) slots.onWaitTimeout();
    const context = { store: this.#store, emit: this.#emit };
    const retryAfterMs = computeRetryAfter(context, { ticket, slot: clientSlot, why, wait }, now);
    ticket.onSettled({ kind: 'refused', why, retryAfterMs }, now);
  }

  /** Whether its wait is over, no quota is left for it, or the upstream has since asked its client to stay away. */
  #hasExpired(ticket: Ticket, now: Millis): boolean {
    if (ticket.expiresAt < now || isUnfitProbe(ticket, now) || isSpentTooLong(ticket, now)) return true;
    return isClientHeld(this.#store.clients, ticket, now);
  }

  #finishWaiting(ticket: Ticket, admitted: boolean, now: Millis): void {
    this.#store.upstream(ticket.upstream).queueOccupancy.remove(ticket);
    this.#expiries.remove(ticket);
    this.#emit({ type: 'dequeued', upstream: ticket.upstream, waited: now - ticket.queuedAt, admitted });
  }
}
