import { THRESHOLD_FACTOR } from '../../core/admission/queue-occupancy.ts';
import { CounterMap } from '../../core/collections/counter-map.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';

/** The memory of request bodies that are kept for a retry, for all requests together. One address has 8/9 of it at most. */
export class ReplayMemory {
  readonly #limit: number;
  readonly #usedBy = new CounterMap();
  #used = 0;
  #rejections = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  get bound(): ResourceBound {
    return { name: 'replay_memory', used: this.#used / Math.max(1, this.#limit), reached: this.#rejections };
  }

  /** @param owner an address, or a client that is identified by address */
  reserve(bytes: number, owner: string): boolean {
    const left = this.#limit - this.#used - bytes;
    if (left < 0 || this.#usedBy.count(owner) + bytes > THRESHOLD_FACTOR * left) {
      this.#rejections += 1;
      return false;
    }
    this.#used += bytes;
    this.#usedBy.increment(owner, bytes);
    return true;
  }

  release(bytes: number, owner: string): void {
    this.#used -= bytes;
    this.#usedBy.decrement(owner, bytes);
  }
}
