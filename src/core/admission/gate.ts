import {
  blockedBy,
  estimateWait,
  heldUntil,
  isAsTold,
  isPoorProbe,
  patienceOf,
  PROMISE,
  roomOf,
  waitingPlace,
  whyTooLong,
} from './wait-estimate.ts';
import type { ClientSlot } from './client-allowance.ts';
import type { GateView, LimitView, Listen } from '../events/proxy-events.ts';
import type { Grounds } from './decision-details.ts';
import { groundsOf } from './decision-details.ts';
import { abandon, giveBack, takeTokens } from './reservations.ts';
import { learn } from './record-outcome.ts';
import { noteGranted, noteReported, presume } from '../limits/external-outcomes.ts';
import type { Limit } from '../limits/limit.ts';
import { letPass } from './observe-mode.ts';
import { tellWhen, tellWhenRefusedThere } from './compute-retry-after.ts';
import { releaseFor, releaseOthers } from '../quota/apply-quota.ts';
import { resolveLimits } from '../limits/resolve-limits.ts';
import type { Retry } from '../retry/choose-retry.ts';
import type { Room } from './connection-slots.ts';
import type { Store, Upstream } from './gate-store.ts';
import type { Admission, Ticket } from './ticket.ts';
import { ADMITTED, NO_LIMITS } from './ticket.ts';
import type { Millis, Mode, Outcome, Refusal, RetryEnd } from '../exchange/attempt-outcome.ts';
import { Waiting } from './wait-queue.ts';
import { weigh } from './effective-weight.ts';

/**
 * The one object that decides and counts. It owns limits, queues, clients and budgets, is fed by events that each carry
 * their time, and answers at once or, for a queued ticket, by `ticket.settle`. The proxy and the simulator run the same.
 *
 *     arrive ─► admitted │ refused │ queued … settle        sent ─► head ─► end        leave
 *                                                           granted ……… report
 */
export class Gate {
  readonly #store: Store;
  readonly #listen: Listen;
  /** May change: each arrival is decided in the mode of its time. */
  mode: Mode;
  readonly #waiting: Waiting;

  constructor(store: Store, listen: Listen, mode: Mode = 'enforce') {
    this.#store = store;
    this.#listen = listen;
    this.mode = mode;
    this.#waiting = new Waiting(store, listen);
  }

  /** Asks for admission. Undefined: the ticket waits, and will be settled. */
  arrive(ticket: Ticket, deadline: Millis, now: Millis): Admission | undefined {
    const admission = this.#decide(ticket, deadline, now);
    return this.mode === 'enforce' ? admission : letPass(ticket, admission, now);
  }

  /** An attempt leaves for the upstream. */
  sent(ticket: Ticket, now: Millis): void {
    ticket.sentAt = now;
    giveBack(ticket);
    ticket.counted = ticket.limits;
    for (const { meter, isOurs } of ticket.limits) {
      const among = meter.sent(now);
      if (isOurs) continue;
      ticket.among = among;
      ticket.number = meter.sends;
    }
  }

  /** An admitted one that whoever asked for it sends: for us it is over. */
  granted(ticket: Ticket, now: Millis): void {
    this.sent(ticket, now);
    noteGranted(ticket.limits, now);
    ticket.probes = NO_LIMITS;
    this.end(ticket, now);
  }

