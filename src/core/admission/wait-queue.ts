import {
  blockedBy,
  delayOf,
  estimateWait,
  heldUntil,
  isAnyBlocking,
  isPoorProbe,
  isReady,
  roomOf,
  sourceAt,
} from './wait-estimate.ts';
import type { ClientSlot } from './client-allowance.ts';
import type { Listen } from '../events/proxy-events.ts';
import { LOOKED_AT } from './fair-queue.ts';
import { Heap } from '../collections/binary-heap.ts';
import { abandon, takeRoom, takeTokens } from './reservations.ts';
import type { Limit } from '../limits/limit.ts';
import { LATENESS } from '../rate/pacer.ts';
import { tellWhen } from './compute-retry-after.ts';
import type { Room } from './connection-slots.ts';
import type { Store } from './gate-store.ts';
import type { Ticket } from './ticket.ts';
import { ADMITTED } from './ticket.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';
import { weigh } from './effective-weight.ts';

/**
 * Those who wait for a limit: who is served next and when, who has waited for too long, and when to look again. Each is
 * settled once, by the limit's tokens or by its own patience.
 */
export class Waiting {
  readonly #store: Store;
  readonly #listen: Listen;
  readonly #expiries = new Heap<Ticket>((a, b) => a.expiresAt < b.expiresAt);
  readonly #wakes = new Heap<Limit>((a, b) => a.wakeAt < b.wakeAt);

  constructor(store: Store, listen: Listen) {
    this.#store = store;
    this.#listen = listen;
  }

  /** When `wake` has something to do; undefined when nobody waits. */
  nextWake(): Millis | undefined {
    const expiry = this.#expiries.peek()?.expiresAt;
    const wake = this.#wakes.peek()?.wakeAt;
    if (expiry === undefined) return wake;
    return wake === undefined ? expiry : Math.min(expiry, wake);
  }

  wake(now: Millis): void {
    for (let limit = this.#wakes.peek(); limit !== undefined && limit.wakeAt <= now; limit = this.#wakes.peek()) {
      this.pump(limit, now);
    }
    for (let late = this.#expiries.peek(); late !== undefined && late.expiresAt <= now; late = this.#expiries.peek()) {
      this.#expire(late, now);
    }
  }

