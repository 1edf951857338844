import type { Bound } from '../core/overload/resource-bound.ts';
import type { Limit } from '../core/limits/limit.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import { nameOf } from '../sharing/protocol/limit-terms.ts';
import { LimitShelf } from './limit-lru.ts';

/** Of one name, for one client or credential: endpoints and the like that it has asked for. */
const MOST_OF_ONE = 50;

/** Limits of single clients and credentials. Whoever makes up paths pushes out its own, and no one else's. */
export class OwnLimits {
  readonly #all: LimitShelf;
  /** Of those that are told apart by more than whose they are. */
  readonly #keyed = new Map<string, LimitShelf>();
  readonly #onForget: (limit: Limit) => void;
  #pushedOut = 0;

  constructor(most: number, onForget: (limit: Limit) => void) {
    this.#onForget = onForget;
    this.#all = new LimitShelf(most, (limit) => {
      this.#leave(limit);
      onForget(limit);
    });
  }

  set most(most: number) {
    this.#all.most = most;
  }

  get bound(): Bound {
    const { name, used, reached } = this.#all.bound('client_limits');
    return { name, used, reached: reached + this.#pushedOut };
  }

  values(): Iterable<Limit> {
    return this.#all.values();
  }

  /** As `use`, and it is no more recently used than before. */
  peek(ref: LimitRef): Limit | undefined {
    return this.#all.peek(nameOf(ref));
  }

  use(ref: LimitRef): Limit | undefined {
    const owner = ownerOf(ref);
    const name = nameOf(ref);
    if (owner !== undefined) this.#keyed.get(owner)?.use(name);
    return this.#all.use(name);
  }

  add(limit: Limit): void {
    const name = nameOf(limit.ref);
    this.#all.add(name, limit);
    const owner = ownerOf(limit.ref);
    if (owner === undefined) return;
    const known = this.#keyed.get(owner) ?? new LimitShelf(MOST_OF_ONE, (pushed) => this.#pushOut(pushed));
    this.#keyed.set(owner, known);
    known.add(name, limit);
  }

  /** Forgets those of which this holds. */
  drop(isDropped: (limit: Limit) => boolean): void {
    this.#all.drop(isDropped);
  }

  #pushOut(limit: Limit): void {
    this.#pushedOut += 1;
    this.#all.remove(nameOf(limit.ref));
    this.#onForget(limit);
  }

  #leave({ ref }: Limit): void {
    const owner = ownerOf(ref);
    const shelf = owner === undefined ? undefined : this.#keyed.get(owner);
    if (owner === undefined || shelf === undefined) return;
    shelf.remove(nameOf(ref));
    if (shelf.size === 0) this.#keyed.delete(owner);
  }
}

/** Whose it is, at which upstream and under which name; undefined where there is but one of that name. */
function ownerOf(ref: LimitRef): string | undefined {
  const end = ref.key.indexOf(' ');
  return end < 0 ? undefined : nameOf({ ...ref, key: ref.key.slice(0, end) });
}
