import { blockedBy, delayOf, estimateWait, isPoorProbe } from './admission.ts';
import type { ClientSlot } from './client.ts';
import type { Listen } from './events.ts';
import { Heap } from './heap.ts';
import { abandon, takeRoom, takeTokens } from './holdings.ts';
import type { Limit } from './limit.ts';
import { LATENESS } from './pacer.ts';
import { tellWhen } from './promise.ts';
import type { Room } from './room.ts';
import type { Store } from './store.ts';
import type { Ticket } from './ticket.ts';
import { ADMITTED } from './ticket.ts';
import type { Millis } from './types.ts';
import { weigh } from './weigh.ts';

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
    this.#store.upstream(ticket.upstream).queued += 1;
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
    if (room !== undefined) takeRoom(ticket, room);
    if (ticket.slot !== undefined) this.#store.clients.admitted(ticket.slot, now);
  }

  /** Serves the queue as far as tokens and room go. */
  pump(limit: Limit, now: Millis): void {
    this.advance(limit, now);
    const due = limit.wakeAt <= now ? Math.max(limit.wakeAt, now - LATENESS) : now;
    for (let ticket = this.#next(limit, now); ticket !== undefined; ticket = this.#next(limit, now)) {
      if (ticket.expiresAt < now || this.#isHeld(ticket, now) || isPoorProbe(ticket, now)) {
        this.#expire(ticket, now);
        continue;
      }
      // Who waits for room alone has its tokens.
      const isPaid = limit !== ticket.limits.at(-1);
      if (!isPaid && delayOf(ticket.limits, now) > 0) break;
      const { room } = this.#store.upstream(ticket.upstream);
      const isFull = room?.isFull === true;
      if (isFull && limit === room.line) break;
      const weight = weigh(this.#store, ticket, now);
      limit.queue.reweigh(ticket, weight);
      limit.serve(ticket);
      if (!isPaid) takeTokens(ticket, due, now);
      if (isFull && ticket.slot !== undefined) {
        room.line.enqueue(ticket, ticket.slot, weight, now);
        continue;
      }
      this.letGo(ticket, room, now);
      this.#forget(ticket, true, now);
      ticket.settle(ADMITTED, now);
    }
    this.#schedule(limit, now);
  }

  /** While connections are short, whoever has more than its share of them lets others go first. */
  #next(limit: Limit, now: Millis): Ticket | undefined {
    const { queue } = limit;
    if (queue.size < 2) return queue.peek();
    const { room, activity } = this.#store.upstream(limit.ref.upstream);
    if (room === undefined || limit !== room.line || !room.isShort) return queue.peek();
    const active = Math.max(activity.weight(now, 0), queue.activeWeight);
    // The keys of one address have together what one of them would have alone.
    return queue.peek(({ nest, client, classWeight }) =>
      room.isBeyond(nest ?? client, classWeight / Math.max(classWeight, active)),
    );
  }

  /** A change that no wake foresaw: who waits at a limit nested in this one may wait for it too. */
  pumpWithin(limit: Limit, now: Millis): void {
    this.pump(limit, now);
    for (const inner of limit.queuedWithin ?? []) this.pump(inner, now);
  }

  /** Moves a limit on with time, and tells what has become of it. */
  advance(limit: Limit, now: Millis): void {
    limit.meter.advance(now, limit.queue.size > 0);
    const { told } = limit;
    if (told === limit.meter.phase) return;
    limit.told = limit.meter.phase; // first: a listener may look at the gate
    const { upstream, scope } = limit.ref;
    this.#listen({ type: 'limit-state', upstream, scope, from: told, to: limit.told });
  }

  #schedule(limit: Limit, now: Millis): void {
    const ticket = limit.queue.peek();
    this.#wakes.remove(limit);
    // Never, when nobody waits, or when a supply, room or somebody's end is waited for.
    const awaits = ticket === undefined || this.#awaitsRoom(limit);
    limit.wakeAt = awaits ? Number.POSITIVE_INFINITY : now + delayOf(ticket.limits, now);
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
    const { room } = this.#store.upstream(ticket.upstream);
    const held = this.#store.clients.heldUntil(slot) - now;
    const wait = Math.max(held, estimateWait(ticket, room, weigh(this.#store, ticket, now), now));
    ticket.estimate = wait;
    const why = held > 0 ? 'held' : (blockedBy(ticket.limits, now) ?? 'queue_timeout');
    const retryAfter = tellWhen({ store: this.#store, listen: this.#listen }, { ticket, slot, why, wait }, now);
    ticket.settle({ kind: 'refused', why, retryAfter }, now);
  }

  /** The upstream asked this client to wait after the ticket had been queued: never earlier than it asked. */
  #isHeld({ slot }: Ticket, now: Millis): boolean {
    return slot !== undefined && this.#store.clients.heldUntil(slot) > now;
  }

  /** It waits no longer. */
  #forget(ticket: Ticket, admitted: boolean, now: Millis): void {
    const { upstream, queuedAt } = ticket;
    this.#store.upstream(upstream).queued -= 1;
    this.#expiries.remove(ticket);
    this.#listen({ type: 'dequeued', upstream, waited: now - queuedAt, admitted });
  }
}