  /** From now until `ticket.expiresAt` at the latest. */
  enqueue(ticket: Ticket, limit: Limit, slot: ClientSlot, now: Millis): void {
    ticket.queuedAt = now;
    this.#expiries.push(ticket);
    if (limit !== ticket.limits.at(-1)) takeTokens(ticket, now, now); // all that is lacking is room
    limit.enqueue(ticket, slot, weigh(this.#store, ticket, now), now);
    this.#store.upstream(ticket.upstream).backlog.add(ticket);
    this.#schedule(limit, now);
    this.#listen({ type: 'decision', upstream: ticket.upstream, decision: 'queued', why: undefined });
  }

  /** Leaves the queue, and is not settled. */
  dequeue(ticket: Ticket, now: Millis): void {
    ticket.waitsAt?.dequeue(ticket);
    this.#forget(ticket, false, now);
  }

  /** It has its tokens and may be sent: a connection is kept for it. */
  letGo(ticket: Ticket, room: Room | undefined, now: Millis): void {
    if (room !== undefined) takeRoom(ticket, room, now);
    if (ticket.slot !== undefined) this.#store.clients.admitted(ticket.slot, now);
  }

  /** Serves the queue as far as tokens and room go. */
  pump(limit: Limit, now: Millis): void {
    this.#move(limit, now);
    const due = limit.wakeAt <= now ? Math.max(limit.wakeAt, now - LATENESS) : now;
    for (let ticket = this.#next(limit, now); ticket !== undefined; ticket = this.#next(limit, now)) {
      if (this.#isOver(ticket, now)) {
        this.#expire(ticket, now);
        continue;
      }
      // Who waits for room alone has its tokens.
      const isPaid = limit !== ticket.limits.at(-1);
      if (!isPaid && delayOf(ticket, now) > 0) break;
      const upstream = this.#store.upstream(ticket.upstream);
      const room = roomOf(ticket, upstream);
      if (limit === room?.line && room.isFull) break;
      const rival = isPaid ? undefined : this.#rival(ticket, limit, upstream.room, now);
      if (rival?.waitsAt === undefined) this.#serve(ticket, limit, room, due, now);
      else if (this.#isOver(rival, now)) this.#expire(rival, now);
      else {
        const line = rival.waitsAt;
        this.#serve(rival, line, roomOf(rival, upstream), due, now);
        this.#schedule(line, now);
      }
    }
    this.#schedule(limit, now);
  }

  /** What it lacked it has, or takes now; without room, it goes on to wait for that. */
  #serve(ticket: Ticket, limit: Limit, room: Room | undefined, due: Millis, now: Millis): void {
    const isPaid = limit !== ticket.limits.at(-1);
    const weight = weigh(this.#store, ticket, now);
    limit.queue.reweigh(ticket, weight);
    limit.serve(ticket);
    if (!isPaid) {
      const arbiter = ticket.slot === undefined ? undefined : arbiterOf(ticket, now);
      if (arbiter?.queuedWithin !== undefined && ticket.slot !== undefined) arbiter.turns.served(ticket.slot, weight);
      takeTokens(ticket, due, now);
    }
    if (room?.isFull === true && ticket.slot !== undefined) return room.line.enqueue(ticket, ticket.slot, weight, now);
    this.letGo(ticket, room, now);
    this.#forget(ticket, true, now);
    ticket.settle(ADMITTED, now);
  }

  /** Who waits in another line, could go as well, and has had less of what both need. */
  #rival(ticket: Ticket, limit: Limit, room: Room | undefined, now: Millis): Ticket | undefined {
    if (ticket.limits.length === 1 && limit.queuedWithin === undefined) return undefined;
    const arbiter = arbiterOf(ticket, now);
    if (arbiter?.queuedWithin === undefined) return undefined;
    let first = ticket;
    let least = this.#turnOf(ticket, arbiter, now);
    for (const line of [arbiter, ...arbiter.queuedWithin]) {
      if (line === limit || (line === room?.line && room.isFull)) continue;
      const next = this.#next(line, now);
      if (!isReady(line, next, now)) continue;
      const turn = this.#turnOf(next, arbiter, now);
      if (turn > least || (turn === least && next.queuedAt >= first.queuedAt)) continue;
      first = next;
      least = turn;
    }
    return first === ticket ? undefined : first;
  }

  #turnOf(ticket: Ticket, { turns }: Limit, now: Millis): number {
    return ticket.slot === undefined ? 0 : turns.finish(ticket.slot, weigh(this.#store, ticket, now));
  }

  /**
   * While connections are short, whoever has more than its share of them lets others go first; and so does who lacks a token
   * that those behind do not need.
   */
  #next(limit: Limit, now: Millis): Ticket | undefined {
    const { queue } = limit;
    if (queue.size < 2) return queue.peek();
    const { room, activity } = this.#store.upstream(limit.ref.upstream);
    const isShort = room !== undefined && limit === room.line && room.isShort;
    if (!isShort) return isMixed(limit) ? queue.peek((ticket) => lacksToken(ticket, limit, now)) : queue.peek();
    const active = Math.max(activity.weight(now, 0), queue.activeWeight);
    return queue.peek(
      (ticket) =>
        room.isBeyond(ticket.holder, ticket.classWeight / Math.max(ticket.classWeight, active)) ||
        (isMixed(limit) && lacksToken(ticket, limit, now)),
    );
  }

  /** A change that no wake foresaw: who waits at a limit nested in this one may wait for it too. */
  pumpWithin(limit: Limit, now: Millis): void {
    this.pump(limit, now);
    for (const inner of limit.queuedWithin ?? []) this.pump(inner, now);
  }

  /** Moves a limit on with time. A rate that grows brings the token nearer that somebody waits for. */
  advance(limit: Limit, now: Millis): void {
    if (limit.queue.size === 0) return this.#move(limit, now);
    const before = limit.meter.rate(now);
    this.#move(limit, now);
    if (limit.meter.rate(now) !== before) this.#schedule(limit, now);
  }

  /** Moves it, and tells what has become of it. */
  #move(limit: Limit, now: Millis): void {
    limit.meter.advance(now, limit.queue.size > 0);
    const change = limit.takeChange(now);
    if (change !== undefined) this.#listen(change);
  }

  #schedule(limit: Limit, now: Millis): void {
    const ticket = this.#next(limit, now);
    this.#wakes.remove(limit);
    // Never, when nobody waits, or when a supply, room or somebody's end is waited for.
    const awaits = ticket === undefined || this.#awaitsRoom(limit);
    limit.wakeAt = awaits ? Number.POSITIVE_INFINITY : now + soonest(limit, ticket, now);
    if (limit.wakeAt !== Number.POSITIVE_INFINITY) this.#wakes.push(limit);
  }

