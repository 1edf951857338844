import type { HeapItem } from '../collections/binary-heap.ts';
import { Heap } from '../collections/binary-heap.ts';
import type { Linked } from '../collections/linked-queue.ts';
import { Line } from '../collections/linked-queue.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

/** What waits in a queue. The flow and the links are the queue's. */
export interface Waiter<W extends Linked<W>> extends Linked<W> {
  flow: Flow<W> | undefined;
}

/** The requests of one client in one queue, first come first served among themselves. */
export class Flow<W extends Linked<W>> extends Line<W> implements HeapItem {
  readonly key: number;
  /** Virtual time at which its head will have been served. */
  tag: number;
  /** Which got its tag first: of equal tags that is served first. */
  order: number;
  weight: number;
  /** Since when something of it has been waiting. */
  readonly since: Millis;
  heapIndex = -1;

  constructor({ key, tag, order, weight, since }: Pick<Flow<W>, 'key' | 'tag' | 'order' | 'weight' | 'since'>) {
    super();
    this.key = key;
    this.tag = tag;
    this.order = order;
    this.weight = weight;
    this.since = since;
  }
}

type Tagged = Pick<Flow<never>, 'tag' | 'order'>;

/** So many flows are looked at for one that is not deferred; those served soon stand among the first of the heap. */
export const LOOKED_AT = 1000;

/**
 * Weighted fair queueing, self-clocked: the smallest finish tag is served next, and virtual time is the tag of what was
 * served last. A client that becomes active starts at virtual time, which its own last tag never exceeds: neither idling
 * nor leaving and coming back gains anything. (Golestani, "A Self-Clocked Fair Queueing Scheme", INFOCOM 1994.)
 * Work-conserving: what one does not use, the others get.
 */
export class FairQueue<W extends Waiter<W>> {
  readonly #active = new Heap<Flow<W>>(isBefore);
  readonly #flows = new Map<number, Flow<W>>();
  #virtual = 0;
  #tagged = 0;
  #size = 0;
  #activeWeight = 0;

  get size(): number {
    return this.#size;
  }

  /** Of all who have something waiting. */
  get activeWeight(): number {
    return this.#activeWeight;
  }

  /** Who has something waiting, in no order. */
  get flows(): readonly Flow<W>[] {
    return this.#active.items;
  }

  /** Whether the client has anything waiting, and how much. */
  backlog(key: number): number {
    return this.#flows.get(key)?.length ?? 0;
  }

  /** For how long the client has had something waiting without a break; 0 when it has nothing. */
  waitingFor(key: number, now: Millis): Millis {
    const flow = this.#flows.get(key);
    return flow === undefined ? 0 : now - flow.since;
  }

  /** The share of the rate that a client with this weight has while it waits, in (0, 1]. */
  share(key: number, weight: number): number {
    const flow = this.#flows.get(key);
    const others = this.#activeWeight - (flow?.weight ?? 0);
    return weight / (Math.max(0, others) + weight);
  }

  /** @param weight above 0; a change of it applies to the flow as a whole */
  push(key: number, weight: number, waiter: W, now: Millis): void {
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      flow = new Flow({ key, tag: this.#virtual + 1 / weight, order: this.#tagged++, weight, since: now });
      this.#flows.set(key, flow);
      this.#active.push(flow);
      this.#activeWeight += weight;
    } else {
      this.#activeWeight += weight - flow.weight;
      flow.weight = weight;
    }
    waiter.flow = flow;
    flow.push(waiter);
    this.#size += 1;
  }

  /** The weight of a waiter's client has changed: it applies from its next turn on. */
  reweigh({ flow }: W, weight: number): void {
    if (flow === undefined) return;
    this.#activeWeight += weight - flow.weight;
    flow.weight = weight;
  }

  /** Who is served next. @param isDeferred of whom it holds, others come first */
  peek(isDeferred?: (waiter: W) => boolean): W | undefined {
    const first = this.#active.peek();
    if (isDeferred === undefined || first?.head === undefined || !isDeferred(first.head)) return first?.head;
    const { items } = this.#active;
    let next: Flow<W> | undefined;
    for (let i = 1; i < items.length && i < LOOKED_AT; i += 1) {
      const flow = items[i];
      if (flow === undefined || (next !== undefined && !isBefore(flow, next))) continue;
      if (flow.head !== undefined && !isDeferred(flow.head)) next = flow;
    }
    return (next ?? first).head;
  }

  /** Takes out one that `peek` has named, and moves virtual time. */
  take(waiter: W): void {
    const { flow } = waiter;
    if (flow === undefined) return;
    this.#virtual = Math.max(this.#virtual, flow.tag); // that of one that was deferred lies behind
    this.#unlink(flow, waiter);
    if (flow.length > 0) {
      flow.tag += 1 / flow.weight;
      flow.order = this.#tagged++;
      this.#active.update(flow);
    }
  }

  /** Takes out who is served next. */
  shift(): W | undefined {
    const waiter = this.peek();
    if (waiter !== undefined) this.take(waiter);
    return waiter;
  }

  /** Takes out one that will not be served: it costs its client no virtual time. */
  remove(waiter: W): void {
    if (waiter.flow !== undefined) this.#unlink(waiter.flow, waiter);
  }

  #unlink(flow: Flow<W>, waiter: W): void {
    flow.remove(waiter);
    waiter.flow = undefined;
    this.#size -= 1;
    if (flow.length > 0) return;
    // An idle flow's tag is never ahead of virtual time, so nothing is lost by forgetting it.
    this.#flows.delete(flow.key);
    this.#active.remove(flow);
    this.#activeWeight = this.#size === 0 ? 0 : this.#activeWeight - flow.weight; // no drift from fractions
  }
}

function isBefore(a: Tagged, b: Tagged): boolean {
  return a.tag === b.tag ? a.order < b.order : a.tag < b.tag;
}
