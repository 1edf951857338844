import type { Bound } from '../core/overload/resource-bound.ts';
import type { Scope } from '../core/events/proxy-events.ts';
import type { Limit } from '../core/limits/limit.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';
import { isUsed } from './limit-in-use.ts';
import type { LiveRate } from './upstream-state.ts';
import { nameOf } from '../sharing/protocol/limit-terms.ts';
import { LimitShelf } from './limit-lru.ts';

export interface NestedSettings {
  /** As of `LimitRef.nested`: that of a class too. */
  readonly name: string;
  readonly scope: Scope;
  /** There is one for each endpoint or the like, and not one of all. */
  readonly isKeyed: boolean;
  readonly rate: RateSettings;
}

/** Limits of one name, one for each endpoint or the like: an API has fewer, and whoever makes up more pushes out his own. */
const MOST = 1000;

interface Nested {
  readonly scope: Scope;
  readonly isKeyed: boolean;
  readonly rate: LiveRate;
  /** The one of all; undefined where there are several. */
  readonly shared: Limit | undefined;
  /** One for each endpoint. Those of clients and credentials are kept elsewhere, with all the others of theirs. */
  readonly shelf: LimitShelf;
}

export interface NestedParts {
  readonly makeLimit: (ref: LimitRef, rate: RateSettings) => Limit;
  readonly onForget: (limit: Limit) => void;
}

/** The nested limits of one upstream. Their settings may change; what was learned stays while name, scope and keys do. */
export class NestedLimits {
  readonly #upstream: string;
  readonly #parts: NestedParts;
  readonly #nested = new Map<string, Nested>();
  /** Of names that are not configured any more, those that somebody may still stand under; and their settings. */
  #leaving: Limit[] = [];
  readonly #former = new Map<string, LiveRate>();

  constructor(upstream: string, settings: readonly NestedSettings[], parts: NestedParts) {
    this.#upstream = upstream;
    this.#parts = parts;
    this.adjust(settings);
  }

  has(name: string): boolean {
    return this.#nested.has(name);
  }

  /** Undefined where none is called so. */
  scopeOf(name: string): Scope | undefined {
    return this.#nested.get(name)?.scope;
  }

  *scopes(): Iterable<readonly [name: string, scope: Scope]> {
    for (const [name, { scope }] of this.#nested) yield [name, scope];
  }

  rateOf(name: string): RateSettings | undefined {
    return this.#nested.get(name)?.rate;
  }

  /** Whether there is a limit to begin with, and no first rejection is waited for. */
  isKnown(name: string): boolean {
    const rate = this.#nested.get(name)?.rate;
    return rate !== undefined && (rate.initialRate !== undefined || Number.isFinite(rate.maxRate));
  }

  /**
   * Of those that all stand under together, or all who ask for one endpoint: that of an endpoint is made when it is first
   * asked for. Undefined where the name is not configured, or not so.
   */
  find(ref: LimitRef): Limit | undefined {
    const nested = this.#nested.get(ref.nested);
    if (nested === undefined || nested.scope !== 'upstream') return undefined;
    if (!nested.isKeyed) return nested.shared;
    const name = nameOf(ref);
    const known = nested.shelf.use(name);
    if (known !== undefined) return known;
    const limit = this.#make(ref, nested.rate);
    nested.shelf.add(name, limit);
    return limit;
  }

  *limits(): Iterable<Limit> {
    for (const { shared, shelf } of this.#nested.values()) {
      if (shared !== undefined) yield shared;
      yield* shelf.values();
    }
    yield* this.#leaving;
  }

  get bounds(): readonly Bound[] {
    return [...this.#nested.values()].filter(({ isKeyed }) => isKeyed).map(({ shelf }) => shelf.bound('nested_limits'));
  }

  adjust(settings: readonly NestedSettings[]): void {
    const names = new Set(settings.map(({ name }) => name));
    for (const name of this.#nested.keys()) if (!names.has(name)) this.#leave(name);
    for (const each of settings) {
      const known = this.#nested.get(each.name);
      if (known !== undefined && known.scope === each.scope && known.isKeyed === each.isKeyed) {
        Object.assign(known.rate, each.rate);
        continue;
      }
      if (known !== undefined) this.#leave(each.name);
      this.#enter(each);
    }
  }

  /** Lets go of those of former names that nobody stands under. Returns how many are left. */
  sweep(): number {
    const left = this.#leaving.filter(isUsed);
    for (const limit of this.#leaving) if (!left.includes(limit)) this.#parts.onForget(limit);
    this.#leaving = left;
    if (left.length === 0) this.#former.clear();
    return left.length;
  }

  #enter({ name, scope, isKeyed, rate }: NestedSettings): void {
    const live = Object.assign(this.#former.get(name) ?? {}, rate);
    this.#former.delete(name);
    const ref: LimitRef = { upstream: this.#upstream, nested: name, scope, key: '' };
    const shelf = new LimitShelf(MOST, this.#parts.onForget);
    const shared = scope !== 'upstream' || isKeyed ? undefined : this.#make(ref, live);
    this.#nested.set(name, { scope, isKeyed, rate: live, shared, shelf });
  }

  /** One that is about to leave stays: two of one name would be one to whoever lends to both. */
  #make(ref: LimitRef, rate: RateSettings): Limit {
    const name = nameOf(ref);
    const former = this.#leaving.find((limit) => nameOf(limit.ref) === name);
    if (former === undefined) return this.#parts.makeLimit(ref, rate);
    this.#leaving = this.#leaving.filter((limit) => limit !== former);
    return former;
  }

  #leave(name: string): void {
    const nested = this.#nested.get(name);
    this.#nested.delete(name);
    if (nested === undefined) return;
    const { shared, shelf, rate } = nested;
    this.#former.set(name, rate);
    this.#leaving.push(...(shared === undefined ? [] : [shared]), ...shelf.values());
  }
}
