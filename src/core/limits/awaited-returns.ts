import type { HeapItem } from '../collections/binary-heap.ts';
import { BinaryHeap } from '../collections/binary-heap.ts';
import type { Millis } from '../scalars.ts';

/** The maximum number of clients that count at one limit. Beyond it, a refused client counts only while it waits. */
const MAX_CLIENTS = 10_000;

interface AwaitedReturn extends HeapItem {
  readonly key: string;
  weight: number;
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
  #weight = 0;

  /** @param onFirst called when a client counts and none did before */
  constructor(onFirst: () => void, maxClients = MAX_CLIENTS) {
    this.#onFirst = onFirst;
    this.#maxClients = maxClients;
  }

  /**
   * @param key the client, or the address whose clients have the turns of one
   * @param until after this time, its return is late. An earlier time than the present one has no effect.
   */
  add(key: string, weight: number, until: Millis, now: Millis): void {
    this.#dropPast(now);
    this.#byKey ??= new Map();
    this.#byEnd ??= new BinaryHeap((a, b) => a.until < b.until);
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      this.#weight += weight - known.weight;
      known.weight = weight;
      known.until = Math.max(known.until, until);
      this.#byEnd.update(known);
      return;
    }
    if (this.#byKey.size >= this.#maxClients) return;
    const added: AwaitedReturn = { key, weight, until, heapIndex: -1 };
    this.#byKey.set(key, added);
    this.#byEnd.push(added);
    this.#weight += weight;
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

  #dropPast(now: Millis): void {
    for (let first = this.#byEnd?.peek(); first !== undefined && first.until < now; first = this.#byEnd?.peek()) {
      this.#drop(first);
    }
  }

  #drop(past: AwaitedReturn): void {
    this.#byKey?.delete(past.key);
    this.#byEnd?.remove(past);
    this.#weight = this.#byEnd?.size === 0 ? 0 : this.#weight - past.weight; // no drift by rounding
  }
}
