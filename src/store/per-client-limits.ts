import { limitId } from '../core/limits/limit-ref.ts';
import type { ResourceBound } from '../core/overload/resource-bound.ts';
import type { Limit } from '../core/limits/limit.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import { LimitLru } from './limit-lru.ts';

/** The maximum number of limits of one name for one client or credential, such as one for each endpoint. */
const MAX_PER_OWNER = 50;

/** Limits of single clients and credentials. A client that invents paths evicts only its own limits. */
export class PerClientLimits {
  readonly #all: LimitLru;
  /** Limits with further keys, such as the endpoint, by client or credential. */
  readonly #byOwner = new Map<string, LimitLru>();
  readonly #onEvict: (limit: Limit) => void;
  #ownerEvictions = 0;

  constructor(maxSize: number, onEvict: (limit: Limit) => void) {
    this.#onEvict = onEvict;
    this.#all = new LimitLru(maxSize, (limit) => {
      this.#removeFromOwner(limit);
      onEvict(limit);
    });
  }

  set maxSize(maxSize: number) {
    this.#all.maxSize = maxSize;
  }

  get bound(): ResourceBound {
    const { name, used, reached } = this.#all.bound('client_limits');
    return { name, used, reached: reached + this.#ownerEvictions };
  }

  values(): Iterable<Limit> {
    return this.#all.values();
  }

  /** As `use`, without marking the limit as used. */
  peek(ref: LimitRef): Limit | undefined {
    return this.#all.peek(limitId(ref));
  }

  use(ref: LimitRef): Limit | undefined {
    const owner = ownerKey(ref);
    const name = limitId(ref);
    if (owner !== undefined) this.#byOwner.get(owner)?.use(name);
    return this.#all.use(name);
  }

  add(limit: Limit): void {
    const name = limitId(limit.ref);
    this.#all.add(name, limit);
    const owner = ownerKey(limit.ref);
    if (owner === undefined) return;
    const limits = this.#byOwner.get(owner) ?? new LimitLru(MAX_PER_OWNER, (evicted) => this.#evict(evicted));
    this.#byOwner.set(owner, limits);
    limits.add(name, limit);
  }

  /** Evicts the limits that fulfil the condition. */
  removeIf(shouldRemove: (limit: Limit) => boolean): void {
    this.#all.removeIf(shouldRemove);
  }

  #evict(limit: Limit): void {
    this.#ownerEvictions += 1;
    this.#all.remove(limitId(limit.ref));
    this.#onEvict(limit);
  }

  #removeFromOwner({ ref }: Limit): void {
    const owner = ownerKey(ref);
    const limits = owner === undefined ? undefined : this.#byOwner.get(owner);
    if (owner === undefined || limits === undefined) return;
    limits.remove(limitId(ref));
    if (limits.size === 0) this.#byOwner.delete(owner);
  }
}

/** The upstream, name and owner of a limit with further keys; undefined if an owner has only one of that name. */
function ownerKey(ref: LimitRef): string | undefined {
  const end = ref.key.indexOf(' ');
  return end < 0 ? undefined : limitId({ ...ref, key: ref.key.slice(0, end) });
}
