/** The compiled configuration in effect, and how a new one replaces it while requests are in flight. */
import type { TargetDependencies } from '../config/compile/compile-snapshot.ts';
import { compileSnapshot, compileTargets } from '../config/compile/compile-snapshot.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { modeOfUpstream } from '../config/values/enforcement-mode.ts';
import { practiceUrls } from './practice-upstream.ts';
import type { ConnectionCounts } from '../core/admission/connection-slots.ts';
import type { ResourceBound } from '../core/overload/resource-bound.ts';
import type { EndpointView } from '../core/events/gate-views.ts';
import type { Millis } from '../core/scalars.ts';
import { ClientAuthentication } from '../http/auth/client-authentication.ts';
import type { ClientHasher } from '../http/request/client-hash.ts';
import type { Endpoints } from '../http/upstream/endpoints.ts';
import type { Snapshot } from '../http/request/snapshot-types.ts';
import type { UpstreamTarget } from '../http/request/route.ts';

export interface ActiveConfigParts extends TargetDependencies {
  readonly clientHash: ClientHasher;
  /** The URL of the practice upstream, if there is one. */
  readonly practiceUrl: string | undefined;
}

export interface ActiveConfigHooks {
  /** Whether a request in flight uses these endpoints, or may still use them. */
  readonly isUsing: (endpoints: Endpoints) => boolean;
  /** Called when an upstream is no longer configured and no request uses it. */
  readonly onRemoved: (upstream: string) => void;
  /** Called repeatedly until it returns true: nothing of the previous configuration is left. */
  readonly sweep: () => boolean;
  /** Called when nothing of the previous configuration is left. */
  readonly onSettled: () => void;
}

/** A compiled configuration that is not in effect yet. */
export interface BuiltConfig {
  readonly config: Config;
  readonly targets: ReadonlyMap<string, UpstreamTarget>;
  readonly snapshot: Snapshot;
}

/** The interval of checks whether retired endpoints are still in use. */
const SWEEP_INTERVAL: Millis = 100;

/**
 * The compiled configuration in effect. A request keeps the snapshot of its arrival until it ends, and its connections stay
 * open until then.
 */
export class ActiveConfig {
  readonly #parts: ActiveConfigParts;
  #built: BuiltConfig;
  /** Endpoints of previous configurations, with the names of their upstreams. */
  readonly #retiring = new Map<Endpoints, string>();
  #hooks: ActiveConfigHooks | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @throws an Error of node:fs, when a certificate cannot be read */
  constructor(config: Config, parts: ActiveConfigParts) {
    this.#parts = parts;
    this.#built = this.#build(config, new Map(), undefined);
  }

  get config(): Config {
    return this.#built.config;
  }

  get snapshot(): Snapshot {
    return this.#built.snapshot;
  }

  /** Call it once, before the first `activate`. Health checks start with it. */
  setHooks(hooks: ActiveConfigHooks): void {
    this.#hooks = hooks;
    this.#startChecks();
  }

  /** Compiles a configuration without activating it. @throws an Error of node:fs, when a certificate cannot be read */
  build(config: Config): BuiltConfig {
    return this.#build(config, this.#built.targets, this.#built.snapshot.authentication);
  }

  /** Takes effect with the next request. Endpoints that are no longer configured close when no request uses them. */
  activate(built: BuiltConfig): void {
    const { targets } = this.#built;
    this.#built = built;
    this.#parts.clientHash.dropCaches();
    for (const [name, { endpoints }] of targets) {
      if (built.targets.get(name)?.endpoints === endpoints) continue;
      endpoints.stopChecks();
      this.#retiring.set(endpoints, name);
    }
    this.#startChecks();
    this.scheduleSweep();
  }

  /** Schedules a check whether anything of previous configurations is left. */
  scheduleSweep(): void {
    clearTimeout(this.#timer);
    this.#startSweepTimer();
  }

  /** The connections of an upstream, now and after reloads; unbounded in observe mode, which sends everything at once. */
  connections(upstream: string): ConnectionCounts {
    return {
      totalConnections: () => this.#endpointsInUse(upstream)?.totalConnections() ?? Number.POSITIVE_INFINITY,
      freeConnections: () => this.#endpointsInUse(upstream)?.freeConnections() ?? Number.POSITIVE_INFINITY,
    };
  }

  isObserved(upstream: string): boolean {
    return modeOfUpstream(this.config, upstream) === 'observe';
  }

  #endpointsInUse(upstream: string): Endpoints | undefined {
    return this.isObserved(upstream) ? undefined : this.#built.targets.get(upstream)?.endpoints;
  }

  endpointViews(): EndpointView[] {
    return [...this.#built.targets].flatMap(([upstream, { endpoints }]) =>
      endpoints.all.map(({ index, label }) => ({
        upstream,
        endpoint: label,
        isHealthy: !endpoints.isEjected(index),
        ...endpoints.lastOutcome(index),
      })),
    );
  }

  /** Includes the counts of closed endpoints, because a counter never decreases. */
  *bounds(): Generator<ResourceBound> {
    if (this.#retiredBoundHits > 0) yield { name: 'upstream_connections', used: 0, reached: this.#retiredBoundHits };
    for (const endpoints of this.#allEndpoints()) yield endpoints.bound;
    yield* this.snapshot.authentication?.bounds ?? [];
  }

  #retiredBoundHits = 0;

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all([...this.#allEndpoints()].map((endpoints) => endpoints.destroy()));
  }

  #startChecks(): void {
    for (const { endpoints } of this.#built.targets.values()) endpoints.startChecks();
  }

  *#allEndpoints(): Generator<Endpoints> {
    for (const { endpoints } of this.#built.targets.values()) yield endpoints;
    yield* this.#retiring.keys();
  }

  /** @param authentication the current one, which has files and fetched keys */
  #build(
    config: Config,
    before: ReadonlyMap<string, UpstreamTarget>,
    authentication: ClientAuthentication | undefined,
  ): BuiltConfig {
    const { clientHash, practiceUrl, ...parts } = this.#parts;
    const targets = compileTargets(config, practiceUrls(config, practiceUrl), parts, before);
    const snapshot = compileSnapshot(config, targets, clientHash, this.#authenticationFor(config, authentication));
    return { config, targets, snapshot };
  }

  #authenticationFor(
    { clients: { auth } }: Config,
    current: ClientAuthentication | undefined,
  ): ClientAuthentication | undefined {
    if (auth === undefined || current?.isSameAs(auth) === true) return auth && current;
    const { clock, listen } = this.#parts;
    return new ClientAuthentication(auth, { clock, listen, wallClock: () => Date.now() });
  }

  #startSweepTimer(): void {
    this.#timer = setTimeout(this.#sweep, SWEEP_INTERVAL).unref();
  }

  readonly #sweep = (): void => {
    const hooks = this.#hooks;
    if (hooks === undefined) return;
    for (const [endpoints, upstream] of this.#retiring) {
      if (hooks.isUsing(endpoints) || !endpoints.isIdle) continue;
      this.#retiring.delete(endpoints);
      this.#retiredBoundHits += endpoints.bound.reached;
      void endpoints.destroy();
      const isLeft = this.#built.targets.has(upstream) || [...this.#retiring.values()].includes(upstream);
      if (!isLeft) hooks.onRemoved(upstream);
    }
    const isSwept = hooks.sweep();
    if (isSwept && this.#retiring.size === 0) hooks.onSettled();
    else this.#startSweepTimer();
  };
}
