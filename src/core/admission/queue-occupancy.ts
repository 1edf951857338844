import { CounterMap } from '../collections/counter-map.ts';

/** One address holds at most this many times the free capacity. */
export const THRESHOLD_FACTOR = 8;

/** A request that takes a place in the queue. */
export interface QueueOccupant {
  /** An address, or a client that is identified by address. */
  readonly fairnessKey: string;
  readonly client: string;
}

/**
 * The waiting requests of a queue (of an upstream, for example), by address and client. One address can take at most 8/9 of the
 * capacity (dynamic thresholds, Choudhury and Hahne 1998).
 */
export class QueueOccupancy {
  #size = 0;
  readonly #byFairnessKey = new CounterMap();
  readonly #byClient = new CounterMap();
  /** Number of waiting clients, by address. */
  readonly #clients = new CounterMap();

  /** The number of queued requests. */
  get size(): number {
    return this.#size;
  }

  /** Whether no further request of this address may be queued. @param capacity the maximum number of queued requests */
  isFull(fairnessKey: string, capacity: number): boolean {
    const left = capacity - this.#size;
    return left <= 0 || this.#byFairnessKey.count(fairnessKey) >= THRESHOLD_FACTOR * left;
  }

  /** The number of waiting clients of an address. */
  clientCount(fairnessKey: string): number {
    return this.#clients.count(fairnessKey);
  }

  add({ fairnessKey, client }: QueueOccupant): void {
    this.#size += 1;
    this.#byFairnessKey.increment(fairnessKey);
    if (this.#byClient.count(client) === 0) this.#clients.increment(fairnessKey);
    this.#byClient.increment(client);
  }

  remove({ fairnessKey, client }: QueueOccupant): void {
    this.#size -= 1;
    this.#byFairnessKey.decrement(fairnessKey);
    this.#byClient.decrement(client);
    if (this.#byClient.count(client) === 0) this.#clients.decrement(fairnessKey);
  }
}