  /** What has become of a request that was granted, in the word of who sent it, at `sentAt`. The ticket was never used. */
  report(ticket: Ticket, outcome: Outcome, sentAt: Millis, now: Millis): void {
    ticket.slot = this.#store.clients.visit(ticket.client, now, ticket.upstream);
    ticket.limits = resolveLimits(this.#store, ticket.refs);
    ticket.sentAt = sentAt;
    for (const limit of ticket.limits) this.#waiting.advance(limit, now);
    noteReported(ticket.limits, outcome, sentAt, now);
    this.head(ticket, outcome, now);
    this.leave(ticket);
  }

  /** The head of its response, or its failure. Everything that can be learned is learned here. */
  head(ticket: Ticket, outcome: Outcome, now: Millis): void {
    const upstream = this.#store.upstream(ticket.upstream);
    const isReleased = learn({ ticket, upstream, store: this.#store, listen: this.#listen }, outcome, now);
    for (const limit of ticket.limits) {
      if (isReleased) this.#waiting.pumpWithin(limit, now);
      else this.#waiting.pump(limit, now);
    }
    for (const limit of ticket.probes) this.#waiting.pumpWithin(limit, now);
    ticket.probes = NO_LIMITS;
  }

  /** The attempt holds no place at the upstream any more: its body has ended, was cut, or goes on for long. */
  end(ticket: Ticket, now: Millis): void {
    const { counted } = ticket;
    ticket.counted = NO_LIMITS;
    for (const limit of counted) if (limit.meter.ended(now)) this.#waiting.pumpWithin(limit, now);
  }

  /** An attempt that has or awaits a connection begins. @param holder its client, or all clients of one address */
  begin(upstream: string, holder: string): void {
    this.#store.upstream(upstream).room?.begin(holder);
  }

  /** An attempt that had begun needs its connection no more. @param took how long it had one, or waited for it */
  over(upstream: string, holder: string, took: Millis): void {
    this.#store.upstream(upstream).room?.end(holder, took);
  }

  /** To the upstream; undefined where they are not bounded here. */
  connectionsTo(upstream: string): number | undefined {
    return this.#store.upstream(upstream).room?.connections;
  }

  /** A connection to the upstream is free again. Returns whether somebody waited for one. */
  vacated(upstream: string, now: Millis): boolean {
    const { room } = this.#store.upstream(upstream);
    if (room === undefined || room.line.queue.size === 0) return false;
    this.#waiting.pump(room.line, now);
    return true;
  }

  /** Admitted or queued, and will not be sent: gives back what it holds. */
  cancel(ticket: Ticket, now: Millis): void {
    const { admitted, room } = ticket;
    if (ticket.flow !== undefined) this.#waiting.dequeue(ticket, now);
    abandon(ticket);
    for (const limit of admitted) this.#waiting.pumpWithin(limit, now); // who waits may have the place, or be the probe
    if (room !== undefined) this.#waiting.pump(room.line, now);
  }

  /** The exchange is over; its client may be forgotten. One that would still be waiting leaves when it is settled. */
  leave(ticket: Ticket): void {
    if (ticket.flow !== undefined) return;
    giveBack(ticket); // of a shadow
    if (ticket.slot !== undefined) this.#store.clients.leave(ticket.slot);
    ticket.slot = undefined;
  }

  /** Whether a retry, or a poll, may be begun, or why not. Takes its budget token if so: retries asleep count. */
  reserve(
    ticket: Ticket,
    retry: Pick<Retry, 'delay' | 'charged'>,
    deadline: Millis,
    now: Millis,
  ): RetryEnd | undefined {
    const upstream = this.#store.upstream(ticket.upstream);
    const { clients } = this.#store;
    ticket.limits = resolveLimits(this.#store, ticket.refs);
    this.#releaseQuotas(ticket, now);
    const slot = ticket.slot;
    if (slot === undefined || heldUntil(clients, ticket, slot, now) > now + retry.delay) return 'deadline';
    const queued = estimateWait(ticket, upstream.room, weigh(this.#store, ticket, now), now) - retry.delay;
    if (queued > upstream.queue.maxWait || now + retry.delay + Math.max(0, queued) >= deadline) return 'deadline';
    if (retry.charged && !upstream.budget.spend()) return 'budget_exhausted';
    return undefined;
  }

  /**
   * When the client of a request that the upstream has just refused may come back: what a refusal of the gate would say, once
   * the outcome has been learned from. Keeps a place for it. Undefined where we only observe.
   * @param atLeast what the upstream asks for
   */
  comeBack(ticket: Ticket, atLeast: Millis, now: Millis): Millis | undefined {
    if (this.mode !== 'enforce') return undefined;
    const { slot } = ticket;
    if (slot === undefined) return atLeast;
    const upstream = this.#store.upstream(ticket.upstream);
    ticket.limits = resolveLimits(this.#store, ticket.refs); // it may have made one
    for (const limit of ticket.limits) this.#waiting.advance(limit, now);
    const held = heldUntil(this.#store.clients, ticket, slot, now) - now;
    const wait = estimateWait(ticket, roomOf(ticket, upstream), weigh(this.#store, ticket, now), now);
    return tellWhenRefusedThere(this.#store, { ticket, slot, wait }, Math.max(held, atLeast), now);
  }

  /** A reserved retry was not sent after all. */
  release(ticket: Ticket, retry: Retry): void {
    if (retry.charged) this.#store.upstream(ticket.upstream).budget.refund();
  }

  /** Tokens of a lease have come, or word of what the limit is now. */
  supply(limit: Limit, now: Millis): void {
    const { wasPaced } = limit;
    limit.wasPaced = limit.meter.isQuotaInForce(now);
    if (limit.wasPaced && !wasPaced) releaseOthers(this.#store, limit, now);
    this.#waiting.pumpWithin(limit, now);
  }

  /** Settings have changed: who waits is looked at anew, by limits and connections as they are now. */
  review(now: Millis): void {
    for (const limit of [...this.#store.limits()]) if (limit.queue.size > 0) this.#waiting.pumpWithin(limit, now);
    for (const { room } of this.#store.upstreams()) if (room !== undefined) this.#waiting.pump(room.line, now);
  }

  /** When `wake` has something to do; undefined when nobody waits. */
  nextWake(): Millis | undefined {
    return this.#waiting.nextWake();
  }

  wake(now: Millis): void {
    this.#waiting.wake(now);
  }

  /** Why it was just queued or turned away, in numbers. */
  grounds(ticket: Ticket, now: Millis): Grounds {
    return groundsOf(this.#store, ticket, now);
  }

  /** All limits, as they stand now: there may be one for each of 100 000 clients, and nothing is made for it. */
  *limits(now: Millis): Iterable<Limit> {
    for (const limit of this.#store.limits()) {
      this.#waiting.advance(limit, now);
      yield limit;
    }
  }

  view(now: Millis): GateView {
    const limits: LimitView[] = [];
    for (const limit of this.limits(now)) limits.push(limit.view(now));
    const budgets = new Map<string, number>();
    for (const { name, budget } of this.#store.upstreams()) budgets.set(name, budget.left);
    return { limits, clients: this.#store.clients.view(now), budgets };
  }

  #decide(ticket: Ticket, deadline: Millis, now: Millis): Admission | undefined {
    const { clients } = this.#store;
    const upstream = this.#store.upstream(ticket.upstream);
    const slot = this.#enter(ticket, upstream, now);
    ticket.limits = resolveLimits(this.#store, ticket.refs);
    this.#releaseQuotas(ticket, now);

    const held = heldUntil(clients, ticket, slot, now) - now;
    ticket.patience = undefined;
    if (held > 0) {
      ticket.estimate = held;
      return this.#refuse(ticket, slot, 'held', held, now);
    }

    for (const each of ticket.limits) this.#waiting.advance(each, now);
    if (ticket.isSentElsewhere) presume(ticket.limits, now);
    const poorProbe = isPoorProbe(ticket, now);
    const room = roomOf(ticket, upstream);
    const limit = waitingPlace(ticket, room, now);
    if (!poorProbe && limit === undefined) return this.#admit(ticket, room, now);

    const wait = estimateWait(ticket, room, weigh(this.#store, ticket, now), now);
    ticket.estimate = wait;
    if (limit === undefined || poorProbe) {
      return this.#refuse(ticket, slot, blockedBy(ticket, now) ?? 'blocked', wait, now);
    }
    const keepsPromise = isAsTold(clients.promised(slot), now);
    const patience = patienceOf(ticket, limit, upstream.queue, now) + (keepsPromise ? PROMISE : 0);
    ticket.patience = Math.min(patience, deadline - now);
    // Nobody is refused whom the queue might serve in time.
    const least =
      room === undefined ? wait : estimateWait(ticket, room, weigh(this.#store, ticket, now), now, room.bestRate);
    if (least > ticket.patience) {
      return this.#refuse(ticket, slot, whyTooLong(ticket, now), wait, now);
    }
    if (upstream.backlog.isFull(ticket.holder, upstream.queue.maxDepth)) {
      upstream.overflows += 1;
      return this.#refuse(ticket, slot, 'queue_full', wait, now);
    }

    if (keepsPromise) clients.promise(slot, Number.NEGATIVE_INFINITY); // it was for one
    ticket.expiresAt = Math.min(deadline, now + Math.max(patience, least));
    this.#waiting.enqueue(ticket, limit, slot, now);
    return undefined;
  }

  #enter(ticket: Ticket, upstream: Upstream, now: Millis): ClientSlot {
    if (ticket.slot !== undefined) return ticket.slot; // a retry: no new demand
    const { clients } = this.#store;
    const slot = clients.enter(ticket.client, now, ticket.upstream);
    const before = clients.previousArrival(slot);
    if (ticket.nest !== undefined) upstream.nests.note(ticket.nest, now, before);
    ticket.slot = slot;
    weigh(this.#store, ticket, now);
    upstream.activity.note(now, before, ticket.weight);
    return slot;
  }

  /** A quota that holds back all is not to hold back whom it is not about. */
  #releaseQuotas(ticket: Ticket, now: Millis): void {
    for (const limit of ticket.limits) {
      if (releaseFor(this.#store, limit, ticket, now)) this.#waiting.pumpWithin(limit, now);
    }
  }

  #admit(ticket: Ticket, room: Room | undefined, now: Millis): Admission {
    takeTokens(ticket, now, now);
    this.#waiting.letGo(ticket, room, now);
    this.#listen({ type: 'decision', upstream: ticket.upstream, decision: 'passed', why: undefined });
    return ADMITTED;
  }

  #refuse(ticket: Ticket, slot: ClientSlot, why: Refusal, wait: Millis, now: Millis): Admission {
    this.#listen({ type: 'decision', upstream: ticket.upstream, decision: 'refused', why });
    return {
      kind: 'refused',
      why,
      retryAfter: tellWhen({ store: this.#store, listen: this.#listen }, { ticket, slot, why, wait }, now),
    };
  }
}
