import type { ActiveSetMember } from '../collections/active-set.ts';
import { Rotation } from '../collections/rotation.ts';
import type { Millis } from '../scalars.ts';
import type { AwaitedReturns } from './awaited-returns.ts';

/** By group: the part of its weight that counts in this process. A group that is not listed counts with all of it. */
export type WeightShares = ReadonlyMap<string, number>;

/** Of a sample, the maximum part that is for groups of which it is known that they wait in several processes. */
const DIVIDED_PART = 0.75;

/** A client of a group with more than one. */
interface WaitingClient extends ActiveSetMember {
  readonly client: string;
  requests: number;
}

interface WaitingGroup extends ActiveSetMember {
  readonly group: string;
  /** Requests that wait, here or at limits nested in this one. */
  requests: number;
  /** The whole weight, of its last request. */
  weight: number;
  share: number;
}

/**
 * The demand for one limit in this process, by group: a client, or the clients of one address, which have the turns of one. A
 * group counts once, however many of its requests wait, at however many limits nested in this one.
 */
export class LimitDemand {
  /** Refused clients that are to return. Undefined at a limit of one client: it is not divided by clients. */
  readonly returns: AwaitedReturns | undefined;
  /** Created on first use: limits of clients are many. */
  #waiting: Map<string, WaitingGroup> | undefined = undefined;
  #rotation: Rotation<WaitingGroup> | undefined = undefined;
  /** Clients that share the turns of their group. Their weights count within it. */
  #clients: Map<string, WaitingClient> | undefined = undefined;
  #clientRotation: Rotation<WaitingClient> | undefined = undefined;
  #waitingWeight = 0;
  #waitingShares: WeightShares | undefined = undefined;

  constructor(returns?: AwaitedReturns) {
    this.returns = returns;
  }

  /**
   * A request is queued.
   * @param weight of its group, > 0: all of it, wherever else the group waits
   * @param client in the group
   */
  onQueued(group: string, weight: number, client = group): void {
    if (client !== group) this.#addClient(client);
    this.returns?.remove(group);
    this.#waiting ??= new Map();
    this.#rotation ??= new Rotation();
    const known = this.#waiting.get(group);
    if (known !== undefined) {
      known.requests += 1;
      return this.#changeWeight(known, weight, known.share);
    }
    const added = { group, requests: 1, weight, share: this.waitingShare(group), place: -1 };
    this.#waiting.set(group, added);
    this.#rotation.add(added);
    this.#waitingWeight += weight * added.share;
  }

  /** A request no longer waits. @param weight as for `onQueued`; absent if it has not changed */
  onDequeued(group: string, weight?: number, client = group): void {
    if (client !== group) this.#removeClient(client);
    const known = this.#waiting?.get(group);
    if (known === undefined) return;
    known.requests -= 1;
    if (weight !== undefined) this.#changeWeight(known, weight, known.share);
    if (known.requests > 0) return;
    this.#waiting?.delete(group);
    this.#rotation?.remove(known);
    this.#waitingWeight = this.#waiting?.size === 0 ? 0 : this.#waitingWeight - known.weight * known.share; // no drift by rounding
  }

  /** A group has been refused: see `AwaitedReturns.add`. It counts only if none of its requests waits. */
  awaitReturn(group: string, weight: number, until: Millis, now: Millis): void {
    if (this.#waiting?.has(group) !== true) this.returns?.add(group, weight, until, now);
  }

  /** The part of the weight of a group that counts here while it waits; or of a client, within its group; in (0, 1]. */
  waitingShare(key: string): number {
    return this.#waitingShares?.get(key) ?? 1;
  }

  /** Applies the shares of groups and clients that wait in several processes, instead of earlier ones. */
  setWaitingShares(shares: WeightShares): void {
    const before = this.#waitingShares;
    if (shares.size === 0 && before === undefined) return;
    this.#waitingShares = shares.size === 0 ? undefined : shares;
    for (const group of new Set([...(before ?? shares).keys(), ...shares.keys()])) {
      const known = this.#waiting?.get(group);
      if (known !== undefined) this.#changeWeight(known, known.weight, this.waitingShare(group));
    }
  }

  get hasWaiting(): boolean {
    return (this.#waiting?.size ?? 0) > 0;
  }

  /** Whether no group waits or is to return. */
  isEmpty(now: Millis): boolean {
    return !this.hasWaiting && this.returns?.isEmpty(now) !== false;
  }

  /** The total weight of the groups that wait or are to return. */
  totalWeight(now: Millis): number {
    return this.#waitingWeight + (this.returns?.totalWeight(now) ?? 0);
  }

  /**
   * Some of the groups that wait, and of the clients within groups, `max` of each at most: first those of which it is known that
   * they wait elsewhere too, then others in turn. So one that waits in several processes is found, and then stays, however many
   * others wait.
   */
  sampleWaiting(max: number): readonly string[] {
    const groups = this.#sample(max, this.#waiting, this.#rotation, ({ group }) => group);
    return [...groups, ...this.#sample(max, this.#clients, this.#clientRotation, ({ client }) => client)];
  }

  #sample<T extends ActiveSetMember>(
    max: number,
    waiting: ReadonlyMap<string, T> | undefined,
    rotation: Rotation<T> | undefined,
    keyOf: (member: T) => string,
  ): ReadonlySet<string> {
    const sample = new Set<string>();
    if (waiting === undefined || rotation === undefined) return sample;
    for (const key of this.#waitingShares?.keys() ?? []) {
      if (sample.size >= DIVIDED_PART * max) break;
      if (waiting.has(key)) sample.add(key);
    }
    for (let left = Math.min(rotation.size, 2 * max); left > 0 && sample.size < max; left -= 1) {
      rotation.visitNext(1, (member) => sample.add(keyOf(member)));
    }
    return sample;
  }

  #addClient(client: string): void {
    this.#clients ??= new Map();
    this.#clientRotation ??= new Rotation();
    const known = this.#clients.get(client);
    if (known !== undefined) {
      known.requests += 1;
      return;
    }
    const added = { client, requests: 1, place: -1 };
    this.#clients.set(client, added);
    this.#clientRotation.add(added);
  }

  #removeClient(client: string): void {
    const known = this.#clients?.get(client);
    if (known === undefined) return;
    known.requests -= 1;
    if (known.requests > 0) return;
    this.#clients?.delete(client);
    this.#clientRotation?.remove(known);
  }

  #changeWeight(known: WaitingGroup, weight: number, share: number): void {
    this.#waitingWeight += weight * share - known.weight * known.share;
    known.weight = weight;
    known.share = share;
  }
}
