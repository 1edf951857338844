import { compileUpstreams } from '../../config/compile/compile-policy.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { LimitScope } from '../../core/limits/limit-state.ts';
import { isKeyedRef, type LimitRef } from '../../core/limits/limit-ref.ts';
import { LocalMeter } from '../../core/limits/local-meter.ts';
import type { Random } from '../../core/scalars.ts';
import type { LiveRateSettings } from '../../store/upstream-state.ts';
import type { NestedLimitSettings } from '../../store/upstream-nested-limits.ts';

interface SharedLimitEntry {
  scope: LimitScope;
  isKeyed: boolean;
  /** False for a nested limit that a reload has removed: requests may still wait at it. */
  isConfigured: boolean;
  readonly rate: LiveRateSettings;
}

interface SharedUpstreamEntry {
  /** The upstream's own limit, and the nested ones by their names. */
  readonly own: SharedLimitEntry;
  readonly nested: Map<string, SharedLimitEntry>;
}

/** The configuration of the limits that a primary keeps. Meters read their settings at each use. */
export class SharedLimitSettings {
  readonly #upstreams = new Map<string, SharedUpstreamEntry>();
  readonly #keepsLimits: boolean;
  #configured: ReadonlySet<string> = new Set();
  /** Whether requests may still use limits of former configurations. */
  #hasFormer = false;

  /** @param keepsLimits false if a shared store keeps the limits */
  constructor(config: Config, keepsLimits: boolean) {
    this.#keepsLimits = keepsLimits;
    this.reconfigure(config);
    this.#hasFormer = false;
  }

  /** Applies a new configuration. Upstreams and limits that it no longer names stay until `dropUnconfigured`. */
  reconfigure(config: Config): void {
    this.#hasFormer = true;
    const upstreams = compileUpstreams(config);
    this.#configured = new Set(upstreams.map(({ name }) => name));
    for (const { name, scope, rate, nested = [] } of upstreams) {
      const before = this.#upstreams.get(name);
      const own = updateEntry(before?.own, { scope, isKeyed: scope !== 'upstream', rate });
      const inner = nested.map((each) => [each.name, updateEntry(before?.nested.get(each.name), each)] as const);
      const all = new Map(inner);
      for (const [removed, entry] of before?.nested ?? []) {
        if (!all.has(removed)) all.set(removed, Object.assign(entry, { isConfigured: false }));
      }
      this.#upstreams.set(name, { own, nested: all });
    }
  }

  /** No request uses a limit of a former configuration any more. */
  dropUnconfigured(): void {
    this.#hasFormer = false;
    for (const [name, { nested }] of this.#upstreams) {
      if (!this.#configured.has(name)) this.#upstreams.delete(name);
      for (const [limit, { isConfigured }] of nested) if (!isConfigured) nested.delete(limit);
    }
  }

  /** Limits that exist from the start: those of scope `upstream`, without keys. */
  sharedRefs(): LimitRef[] {
    if (!this.#keepsLimits) return [];
    return [...this.#upstreams].flatMap(([upstream, { own, nested }]) =>
      [['', own] as const, ...nested].flatMap(([name, { scope, isKeyed, isConfigured }]) =>
        isConfigured && scope === 'upstream' && !isKeyed ? [{ upstream, nested: name, scope, key: '' }] : [],
      ),
    );
  }

  scopeOf(upstream: string): LimitScope | undefined {
    return this.#upstreams.get(upstream)?.own.scope;
  }

  /** As `MemoryStore.nestedLimitScopes`. */
  *nestedLimitScopes(upstream: string): Iterable<readonly [name: string, scope: LimitScope]> {
    for (const [name, { scope, isConfigured }] of this.#upstreams.get(upstream)?.nested ?? []) {
      if (isConfigured) yield [name, scope];
    }
  }

  /** Whether the configuration has a limit of this name and scope, with keys if this one has any. */
  readonly isConfigured = (ref: LimitRef): boolean => {
    const entry = this.#find(ref);
    if (entry?.isConfigured !== true || entry.scope !== ref.scope) return false;
    return ref.nested === '' || entry.isKeyed || !isKeyedRef(ref);
  };

  /** Undefined if the limit is no longer configured and no request uses it any more. */
  makeMeter(ref: LimitRef, random: Random): LocalMeter | undefined {
    const entry = this.#find(ref);
    if (entry === undefined || (!this.#hasFormer && !this.isConfigured(ref))) return undefined;
    return new LocalMeter(entry.rate, random);
  }

  #find({ upstream, nested }: LimitRef): SharedLimitEntry | undefined {
    const found = this.#upstreams.get(upstream);
    return nested === '' ? found?.own : found?.nested.get(nested);
  }
}

/** Changes the settings in place: meters keep a reference to the object that they were made with. */
function updateEntry(
  before: SharedLimitEntry | undefined,
  { scope, isKeyed, rate }: Omit<NestedLimitSettings, 'name'>,
): SharedLimitEntry {
  if (before === undefined) return { scope, isKeyed, isConfigured: true, rate: { ...rate } };
  Object.assign(before.rate, rate);
  return { scope, isKeyed, isConfigured: true, rate: before.rate };
}