  #awaitsRoom(limit: Limit): boolean {
    const { room } = this.#store.upstream(limit.ref.upstream);
    return room?.isFull === true && limit === room.line;
  }

  #expire(ticket: Ticket, now: Millis): void {
    const { slot, admitted } = ticket;
    this.dequeue(ticket, now);
    abandon(ticket);
    for (const limit of admitted) this.pump(limit, now);
    if (slot === undefined) return;
    const room = roomOf(ticket, this.#store.upstream(ticket.upstream));
    const held = heldUntil(this.#store.clients, ticket, slot, now) - now;
    const wait = Math.max(held, estimateWait(ticket, room, weigh(this.#store, ticket, now), now));
    ticket.estimate = wait;
    const why = held > 0 ? 'held' : (blockedBy(ticket, now) ?? 'queue_timeout');
    const retryAfter = tellWhen({ store: this.#store, listen: this.#listen }, { ticket, slot, why, wait }, now);
    ticket.settle({ kind: 'refused', why, retryAfter }, now);
  }

  /** Its time has come, or the upstream asked this client to wait after it had been queued: never earlier than it asked. */
  #isOver(ticket: Ticket, now: Millis): boolean {
    const { slot, expiresAt } = ticket;
    if (expiresAt < now || isPoorProbe(ticket, now)) return true;
    return slot !== undefined && heldUntil(this.#store.clients, ticket, slot, now) > now;
  }

  /** It waits no longer. */
  #forget(ticket: Ticket, admitted: boolean, now: Millis): void {
    const { upstream, queuedAt } = ticket;
    this.#store.upstream(upstream).backlog.remove(ticket);
    this.#expiries.remove(ticket);
    this.#listen({ type: 'dequeued', upstream, waited: now - queuedAt, admitted });
  }
}

/** The outermost limit that makes anybody wait: by what each client has had of it, turns are taken. */
function arbiterOf(ticket: Ticket, now: Millis): Limit | undefined {
  return ticket.limits.find(
    ({ meter }) => meter.rate(now) < Number.POSITIVE_INFINITY || meter.delay(now, sourceAt(meter, ticket)) > 0,
  );
}

/** Not all who wait there lack the same. */
function isMixed(limit: Limit): boolean {
  return limit.isMixed || isAnyBlocking(limit.queue.peek());
}

function lacksToken(ticket: Ticket, limit: Limit, now: Millis): boolean {
  return limit === ticket.limits.at(-1) && delayOf(ticket, now) > 0;
}

/** Who is next cannot go yet, and whoever could was not found, or is to let others go first: nobody is looked for without a break. */
const LOOK_AGAIN: Millis = 1;

/** How soon anybody there may have what it lacks: where not all lack the same, it need not be who is next. */
function soonest(limit: Limit, next: Ticket, now: Millis): Millis {
  const { queue } = limit;
  let delay = delayOf(next, now);
  if (!isMixed(limit) || delay === 0) return delay;
  for (let i = 0; i < queue.flows.length && i < LOOKED_AT; i += 1) {
    const head = queue.flows[i]?.head;
    if (head !== undefined) delay = Math.min(delay, Math.max(LOOK_AGAIN, delayOf(head, now)));
  }
  return delay;
}
