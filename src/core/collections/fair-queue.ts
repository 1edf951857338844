import type { FairQueueEntry, FairQueueItem } from './fair-queue-flow.ts';
import { FairQueueFlow, FairQueueGroup } from './fair-queue-flow.ts';
import { FairQueueShares } from './fair-queue-shares.ts';
import { TurnStarts } from './turn-starts.ts';
import type { Millis } from '../scalars.ts';

/** A weight below this part of the mean is a low one: its turn is rarer than that of others. */
const LOW_WEIGHT = 0.9;

/** A correction of what the turn of a client has cost. */
export interface SettledUnits {
  readonly key: number;
  /** Of the client, and in its group: used if it has no waiting requests now. */
  readonly weight: number;
  readonly memberWeight?: number;
  /** See `push`. */
  readonly group?: string | undefined;
  readonly units: number;
  /** The units by which its next turn may come later in total. */
  readonly largest: number;
}

/**
 * Self-clocked weighted fair queueing (Golestani, "A Self-Clocked Fair Queueing Scheme", INFOCOM 1994): the smallest
 * finish tag is served next, and virtual time is the tag of the flow served last. A client that becomes active starts at
 * virtual time, which its own last tag never exceeds, so it gains nothing by idling, or by leaving and returning. One of a low
 * weight that has left before its turn came, because it could wait no longer, has kept its place when it returns: its turn is due
 * sooner, by one turn at most. Otherwise a client whose turns are rarer than that would have none.
 * Work-conserving: others get what one client does not use. In two levels: clients in a group have the turns of one client.
 *
 * A request that costs more than one unit is served when its turn comes, as others; its cost delays the next turn of its client, as in
 * start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996). So each client gets its share of the units, and none is kept out by its
 * first expensive request.
 */
export class FairQueue<W extends FairQueueItem<W>> extends FairQueueShares<W> {
  #tagCount = 0;
  /** Of groups, and of flows outside groups. */
  #entryCount = 0;

  /**
   * @param weight > 0. A change applies to the whole flow.
   * @param group the address whose clients have the turns of one client; undefined if the client has its own
   * @param memberWeight its weight in the group, which decides only which of the members has a turn of the group
   */
  push(key: number, weight: number, waiter: W, now: Millis, group?: string, memberWeight = weight): void {
    let flow = this.flowByKey.get(key);
    if (flow === undefined) {
      if (group === undefined) flow = this.#addFlow(key, weight, now);
      else flow = this.#addMember(key, weight, now, group, memberWeight);
      this.flowByKey.set(key, flow);
    } else {
      this.#changeWeight(flow, weight, memberWeight);
    }
    waiter.flow = flow;
    flow.push(waiter);
    this.size += 1;
  }

