import type { HeapItem } from '../collections/binary-heap.ts';
import { BinaryHeap } from '../collections/binary-heap.ts';
import type { LinkedItem } from '../collections/linked-queue.ts';
import { LinkedQueue } from '../collections/linked-queue.ts';
import type { Millis } from '../scalars.ts';

/** An item of a fair queue. Only the queue writes `flow` and the links. */
export interface FairQueueItem<W extends LinkedItem<W>> extends LinkedItem<W> {
  flow: FairQueueFlow<W> | undefined;
}

/** The requests of one client in one queue, in order of arrival. */
export class FairQueueFlow<W extends LinkedItem<W>> extends LinkedQueue<W> implements HeapItem {
  readonly key: number;
  /** The virtual time at which its head will have been served. */
  finishTag: number;
  /** Breaks ties: the flow that got its tag first is served first. */
  tagOrder: number;
  weight: number;
  /** Since when the flow has not been empty. */
  readonly activeSince: Millis;
  heapIndex = -1;

  constructor({
    key,
    finishTag,
    tagOrder,
    weight,
    activeSince,
  }: Pick<FairQueueFlow<W>, 'key' | 'finishTag' | 'tagOrder' | 'weight' | 'activeSince'>) {
    super();
    this.key = key;
    this.finishTag = finishTag;
    this.tagOrder = tagOrder;
    this.weight = weight;
    this.activeSince = activeSince;
  }
}

type Tagged = Pick<FairQueueFlow<never>, 'finishTag' | 'tagOrder'>;

/** The maximum number of flows that `peek` scans for one that is not deferred. The first of the heap are served soonest. */
export const MAX_FLOWS_SCANNED = 1000;

/**
 * Self-clocked weighted fair queueing (Golestani, "A Self-Clocked Fair Queueing Scheme", INFOCOM 1994): the smallest
 * finish tag is served next, and virtual time is the tag of the flow served last. A client that becomes active starts at
 * virtual time, which its own last tag never exceeds, so it gains nothing by idling, or by leaving and returning.
 * Work-conserving: others get what one client does not use.
 */
export class FairQueue<W extends FairQueueItem<W>> {
  readonly #active = new BinaryHeap<FairQueueFlow<W>>(isBefore);
  readonly #flows = new Map<number, FairQueueFlow<W>>();
  #virtualTime = 0;
  #tagCount = 0;
  #size = 0;
  #activeWeight = 0;

  get size(): number {
    return this.#size;
  }

  /** The total weight of the active flows. */
  get activeWeight(): number {
    return this.#activeWeight;
  }

  /** The active flows, in no particular order. */
  get flows(): readonly FairQueueFlow<W>[] {
    return this.#active.items;
  }

  /** The number of waiting requests of a client. */
  queuedBy(key: number): number {
    return this.#flows.get(key)?.length ?? 0;
  }

  /** How long the client has had waiting requests without a break; 0 if it has none. */
  activeFor(key: number, now: Millis): Millis {
    const flow = this.#flows.get(key);
    return flow === undefined ? 0 : now - flow.activeSince;
  }

  /** The share of the rate that a client of this weight has while it waits, in (0, 1]. */
  share(key: number, weight: number): number {
    const flow = this.#flows.get(key);
    const others = this.#activeWeight - (flow?.weight ?? 0);
    return weight / (Math.max(0, others) + weight);
  }

  /** @param weight > 0. A change applies to the whole flow. */
  push(key: number, weight: number, waiter: W, now: Millis): void {
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      flow = new FairQueueFlow({
        key,
        finishTag: this.#virtualTime + 1 / weight,
        tagOrder: this.#tagCount++,
        weight,
        activeSince: now,
      });
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

  /** Changes the weight of a waiter's flow, from its next turn on. */
  updateWeight({ flow }: W, weight: number): void {
    if (flow === undefined) return;
    this.#activeWeight += weight - flow.weight;
    flow.weight = weight;
  }

  /** Returns the waiter served next. @param isDeferred waiters for which it holds yield to others */
  peek(isDeferred?: (waiter: W) => boolean): W | undefined {
    const first = this.#active.peek();
    if (isDeferred === undefined || first?.head === undefined || !isDeferred(first.head)) return first?.head;
    const { items } = this.#active;
    let next: FairQueueFlow<W> | undefined;
    for (let i = 1; i < items.length && i < MAX_FLOWS_SCANNED; i += 1) {
      const flow = items[i];
      if (flow === undefined || (next !== undefined && !isBefore(flow, next))) continue;
      if (flow.head !== undefined && !isDeferred(flow.head)) next = flow;
    }
    return (next ?? first).head;
  }

  /** Removes a waiter that `peek` returned, and advances virtual time. */
  take(waiter: W): void {
    const { flow } = waiter;
    if (flow === undefined) return;
    this.#virtualTime = Math.max(this.#virtualTime, flow.finishTag); // the tag of a deferred flow may lie behind
    this.#unlink(flow, waiter);
    if (flow.length > 0) {
      flow.finishTag += 1 / flow.weight;
      flow.tagOrder = this.#tagCount++;
      this.#active.update(flow);
    }
  }

  /** Removes and returns the waiter served next. */
  shift(): W | undefined {
    const waiter = this.peek();
    if (waiter !== undefined) this.take(waiter);
    return waiter;
  }

  /** Removes a waiter that will not be served. It costs its client no virtual time. */
  remove(waiter: W): void {
    if (waiter.flow !== undefined) this.#unlink(waiter.flow, waiter);
  }

  #unlink(flow: FairQueueFlow<W>, waiter: W): void {
    flow.remove(waiter);
    waiter.flow = undefined;
    this.#size -= 1;
    if (flow.length > 0) return;
    // An idle flow's tag is never ahead of virtual time, so nothing is lost by forgetting it.
    this.#flows.delete(flow.key);
    this.#active.remove(flow);
    this.#activeWeight = this.#size === 0 ? 0 : this.#activeWeight - flow.weight; // no drift by rounding
  }
}

function isBefore(a: Tagged, b: Tagged): boolean {
  return a.finishTag === b.finishTag ? a.tagOrder < b.tagOrder : a.finishTag < b.finishTag;
}
