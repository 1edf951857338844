import type { Bound, BoundName } from '../core/overload/resource-bound.ts';
import type { Limit } from '../core/limits/limit.ts';
import { isUsed } from './limit-in-use.ts';

/** Limits that are looked at for one to forget: a newcomer costs no more, however many are in use. */
const LOOKS = 32;

/** Limits that are made when they are first met: the least recently used make room for others. */
export class LimitShelf {
  /** Least recently used first. */
  readonly #limits = new Map<string, Limit>();
  readonly #onForget: (limit: Limit) => void;
  #forgotten = 0;
  /** How many there are at most, but for those in use. */
  most: number;

  constructor(most: number, onForget: (limit: Limit) => void) {
    this.most = most;
    this.#onForget = onForget;
  }

  bound(name: BoundName): Bound {
    return { name, used: this.#limits.size / this.most, reached: this.#forgotten };
  }

  get size(): number {
    return this.#limits.size;
  }

  values(): Iterable<Limit> {
    return this.#limits.values();
  }

  /** As `use`, and it is no more recently used than before. */
  peek(name: string): Limit | undefined {
    return this.#limits.get(name);
  }

  use(name: string): Limit | undefined {
    const limit = this.#limits.get(name);
    if (limit === undefined) return undefined;
    this.#limits.delete(name);
    this.#limits.set(name, limit);
    return limit;
  }

  add(name: string, limit: Limit): void {
    this.#limits.set(name, limit);
    if (this.#limits.size > this.most) this.#forgetOne(limit);
  }

  /** Takes it away, and tells nobody. */
  remove(name: string): void {
    this.#limits.delete(name);
  }

  /** Forgets those of which this holds. */
  drop(isDropped: (limit: Limit) => boolean): void {
    for (const [name, limit] of this.#limits) if (isDropped(limit)) this.#forget(name);
  }

  /**
   * The least recently used that nobody uses: one that has learned nothing if there is one near, so that whoever makes up
   * names pushes out what was made up. Those in use are as many as there are requests, and put behind; where a look finds
   * nothing else, there is one too many for a while.
   * @param newest it is about to learn why it was made
   */
  #forgetOne(newest: Limit): void {
    let oldest: string | undefined;
    let looks = 0;
    for (const [name, limit] of this.#limits) {
      if (this.#limits.size <= this.most || looks === LOOKS) break;
      looks += 1;
      if (limit === newest) continue;
      if (isUsed(limit)) {
        this.#limits.delete(name);
        this.#limits.set(name, limit);
      } else if (limit.hasLearned) oldest ??= name;
      else this.#forget(name);
    }
    if (oldest !== undefined && this.#limits.size > this.most) this.#forget(oldest);
  }

  #forget(name: string): void {
    const limit = this.#limits.get(name);
    this.#limits.delete(name);
    this.#forgotten += 1;
    if (limit !== undefined) this.#onForget(limit);
  }
}
