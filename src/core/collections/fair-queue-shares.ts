import type { Millis } from '../scalars.ts';
import type { FairQueueFlow, FairQueueGroup, FairQueueItem } from './fair-queue-flow.ts';
import { ServiceOrder } from './service-order.ts';
import type { TurnStarts } from './turn-starts.ts';

/** The state of a fair queue: which flows are active, and the shares that clients have. */
export abstract class FairQueueShares<W extends FairQueueItem<W>> {
  protected readonly order = new ServiceOrder<W>();
  protected readonly flowByKey = new Map<number, FairQueueFlow<W>>();
  /** Created on first use. */
  protected groups: Map<string, FairQueueGroup<W>> | undefined = undefined;
  /** Created on first use. */
  protected starts: TurnStarts | undefined = undefined;
  /** The tag of the flow served last. Only the queue changes it, as the next one. */
  virtualTime = 0;
  /** The number of waiting requests. */
  size = 0;
  /** How often costs were forgiven: a cost that was counted before that delays nobody. */
  forgivenCount = 0;

  /** The total weight of the active flows; a group counts as one. */
  get activeWeight(): number {
    return this.order.totalWeight;
  }

  /** The active flows: see `ServiceOrder.flows`. */
  get flows(): Iterable<FairQueueFlow<W>> {
    return this.order.flows();
  }

  /** The active flows, in the order in which they became active. They may change while it is iterated. */
  get flowsByArrival(): Iterable<FairQueueFlow<W>> {
    return this.flowByKey.values();
  }

  /** One of the waiters: the one served next, unless flows were set aside as deferred. */
  get front(): W | undefined {
    return this.order.head;
  }

  /** Whether the last `peek` examined all flows that may be served next. */
  get wasSearchComplete(): boolean {
    return this.order.wasSearchComplete;
  }

  /** The number of waiting requests of a client. */
  queuedBy(key: number): number {
    return this.flowByKey.get(key)?.length ?? 0;
  }

  /** How long the client has had waiting requests without a break; 0 if it has none. */
  activeFor(key: number, now: Millis): Millis {
    const flow = this.flowByKey.get(key);
    return flow === undefined ? 0 : now - flow.activeSince;
  }

  /**
   * The share of the rate that a client of this weight has while it waits, in (0, 1]; in a group, that of the group.
   * @param group see `push`
   */
  share(key: number, weight: number, group?: string): number {
    const entry = this.groupOf(key, group) ?? this.flowByKey.get(key);
    const others = this.activeWeight - (entry?.weight ?? 0);
    return weight / (Math.max(0, others) + weight);
  }

  /** The part of the turns of its group that a client has while it waits, in (0, 1]; 1 if it has none. See `push`. */
  partOfGroup(key: number, memberWeight: number, group?: string): number {
    const its = this.groupOf(key, group);
    if (its === undefined) return 1;
    const others = its.memberWeight - (this.flowByKey.get(key)?.memberWeight ?? 0);
    return memberWeight / (Math.max(0, others) + memberWeight);
  }

  protected groupOf(key: number, group: string | undefined): FairQueueGroup<W> | undefined {
    if (group === undefined || this.groups === undefined) return undefined;
    const flow = this.flowByKey.get(key);
    return flow === undefined ? this.groups.get(group) : flow.group;
  }

  /** What earlier requests have cost delays no turn any more: the next turn of each client or group begins at virtual time at the latest. */
  forgiveCosts(): void {
    this.forgivenCount += 1;
    this.starts?.forgive();
    if (this.size === 0) return;
    for (const flow of this.flowByKey.values()) this.order.dropDebt(flow, this.virtualTime);
  }
}
