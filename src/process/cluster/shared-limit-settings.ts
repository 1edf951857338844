import { compileUpstreams } from '../../config/compile/compile-policy.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { LimitScope } from '../../core/limits/limit-state.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { LocalMeter } from '../../core/limits/local-meter.ts';
import type { Random } from '../../core/scalars.ts';
import type { LiveRateSettings } from '../../store/upstream-state.ts';
import type { NestedLimitSettings } from '../../store/upstream-nested-limits.ts';

interface SharedLimitEntry {
  scope: LimitScope;
  isKeyed: boolean;
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

  /** @param keepsLimits false if a shared store keeps the limits */
  constructor(config: Config, keepsLimits: boolean) {
    this.#keepsLimits = keepsLimits;
    this.reconfigure(config);
  }

  /** Applies a new configuration. An upstream that it no longer names stays until `dropUnconfigured`. */
  reconfigure(config: Config): void {
    const upstreams = compileUpstreams(config);
    this.#configured = new Set(upstreams.map(({ name }) => name));
    for (const { name, scope, rate, nested = [] } of upstreams) {
      const before = this.#upstreams.get(name);
      const own = updateEntry(before?.own, { scope, isKeyed: scope !== 'upstream', rate });
      const inner = nested.map((each) => [each.name, updateEntry(before?.nested.get(each.name), each)] as const);
      this.#upstreams.set(name, { own, nested: new Map(inner) });
    }
  }

  dropUnconfigured(): void {
    for (const name of this.#upstreams.keys()) if (!this.#configured.has(name)) this.#upstreams.delete(name);
  }

  /** Limits that exist from the start: those of scope `upstream`, without keys. */
  sharedRefs(): LimitRef[] {
    if (!this.#keepsLimits) return [];
    return [...this.#upstreams].flatMap(([upstream, { own, nested }]) =>
      [['', own] as const, ...nested].flatMap(([name, { scope, isKeyed }]) =>
        scope === 'upstream' && !isKeyed ? [{ upstream, nested: name, scope, key: '' }] : [],
      ),
    );
  }

  scopeOf(upstream: string): LimitScope | undefined {
    return this.#upstreams.get(upstream)?.own.scope;
  }

  /** As `MemoryStore.nestedLimitScopes`. */
  *nestedLimitScopes(upstream: string): Iterable<readonly [name: string, scope: LimitScope]> {
    for (const [name, { scope }] of this.#upstreams.get(upstream)?.nested ?? []) yield [name, scope];
  }

  /** Whether the configuration has a limit of this name and scope. */
  readonly isConfigured = (ref: LimitRef): boolean => this.#find(ref)?.scope === ref.scope;

  /** Undefined if the upstream or the limit's name is no longer configured. */
  makeMeter(ref: LimitRef, random: Random): LocalMeter | undefined {
    const entry = this.#find(ref);
    return entry === undefined ? undefined : new LocalMeter(entry.rate, random);
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
  if (before === undefined) return { scope, isKeyed, rate: { ...rate } };
  Object.assign(before.rate, rate);
  return { scope, isKeyed, rate: before.rate };
}