  #addFlow(key: number, weight: number, activeSince: Millis): FairQueueFlow<W> {
    const startTag = this.#startTagOf(key, weight);
    const finishTag = Math.max(this.virtualTime, startTag + 1 / weight); // no less by rounding
    const tagOrder = this.#tagCount++;
    const flow = new FairQueueFlow<W>({ key, group: undefined, startTag, finishTag, tagOrder, weight, activeSince });
    this.order.add(flow);
    this.order.totalWeight += weight;
    this.#entryCount += 1;
    return flow;
  }

  #addMember(key: number, weight: number, activeSince: Millis, groupKey: string, memberWeight: number) {
    this.groups ??= new Map();
    const known = this.groups.get(groupKey);
    const group = known ?? new FairQueueGroup<W>(groupKey, this.#startTagOf(groupKey, weight));
    const startTag = group.starts?.take(key, memberWeight, group.virtualTime) ?? group.virtualTime;
    const finishTag = startTag + 1 / memberWeight;
    const tagOrder = this.#tagCount++;
    const flow = new FairQueueFlow<W>({ key, group, startTag, finishTag, tagOrder, weight, memberWeight, activeSince });
    group.onMemberAdded(flow);
    if (known === undefined) {
      group.tagOrder = tagOrder;
      this.groups.set(groupKey, group);
      this.#entryCount += 1;
    }
    this.order.add(flow);
    return flow;
  }

  /** Changes the weights of a waiter's flow, from its next turn on. */
  updateWeight({ flow }: W, weight: number, memberWeight = weight): void {
    if (flow !== undefined) this.#changeWeight(flow, weight, memberWeight);
  }

  #changeWeight(flow: FairQueueFlow<W>, weight: number, memberWeight: number): void {
    const { group } = flow;
    if (group === undefined) this.order.totalWeight += weight - flow.weight;
    else {
      group.memberWeight += memberWeight - flow.memberWeight;
      if (group.isNext(flow)) {
        this.order.totalWeight += weight - group.weight;
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
    if (isDeferred !== undefined) return this.order.search(isDeferred)?.head;
    this.order.resumeAll();
    return this.order.head;
  }

  /** Removes a waiter that `peek` returned, and advances virtual time. @param cost in units, ≥ 0 */
  take(waiter: W, cost = 1): void {
    const { flow } = waiter;
    if (flow === undefined) return;
    if (flow.place >= 0) this.order.resume(flow);
    const { group } = flow;
    const entry = group ?? flow;
    const { finishTag } = entry;
    const weight = group === undefined ? flow.weight : flow.memberWeight;
    this.virtualTime = Math.max(this.virtualTime, finishTag); // the tag of a deferred flow may lie behind
    if (group !== undefined) group.virtualTime = Math.max(group.virtualTime, flow.finishTag);
    this.#unlink(flow, waiter);
    if (flow.length > 0) {
      flow.startTag = flow.finishTag + (cost - 1) / weight;
      flow.finishTag = flow.startTag + 1 / weight;
      flow.tagOrder = this.#tagCount++;
      this.order.update(flow);
    } else if (cost !== 1 && group !== undefined) {
      (group.starts ??= new TurnStarts()).charge(flow.key, flow.finishTag + (cost - 1) / weight);
    }
    if (group !== undefined && group.memberCount > 0) this.order.beginTurn(group, this.#tagCount++, cost);
    else if (cost !== 1 && entry.head === undefined) {
      (this.starts ??= new TurnStarts()).charge(entry.key, finishTag + (cost - 1) / entry.weight);
    }
  }

  /**
   * A request that was served has cost more units than `take` was given, or fewer: the next turn of its client, and of its group, comes
   * later, or sooner.
   */
  settle({ key, weight, group: groupKey, memberWeight = weight, units, largest }: SettledUnits): void {
    const flow = this.flowByKey.get(key);
    const group = this.groupOf(key, groupKey);
    const entry = group ?? flow;
    if (entry !== undefined) this.order.postpone(entry, units, largest, this.virtualTime);
    else (this.starts ??= new TurnStarts()).settle(groupKey ?? key, units / weight, largest / weight, this.virtualTime);
    if (group === undefined) return;
    if (flow !== undefined) this.order.postponeMember(group, flow, units, largest);
    else {
      const starts = (group.starts ??= new TurnStarts());
      starts.settle(key, units / memberWeight, largest / memberWeight, group.virtualTime);
    }
  }

  /** Removes and returns the waiter served next. */
  shift(): W | undefined {
    const waiter = this.peek();
    if (waiter !== undefined) this.take(waiter);
    return waiter;
  }

  /** Removes a waiter that will not be served. It costs its client no virtual time, and earlier costs delay its next turn as before. */
  remove(waiter: W): void {
    const { flow } = waiter;
    if (flow === undefined) return;
    const { group } = flow;
    this.#unlink(flow, waiter);
    if (group === undefined) {
      if (flow.length === 0) this.#keepStart(flow, flow.finishTag - 1 / flow.weight);
    } else if (group.memberCount === 0) this.#keepStart(group, group.startTag);
    else {
      if (flow.length === 0 && flow.startTag > group.virtualTime) {
        (group.starts ??= new TurnStarts()).charge(flow.key, flow.startTag);
      }
      this.order.placeGroup(group);
    }
  }

  /** The turn of a client or group that leaves was to begin later than now because of its earlier costs, or it keeps its place. */
  #keepStart({ key, weight, startTag }: FairQueueEntry<W>, place: number): void {
    if (startTag > this.virtualTime) (this.starts ??= new TurnStarts()).charge(key, startTag);
    else this.#keepPlace(key, weight, place);
  }

  /** Keeps the place of a refused client of a low weight. Returns how far virtual time is from the end of its turn; else 0. */
  keepRefusedPlace(key: number, weight: number, group?: string): number {
    if (this.flowByKey.has(key) || this.groupOf(key, group) !== undefined) return 0;
    const place = group ?? key;
    if (this.starts?.isKept(place) !== true) this.#keepPlace(place, weight, this.virtualTime);
    const startTag = this.starts?.find(place) ?? Number.NEGATIVE_INFINITY;
    return Math.max(0, startTag + 1 / weight - this.virtualTime);
  }

  #keepPlace(key: number | string, weight: number, startTag: number): void {
    if (weight * this.#entryCount >= LOW_WEIGHT * this.order.totalWeight) return;
    (this.starts ??= new TurnStarts()).keep(key, startTag);
  }

  /** Where the turn of a client or group begins that becomes active. */
  #startTagOf(key: number | string, weight: number): number {
    return this.starts?.take(key, weight, this.virtualTime) ?? this.virtualTime;
  }

  #unlink(flow: FairQueueFlow<W>, waiter: W): void {
    flow.remove(waiter);
    waiter.flow = undefined;
    this.size -= 1;
    if (flow.length > 0) return;
    // The tag of the last request served is never ahead of virtual time, so a client that returns starts no earlier: nothing is lost.
    this.flowByKey.delete(flow.key);
    this.order.remove(flow);
    const { group } = flow;
    if (group !== undefined) {
      group.onMemberRemoved(flow);
      if (group.memberCount > 0) return;
      this.groups?.delete(group.key);
      this.order.removeGroup(group);
    }
    this.#entryCount -= 1;
    this.order.totalWeight = this.size === 0 ? 0 : this.order.totalWeight - (group ?? flow).weight; // no drift by rounding
  }
}
