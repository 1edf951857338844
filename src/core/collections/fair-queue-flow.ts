import type { Millis } from '../scalars.ts';
import type { HeapItem } from './binary-heap.ts';
import { BinaryHeap } from './binary-heap.ts';
import type { LinkedItem } from './linked-queue.ts';
import { LinkedQueue } from './linked-queue.ts';
import type { TurnStarts } from './turn-starts.ts';
import type { ActiveSetMember } from './active-set.ts';

/** An item of a fair queue. Only the queue writes `flow` and the links. */
export interface FairQueueItem<W extends LinkedItem<W>> extends LinkedItem<W> {
  flow: FairQueueFlow<W> | undefined;
}

/** The order of service: what got its tag first is served first of equal ones. */
interface Tagged extends HeapItem {
  /** The virtual time at which its head will have been served. */
  finishTag: number;
  tagOrder: number;
}

type FlowFields = 'key' | 'group' | 'startTag' | 'finishTag' | 'tagOrder' | 'weight' | 'activeSince';

/** The requests of one client in one queue, in order of arrival. */
export class FairQueueFlow<W extends LinkedItem<W>> extends LinkedQueue<W> implements Tagged, ActiveSetMember {
  readonly key: number;
  /** Of the address that it shares a turn with; undefined if it has turns of its own. */
  readonly group: FairQueueGroup<W> | undefined;
  /** The virtual time at which the turn of its head begins: of its group if it has one. */
  startTag: number;
  finishTag: number;
  tagOrder: number;
  /** Of its turns, or of those of its group that are its own. */
  weight: number;
  /** Among the members of its group; not used outside of groups. */
  memberWeight: number;
  /** Since when the flow has not been empty. */
  readonly activeSince: Millis;
  /** It is in a heap or, while it is deferred, in a rotation. */
  heapIndex = -1;
  place = -1;

  constructor({
    key,
    group,
    startTag,
    finishTag,
    tagOrder,
    weight,
    memberWeight = weight,
    activeSince,
  }: Pick<FairQueueFlow<W>, FlowFields> & { readonly memberWeight?: number }) {
    super();
    this.key = key;
    this.group = group;
    this.startTag = startTag;
    this.finishTag = finishTag;
    this.tagOrder = tagOrder;
    this.weight = weight;
    this.memberWeight = memberWeight;
    this.activeSince = activeSince;
  }

  /** Its turn begins at this virtual time at the latest. */
  dropDebt(virtualTime: number): void {
    const moved = Math.max(0, this.startTag - virtualTime);
    this.startTag -= moved;
    this.finishTag -= moved;
  }
}

/** The clients of one address. They have the turns of one client, and share them among themselves by the same discipline. */
export class FairQueueGroup<W extends LinkedItem<W>> implements Tagged {
  readonly key: string;
  /** The members that are not deferred. */
  readonly members = new BinaryHeap<FairQueueFlow<W>>(isBefore);
  /** Among the members. */
  virtualTime = 0;
  /** The number of all members, and their total weight among themselves. */
  memberCount = 0;
  memberWeight = 0;
  /** The virtual time at which its turn begins. */
  startTag: number;
  finishTag = 0;
  tagOrder = 0;
  /** Of its next turn: that of the member whose turn it is; while all are deferred, of the one that was next before. */
  weight = 0;
  #next: FairQueueFlow<W> | undefined = undefined;
  /** Of members that have left it while it has others. Created on first use. */
  starts: TurnStarts | undefined = undefined;
  /** −1 while all members are deferred. */
  heapIndex = -1;

  constructor(key: string, startTag: number) {
    this.key = key;
    this.startTag = startTag;
  }

  get head(): W | undefined {
    return this.members.peek()?.head;
  }

  onMemberAdded({ memberWeight }: FairQueueFlow<W>): void {
    this.memberCount += 1;
    this.memberWeight += memberWeight;
  }

  onMemberRemoved({ memberWeight }: FairQueueFlow<W>): void {
    this.memberCount -= 1;
    this.memberWeight -= memberWeight;
  }

  /** Its turn begins at this virtual time at the latest, and those of members that have left it at its own. */
  dropDebt(virtualTime: number): void {
    this.starts?.forgive();
    const moved = Math.max(0, this.startTag - virtualTime);
    this.startTag -= moved;
    this.finishTag -= moved;
  }

  isNext(member: FairQueueFlow<W>): boolean {
    return member === this.#next;
  }

  /** The turn is that of the first member. Returns whether it was that of another one. */
  followFirst(): boolean {
    const first = this.members.peek();
    if (first === undefined || first === this.#next) return false;
    this.#next = first;
    this.weight = first.weight;
    this.finishTag = this.startTag + 1 / first.weight;
    return true;
  }

  /** The turn is over; the next one begins. @param cost in units: what it exceeds one by delays the next turn */
  beginTurn(tagOrder: number, cost: number): void {
    this.startTag = this.finishTag + (cost - 1) / this.weight;
    this.tagOrder = tagOrder;
    this.#next = undefined;
    if (!this.followFirst()) this.finishTag = this.startTag + 1 / this.weight;
  }
}

/** What has turns of its own. */
export type FairQueueEntry<W extends LinkedItem<W>> = FairQueueFlow<W> | FairQueueGroup<W>;

export function isBefore(a: Tagged, b: Tagged): boolean {
  return a.finishTag === b.finishTag ? a.tagOrder < b.tagOrder : a.finishTag < b.finishTag;
}

/** Of flows that may be of different groups. */
export function isServedBefore<W extends LinkedItem<W>>(a: FairQueueFlow<W>, b: FairQueueFlow<W>): boolean {
  return a.group === b.group && a.group !== undefined ? isBefore(a, b) : isBefore(a.group ?? a, b.group ?? b);
}
