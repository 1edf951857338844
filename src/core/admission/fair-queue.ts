import type { FairQueueItem } from '../collections/fair-queue-flow.ts';
import { FairQueueFlow, FairQueueGroup } from '../collections/fair-queue-flow.ts';
import { KeptPlaces } from '../collections/kept-places.ts';
import { ServiceOrder } from '../collections/service-order.ts';
import type { Millis } from '../scalars.ts';

/** A weight below this part of the mean is a low one: its turn is rarer than that of others. */
const LOW_WEIGHT = 0.9;

/**
 * Self-clocked weighted fair queueing (Golestani, "A Self-Clocked Fair Queueing Scheme", INFOCOM 1994): the smallest
 * finish tag is served next, and virtual time is the tag of the flow served last. A client that becomes active starts at
 * virtual time, which its own last tag never exceeds, so it gains nothing by idling, or by leaving and returning. One of a low
 * weight that has left before its turn came, because it could wait no longer, has kept its place when it returns: its turn is due
 * sooner, by one turn at most. Otherwise a client whose turns are rarer than that would have none.
 * Work-conserving: others get what one client does not use. In two levels: clients in a group have the turns of one client.
 */
export class FairQueue<W extends FairQueueItem<W>> {
  readonly #order = new ServiceOrder<W>();
  readonly #flows = new Map<number, FairQueueFlow<W>>();
  /** Created on first use. */
  #groups: Map<string, FairQueueGroup<W>> | undefined = undefined;
  /** Created on first use. */
  #keptPlaces: KeptPlaces | undefined = undefined;
  #virtualTime = 0;
  #tagCount = 0;
  /** Of groups, and of flows outside groups. */
  #entryCount = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get virtualTime(): number {
    return this.#virtualTime;
  }

  /** The total weight of the active flows; a group counts as one. */
  get activeWeight(): number {
    return this.#order.totalWeight;
  }

  /** The active flows: see `ServiceOrder.flows`. */
  get flows(): Iterable<FairQueueFlow<W>> {
    return this.#order.flows();
  }

  /** The active flows, in the order in which they became active. They may change while it is iterated. */
  get flowsByArrival(): Iterable<FairQueueFlow<W>> {
    return this.#flows.values();
  }

  /** One of the waiters: the one served next, unless flows were set aside as deferred. */
  get front(): W | undefined {
    return this.#order.head;
  }

  /** Whether the last `peek` examined all flows that may be served next. */
  get wasSearchComplete(): boolean {
    return this.#order.wasSearchComplete;
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

  /**
   * The share of the rate that a client of this weight has while it waits, in (0, 1]; in a group, that of the group.
   * @param group see `push`
   */
  share(key: number, weight: number, group?: string): number {
    const entry = this.#groupOf(key, group) ?? this.#flows.get(key);
    const others = this.activeWeight - (entry?.weight ?? 0);
    return weight / (Math.max(0, others) + weight);
  }

  /** The part of the turns of its group that a client has while it waits, in (0, 1]; 1 if it has none. See `push`. */
  partOfGroup(key: number, memberWeight: number, group?: string): number {
    const its = this.#groupOf(key, group);
    if (its === undefined) return 1;
    const others = its.memberWeight - (this.#flows.get(key)?.memberWeight ?? 0);
    return memberWeight / (Math.max(0, others) + memberWeight);
  }

  #groupOf(key: number, group: string | undefined): FairQueueGroup<W> | undefined {
    if (group === undefined || this.#groups === undefined) return undefined;
    const flow = this.#flows.get(key);
    return flow === undefined ? this.#groups.get(group) : flow.group;
  }

  /**
   * @param weight > 0. A change applies to the whole flow.
   * @param group the address whose clients have the turns of one client; undefined if the client has its own
   * @param memberWeight its weight in the group, which decides only which of the members has a turn of the group
   */
  push(key: number, weight: number, waiter: W, now: Millis, group?: string, memberWeight = weight): void {
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      if (group === undefined) flow = this.#addFlow(key, weight, now);
      else flow = this.#addMember(key, weight, now, group, memberWeight);
      this.#flows.set(key, flow);
    } else {
      this.#changeWeight(flow, weight, memberWeight);
    }
    waiter.flow = flow;
    flow.push(waiter);
    this.#size += 1;
  }

  #addFlow(key: number, weight: number, activeSince: Millis): FairQueueFlow<W> {
    const finishTag = Math.max(this.#virtualTime, this.#startTagOf(key, weight) + 1 / weight); // no less by rounding
    const tagOrder = this.#tagCount++;
    const flow = new FairQueueFlow<W>({ key, group: undefined, finishTag, tagOrder, weight, activeSince });
    this.#order.add(flow);
    this.#order.totalWeight += weight;
    this.#entryCount += 1;
    return flow;
  }

  #addMember(key: number, weight: number, activeSince: Millis, groupKey: string, memberWeight: number) {
    this.#groups ??= new Map();
    const known = this.#groups.get(groupKey);
    const group = known ?? new FairQueueGroup<W>(groupKey, this.#startTagOf(groupKey, weight));
    const finishTag = group.virtualTime + 1 / memberWeight;
    const tagOrder = this.#tagCount++;
    const flow = new FairQueueFlow<W>({ key, group, finishTag, tagOrder, weight, memberWeight, activeSince });
    group.onMemberAdded(flow);
    if (known === undefined) {
      group.tagOrder = tagOrder;
      this.#groups.set(groupKey, group);
      this.#entryCount += 1;
    }
    this.#order.add(flow);
    return flow;
  }

  /** Changes the weights of a waiter's flow, from its next turn on. */
  updateWeight({ flow }: W, weight: number, memberWeight = weight): void {
    if (flow !== undefined) this.#changeWeight(flow, weight, memberWeight);
  }

  #changeWeight(flow: FairQueueFlow<W>, weight: number, memberWeight: number): void {
    const { group } = flow;
    if (group === undefined) this.#order.totalWeight += weight - flow.weight;
    else {
      group.memberWeight += memberWeight - flow.memberWeight;
      if (group.isNext(flow)) {
        this.#order.totalWeight += weight - group.weight;
        group.weight = weight;
      }
    }
    flow.weight = weight;
    flow.memberWeight = memberWeight;
  }

  /**
   * Returns the waiter served next. It examines a bounded number of flows: see `ServiceOrder.search`.
   * @param isDeferred waiters for which it holds yield to others; none if absent
   */
  peek(isDeferred?: (waiter: W) => boolean): W | undefined {
    if (isDeferred !== undefined) return this.#order.search(isDeferred)?.head;
    this.#order.resumeAll();
    return this.#order.head;
  }

  /** Removes a waiter that `peek` returned, and advances virtual time. */
  take(waiter: W): void {
    const { flow } = waiter;
    if (flow === undefined) return;
    if (flow.place >= 0) this.#order.resume(flow);
    const { group } = flow;
    this.#virtualTime = Math.max(this.#virtualTime, (group ?? flow).finishTag); // the tag of a deferred flow may lie behind
    if (group !== undefined) group.virtualTime = Math.max(group.virtualTime, flow.finishTag);
    this.#unlink(flow, waiter);
    if (flow.length > 0) {
      flow.finishTag += 1 / (group === undefined ? flow.weight : flow.memberWeight);
      flow.tagOrder = this.#tagCount++;
      this.#order.update(flow);
    }
    if (group !== undefined && group.memberCount > 0) this.#order.beginTurn(group, this.#tagCount++);
  }

  /** Removes and returns the waiter served next. */
  shift(): W | undefined {
    const waiter = this.peek();
    if (waiter !== undefined) this.take(waiter);
    return waiter;
  }

  /** Removes a waiter that will not be served. It costs its client no virtual time. */
  remove(waiter: W): void {
    const { flow } = waiter;
    if (flow === undefined) return;
    const { group } = flow;
    this.#unlink(flow, waiter);
    if (group === undefined) {
      if (flow.length === 0) this.#keepPlace(flow.key, flow.weight, flow.finishTag - 1 / flow.weight);
    } else if (group.memberCount === 0) this.#keepPlace(group.key, group.weight, group.startTag);
    else this.#order.placeGroup(group);
  }

  /** Keeps the place of a refused client of a low weight. Returns how far virtual time is from the end of its turn; else 0. */
  keepRefusedPlace(key: number, weight: number, group?: string): number {
    if (this.#flows.has(key) || this.#groupOf(key, group) !== undefined) return 0;
    const place = group ?? key;
    if (this.#keptPlaces?.get(place) === undefined) this.#keepPlace(place, weight, this.#virtualTime);
    const startTag = this.#keptPlaces?.get(place) ?? Number.NEGATIVE_INFINITY;
    return Math.max(0, startTag + 1 / weight - this.#virtualTime);
  }

  #keepPlace(key: number | string, weight: number, startTag: number): void {
    if (weight * this.#entryCount >= LOW_WEIGHT * this.#order.totalWeight) return;
    this.#keptPlaces ??= new KeptPlaces();
    this.#keptPlaces.set(key, startTag);
  }

  /** Where the turn of a client or group begins that becomes active. */
  #startTagOf(key: number | string, weight: number): number {
    const kept = this.#keptPlaces?.take(key);
    if (kept === undefined) return this.#virtualTime;
    return Math.min(this.#virtualTime, Math.max(kept, this.#virtualTime - 1 / weight));
  }

  #unlink(flow: FairQueueFlow<W>, waiter: W): void {
    flow.remove(waiter);
    waiter.flow = undefined;
    this.#size -= 1;
    if (flow.length > 0) return;
    // The tag of the last request served is never ahead of virtual time, so a client that returns starts no earlier: nothing is lost.
    this.#flows.delete(flow.key);
    this.#order.remove(flow);
    const { group } = flow;
    if (group !== undefined) {
      group.onMemberRemoved(flow);
      if (group.memberCount > 0) return;
      this.#groups?.delete(group.key);
      this.#order.removeGroup(group);
    }
    this.#entryCount -= 1;
    this.#order.totalWeight = this.#size === 0 ? 0 : this.#order.totalWeight - (group ?? flow).weight; // no drift by rounding
  }
}
