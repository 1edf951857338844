import { RecencyMap } from '../core/collections/recency-map.ts';
import type { ResourceBound, ResourceBoundName } from '../core/overload/resource-bound.ts';
import type { Limit } from '../core/limits/limit.ts';
import { isLimitInUse } from './limit-in-use.ts';

/** The maximum number of limits that are examined for one eviction, however many are in use. */
const EVICTION_SCAN = 32;

/** A bounded set of limits that are made on demand: the least recently used make room for others. */
export class LimitLru {
  /** Least recently used first. */
  readonly #limits = new RecencyMap<string, Limit>();
  readonly #onEvict: (limit: Limit) => void;
  #evictions = 0;
  /** The maximum size; limits in use may exceed it. */
  maxSize: number;

  constructor(maxSize: number, onEvict: (limit: Limit) => void) {
    this.maxSize = maxSize;
    this.#onEvict = onEvict;
  }

  bound(name: ResourceBoundName): ResourceBound {
    return { name, used: this.#limits.size / this.maxSize, reached: this.#evictions };
  }

  get size(): number {
    return this.#limits.size;
  }

  values(): Iterable<Limit> {
    return this.#limits.values();
  }

  /** As `use`, without marking the limit as used. */
  peek(name: string): Limit | undefined {
    return this.#limits.get(name);
  }

  use(name: string): Limit | undefined {
    return this.#limits.use(name);
  }

  add(name: string, limit: Limit): void {
    this.#limits.set(name, limit);
    if (this.#limits.size > this.maxSize) this.#evictOne(limit);
  }

  /** Removes a limit without calling `onEvict`. */
  remove(name: string): void {
    this.#limits.delete(name);
  }

  /** Evicts the limits that fulfil the condition. */
  removeIf(shouldRemove: (limit: Limit) => boolean): void {
    for (const [name, limit] of this.#limits) if (shouldRemove(limit)) this.#evict(name);
  }

  /**
   * Evicts the least recently used limit that is not in use: if possible one that has learned nothing, so that made-up names
   * evict each other. Limits in use, no more than there are requests, are moved to the end. Where all examined limits are in
   * use, the bound is exceeded for a while.
   * @param newest is not evicted: it is about to learn from the outcome that it was made for
   */
  #evictOne(newest: Limit): void {
    let oldest: string | undefined;
    let scanned = 0;
    for (const [name, limit] of this.#limits) {
      if (this.#limits.size <= this.maxSize || scanned === EVICTION_SCAN) break;
      scanned += 1;
      if (limit === newest) continue;
      if (isLimitInUse(limit)) {
        this.#limits.use(name);
      } else if (limit.hasLearned) oldest ??= name;
      else this.#evict(name);
    }
    if (oldest !== undefined && this.#limits.size > this.maxSize) this.#evict(oldest);
  }

  #evict(name: string): void {
    const limit = this.#limits.get(name);
    this.#limits.delete(name);
    this.#evictions += 1;
    if (limit !== undefined) this.#onEvict(limit);
  }
}
