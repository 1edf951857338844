import type { ActiveSetMember } from '../collections/active-set.ts';
import type { HeapItem } from '../collections/binary-heap.ts';
import { BinaryHeap } from '../collections/binary-heap.ts';
import { Rotation } from '../collections/rotation.ts';
import type { Millis } from '../scalars.ts';

/** The maximum number of clients that count at one limit. Beyond it, a refused client counts only while it waits. */
const MAX_CLIENTS = 10_000;

interface AwaitedReturn extends HeapItem, ActiveSetMember {
  readonly key: string;
  /** The whole weight, and the part of it that counts here. */
  weight: number;
  share: number;
  until: Millis;
}

/**
 * The clients that one limit has refused and that are to return in a slot: they are demand, although none of their requests
 * waits. Each counts until it returns, or until its slot is over.
 */
export class AwaitedReturns {
  readonly #onFirst: () => void;
  readonly #maxClients: number;
  /** Created on first use: limits of credentials are many. */
  #byKey: Map<string, AwaitedReturn> | undefined = undefined;
  #byEnd: BinaryHeap<AwaitedReturn> | undefined = undefined;
  #rotation: Rotation<AwaitedReturn> | undefined = undefined;
  #shares: ReadonlyMap<string, number> | undefined = undefined;
  #weight = 0;

  /** @param onFirst called when a client counts and none did before */
  constructor(onFirst: () => void, maxClients = MAX_CLIENTS) {
    this.#onFirst = onFirst;
    this.#maxClients = maxClients;
  }

  /**
   * @param key the client, or the address whose clients have the turns of one
   * @param weight all of it, wherever else the client waits or is to return
   * @param until after this time, its return is late. An earlier time than the present one has no effect.
   */
  add(key: string, weight: number, until: Millis, now: Millis): void {
    this.#dropPast(now);
    this.#byKey ??= new Map();
    this.#byEnd ??= new BinaryHeap((a, b) => a.until < b.until);
    this.#rotation ??= new Rotation();
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      this.#changeWeight(known, weight, known.share);
      known.until = Math.max(known.until, until);
      this.#byEnd.update(known);
      return;
    }
    if (this.#byKey.size >= this.#maxClients) return;
    const added = { key, weight, share: this.#shares?.get(key) ?? 1, until, heapIndex: -1, place: -1 };
    this.#byKey.set(key, added);
    this.#byEnd.push(added);
    this.#rotation.add(added);
    this.#weight += weight * added.share;
    if (this.#byKey.size === 1) this.#onFirst();
  }

  /** The client has returned. */
  remove(key: string): void {
    const known = this.#byKey?.get(key);
    if (known !== undefined) this.#drop(known);
  }

  /** The total weight of the clients that are to return. */
  totalWeight(now: Millis): number {
    this.#dropPast(now);
    return this.#weight;
  }

  isEmpty(now: Millis): boolean {
    this.#dropPast(now);
    return this.#byKey === undefined || this.#byKey.size === 0;
  }

  /** Some of the clients, `max` at most; of more, others each time. */
  sample(max: number, now: Millis): readonly string[] {
    this.#dropPast(now);
    const keys: string[] = [];
    this.#rotation?.visitNext(max, ({ key }) => keys.push(key));
    return keys;
  }

  /**
   * Applies the parts of the weights that count here, in [0, 1], instead of earlier ones: less than 1 for clients that are to
   * return to several processes, 0 for those that wait in another one.
   */
  setShares(shares: ReadonlyMap<string, number>): void {
    const before = this.#shares;
    if (shares.size === 0 && before === undefined) return;
    this.#shares = shares.size === 0 ? undefined : shares;
    for (const key of new Set([...(before ?? shares).keys(), ...shares.keys()])) {
      const known = this.#byKey?.get(key);
      if (known !== undefined) this.#changeWeight(known, known.weight, shares.get(key) ?? 1);
    }
  }

  #changeWeight(known: AwaitedReturn, weight: number, share: number): void {
    this.#weight += weight * share - known.weight * known.share;
    known.weight = weight;
    known.share = share;
  }

  #dropPast(now: Millis): void {
    for (let first = this.#byEnd?.peek(); first !== undefined && first.until < now; first = this.#byEnd?.peek()) {
      this.#drop(first);
    }
  }

  #drop(past: AwaitedReturn): void {
    this.#byKey?.delete(past.key);
    this.#byEnd?.remove(past);
    this.#rotation?.remove(past);
    this.#weight = this.#byEnd?.size === 0 ? 0 : this.#weight - past.weight * past.share; // no drift by rounding
  }
}
