import { BinaryHeap } from './binary-heap.ts';
import type { FairQueueEntry, FairQueueFlow } from './fair-queue-flow.ts';
import { FairQueueGroup, isBefore, isServedBefore } from './fair-queue-flow.ts';
import type { LinkedItem } from './linked-queue.ts';
import { Rotation } from './rotation.ts';

/** The maximum number of flows that one search sets aside as deferred, and the maximum number of those that it examines again. */
const MAX_FLOWS_EXAMINED = 1000;

/**
 * The flows of a fair queue, in the order in which they are served; a group takes the place of its first flow. A flow whose head
 * is deferred is set aside once a search reaches it, so that such flows hide no other one, however many they are.
 */
export class ServiceOrder<W extends LinkedItem<W>> {
  readonly #entries = new BinaryHeap<FairQueueEntry<W>>(isBefore);
  /** The flows that are set aside. Created on first use. */
  #deferred: Rotation<FairQueueFlow<W>> | undefined = undefined;
  #wasSearchComplete = true;
  /** The total weight of the flows, including those set aside; a group counts as one. */
  totalWeight = 0;

  /** Whether the last search examined all flows that may be served next. */
  get wasSearchComplete(): boolean {
    return this.#wasSearchComplete;
  }

  /** The head of the first flow that is not set aside; if all are, that of one of them. */
  get head(): W | undefined {
    return (this.#entries.peek() ?? this.#deferred?.items[0])?.head;
  }

  /** In no particular order; those served soonest are near the start, and those set aside at the end. */
  *flows(): Generator<FairQueueFlow<W>, undefined> {
    for (const entry of this.#entries.items) {
      if (entry instanceof FairQueueGroup) yield* entry.members.items;
      else yield entry;
    }
    if (this.#deferred !== undefined) yield* this.#deferred.items;
  }

  /** Adds a flow. The caller adds the weight of one outside a group to `totalWeight`. */
  add(flow: FairQueueFlow<W>): void {
    if (flow.group === undefined) return this.#entries.push(flow);
    flow.group.members.push(flow);
    this.placeGroup(flow.group);
  }

  /** Removes a flow. Call `placeGroup` or `removeGroup` for its group. */
  remove(flow: FairQueueFlow<W>): void {
    if (flow.place >= 0) this.#deferred?.remove(flow);
    else if (flow.group === undefined) this.#entries.remove(flow);
    else flow.group.members.remove(flow);
  }

  removeGroup(group: FairQueueGroup<W>): void {
    this.#entries.remove(group);
  }

  /** To be called when the tag of a flow has changed that is not set aside. */
  update(flow: FairQueueFlow<W>): void {
    if (flow.group === undefined) this.#entries.update(flow);
    else flow.group.members.update(flow);
  }

  /** Places a group by the first of its flows that is not set aside, which may be another one than before, or none. */
  placeGroup(group: FairQueueGroup<W>): void {
    if (group.members.size === 0) return this.#entries.remove(group);
    const { weight } = group;
    group.followFirst();
    this.totalWeight += group.weight - weight;
    if (group.heapIndex < 0) this.#entries.push(group);
    else this.#entries.update(group);
  }

  /** Moves the end of the next turn of a flow or group by units: before this virtual time by those units at most, and after it by `largest` units at most. */
  postpone(entry: FairQueueEntry<W>, units: number, largest: number, virtualTime: number): void {
    const moved = distanceToMove(entry.finishTag, entry.weight, units, largest, virtualTime);
    entry.startTag += moved;
    entry.finishTag += moved;
    if (entry.heapIndex >= 0) this.#entries.update(entry);
  }

  /** As `postpone`, for the turn of a member among those of its group. */
  postponeMember(group: FairQueueGroup<W>, flow: FairQueueFlow<W>, units: number, largest: number): void {
    const moved = distanceToMove(flow.finishTag, flow.memberWeight, units, largest, group.virtualTime);
    flow.startTag += moved;
    flow.finishTag += moved;
    if (flow.heapIndex < 0) return; // it is set aside
    group.members.update(flow);
    this.placeGroup(group);
  }

  /** The next turn of a flow, and that of its group, begins at this virtual time at the latest. */
  dropDebt(flow: FairQueueFlow<W>, virtualTime: number): void {
    const { group } = flow;
    flow.dropDebt(group?.virtualTime ?? virtualTime);
    if (flow.heapIndex >= 0) this.update(flow);
    if (group === undefined) return;
    group.dropDebt(virtualTime);
    this.placeGroup(group);
  }

  /** The turn of a group is over; its next one begins. @param cost of the turn, in units */
  beginTurn(group: FairQueueGroup<W>, tagOrder: number, cost: number): void {
    const { weight } = group;
    group.beginTurn(tagOrder, cost);
    this.totalWeight += group.weight - weight;
    if (group.members.size === 0) this.#entries.remove(group);
    else this.#entries.update(group);
  }

  /** Lets a flow that is set aside take part again. */
  resume(flow: FairQueueFlow<W>): void {
    this.#deferred?.remove(flow);
    this.add(flow);
  }

  /** Lets all flows take part again. */
  resumeAll(): void {
    this.#wasSearchComplete = true;
    const deferred = this.#deferred;
    if (deferred === undefined) return;
    for (let flow = deferred.pop(); flow !== undefined; flow = deferred.pop()) this.add(flow);
  }

  /**
   * Returns the first flow whose head is not deferred; if none was found, one whose head is. Of more than 1000 flows that are set
   * aside, each search examines the next 1000 in turn.
   */
  search(isDeferred: (waiter: W) => boolean): FairQueueFlow<W> | undefined {
    let first = this.#setDeferredAside(isDeferred);
    let firstDeferred: FairQueueFlow<W> | undefined;
    this.#deferred?.visitNext(MAX_FLOWS_EXAMINED, (flow) => {
      if (flow.head === undefined || (first !== undefined && !isServedBefore(flow, first))) return;
      if (!isDeferred(flow.head)) first = flow;
      else if (firstDeferred === undefined || isServedBefore(flow, firstDeferred)) firstDeferred = flow;
    });
    return first ?? firstDeferred;
  }

  /** Sets the deferred flows aside that precede the first other one. Returns that one, if it was reached. */
  #setDeferredAside(isDeferred: (waiter: W) => boolean): FairQueueFlow<W> | undefined {
    this.#wasSearchComplete = false;
    for (let count = 0; count < MAX_FLOWS_EXAMINED; count += 1) {
      const entry = this.#entries.peek();
      const flow = entry instanceof FairQueueGroup ? entry.members.peek() : entry;
      if (flow?.head === undefined || !isDeferred(flow.head)) {
        this.#wasSearchComplete = (this.#deferred?.size ?? 0) <= MAX_FLOWS_EXAMINED;
        return flow;
      }
      this.remove(flow);
      if (flow.group !== undefined) this.placeGroup(flow.group);
      (this.#deferred ??= new Rotation()).add(flow);
    }
    return undefined;
  }
}

function distanceToMove(
  finishTag: number,
  weight: number,
  units: number,
  largest: number,
  virtualTime: number,
): number {
  const by = units / weight;
  if (by <= 0) return Math.min(0, Math.max(virtualTime, finishTag) + by - finishTag);
  return Math.max(0, Math.min(by, virtualTime + (1 + largest) / weight - finishTag));
}
