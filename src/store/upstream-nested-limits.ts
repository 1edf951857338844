import { isKeyedRef, limitId } from '../core/limits/limit-ref.ts';
import type { ResourceBound } from '../core/overload/resource-bound.ts';
import type { LimitScope } from '../core/limits/limit-state.ts';
import type { Limit } from '../core/limits/limit.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';
import { isLimitInUse } from './limit-in-use.ts';
import type { LiveRateSettings } from './upstream-state.ts';
import { LimitLru } from './limit-lru.ts';

export interface NestedLimitSettings {
  /** As in `LimitRef.nested`, also of a class of clients. */
  readonly name: string;
  readonly scope: LimitScope;
  /** There is one limit for each endpoint, or another key, instead of one for all. */
  readonly isKeyed: boolean;
  readonly rate: RateSettings;
}

/** The maximum number of keyed limits of one name. APIs have fewer endpoints; made-up ones evict each other. */
const MAX_PER_NAME = 1000;

interface NestedLimitEntry {
  readonly scope: LimitScope;
  readonly isKeyed: boolean;
  readonly rate: LiveRateSettings;
  /** The limit for all requests; undefined if there are several. */
  readonly shared: Limit | undefined;
  /** One limit for each endpoint; those of clients and credentials are in `PerClientLimits`. */
  readonly perEndpoint: LimitLru;
}

export interface UpstreamNestedLimitsParts {
  readonly makeLimit: (ref: LimitRef, rate: RateSettings) => Limit;
  readonly onLimitForgotten: (limit: Limit) => void;
}

/** The nested limits of one upstream. A reload keeps what they have learned while name, scope and keys stay the same. */
export class UpstreamNestedLimits {
  readonly #upstream: string;
  readonly #parts: UpstreamNestedLimitsParts;
  readonly #nested = new Map<string, NestedLimitEntry>();
  /** Limits of removed names that requests may still use, and the settings of those names. */
  #retiring: Limit[] = [];
  readonly #formerRates = new Map<string, LiveRateSettings>();

  constructor(upstream: string, settings: readonly NestedLimitSettings[], parts: UpstreamNestedLimitsParts) {
    this.#upstream = upstream;
    this.#parts = parts;
    this.reconfigure(settings);
  }

  get isEmpty(): boolean {
    return this.#nested.size === 0;
  }

  has(name: string): boolean {
    return this.#nested.has(name);
  }

  /** Undefined if no nested limit has this name. */
  scopeOf(name: string): LimitScope | undefined {
    return this.#nested.get(name)?.scope;
  }

  /** Whether the configuration has a limit of this name and scope, with keys if this one has any. */
  isConfigured(ref: LimitRef): boolean {
    const nested = this.#nested.get(ref.nested);
    return nested !== undefined && nested.scope === ref.scope && (nested.isKeyed || !isKeyedRef(ref));
  }

  /** The one limit of this name for all requests; undefined if there are several. */
  sharedOf(name: string): Limit | undefined {
    return this.#nested.get(name)?.shared;
  }

  *scopesByName(): Iterable<readonly [name: string, scope: LimitScope]> {
    for (const [name, { scope }] of this.#nested) yield [name, scope];
  }

  rateOf(name: string): RateSettings | undefined {
    return this.#nested.get(name)?.rate;
  }

  /** Whether a rate is configured, so that the limit exists before the first rejection. */
  hasKnownLimit(name: string): boolean {
    const rate = this.#nested.get(name)?.rate;
    return rate !== undefined && (rate.initialRate !== undefined || Number.isFinite(rate.maxRate));
  }

  /**
   * Finds a limit of scope `upstream`, and makes that of an endpoint when it is first needed. Undefined if the name is
   * not configured with that scope.
   */
  find(ref: LimitRef): Limit | undefined {
    const nested = this.#nested.get(ref.nested);
    if (nested === undefined || nested.scope !== 'upstream') return undefined;
    if (!nested.isKeyed) return nested.shared;
    const name = limitId(ref);
    const known = nested.perEndpoint.use(name);
    if (known !== undefined) return known;
    const limit = this.#make(ref, nested.rate);
    nested.perEndpoint.add(name, limit);
    return limit;
  }

  *limits(): Iterable<Limit> {
    for (const { shared, perEndpoint } of this.#nested.values()) {
      if (shared !== undefined) yield shared;
      yield* perEndpoint.values();
    }
    yield* this.#retiring;
  }

  get bounds(): readonly ResourceBound[] {
    return [...this.#nested.values()]
      .filter(({ isKeyed }) => isKeyed)
      .map(({ perEndpoint }) => perEndpoint.bound('nested_limits'));
  }

  reconfigure(settings: readonly NestedLimitSettings[]): void {
    const names = new Set(settings.map(({ name }) => name));
    for (const name of this.#nested.keys()) if (!names.has(name)) this.#retire(name);
    for (const each of settings) {
      const known = this.#nested.get(each.name);
      if (known !== undefined && known.scope === each.scope && known.isKeyed === each.isKeyed) {
        Object.assign(known.rate, each.rate);
        continue;
      }
      if (known !== undefined) this.#retire(each.name);
      this.#add(each);
    }
  }

  /** Forgets unused limits of removed names. Returns how many are left. */
  sweep(): number {
    const remaining = this.#retiring.filter(isLimitInUse);
    for (const limit of this.#retiring) if (!remaining.includes(limit)) this.#parts.onLimitForgotten(limit);
    this.#retiring = remaining;
    if (remaining.length === 0) this.#formerRates.clear();
    return remaining.length;
  }

  #add({ name, scope, isKeyed, rate }: NestedLimitSettings): void {
    const live = Object.assign(this.#formerRates.get(name) ?? {}, rate);
    this.#formerRates.delete(name);
    const ref: LimitRef = { upstream: this.#upstream, nested: name, scope, key: '' };
    const perEndpoint = new LimitLru(MAX_PER_NAME, this.#parts.onLimitForgotten);
    const shared = scope !== 'upstream' || isKeyed ? undefined : this.#make(ref, live);
    this.#nested.set(name, { scope, isKeyed, rate: live, shared, perEndpoint });
  }

  /** Reuses a retiring limit of the same name: to the processes that share limits, two would be the same one. */
  #make(ref: LimitRef, rate: RateSettings): Limit {
    const name = limitId(ref);
    const former = this.#retiring.find((limit) => limitId(limit.ref) === name);
    if (former === undefined) return this.#parts.makeLimit(ref, rate);
    this.#retiring = this.#retiring.filter((limit) => limit !== former);
    return former;
  }

  #retire(name: string): void {
    const nested = this.#nested.get(name);
    this.#nested.delete(name);
    if (nested === undefined) return;
    const { shared, perEndpoint, rate } = nested;
    this.#formerRates.set(name, rate);
    this.#retiring.push(...(shared === undefined ? [] : [shared]), ...perEndpoint.values());
  }
}
