import { THRESHOLD_FACTOR } from '../../core/admission/queue-occupancy.ts';
import { CounterMap } from '../../core/collections/counter-map.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';

/** The memory of bodies that are kept, for all requests together. One address has 8/9 of it at most. */
export class ReplayMemory {
  readonly #limit: number;
  readonly #name: ResourceBound['name'];
  readonly #usedBy = new CounterMap();
  #used = 0;
  #rejections = 0;

  /** @param name `replay_memory`: of request bodies, for a retry; `cost_memory`: of responses, to read their costs */
  constructor(limit: number, name: 'replay_memory' | 'cost_memory' = 'replay_memory') {
    this.#limit = limit;
    this.#name = name;
  }

  get used(): number {
    return this.#used;
  }

  get bound(): ResourceBound {
    return { name: this.#name, used: this.#used / Math.max(1, this.#limit), reached: this.#rejections };
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
