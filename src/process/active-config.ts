/** What one configuration comes to in the proxy, and how the next takes its place while requests go on. */
import type { TargetParts } from '../config/compile/compile-snapshot.ts';
import { compileSnapshot, compileTargets } from '../config/compile/compile-snapshot.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { ownUrls } from './practice-upstream.ts';
import type { Bound } from '../core/overload/resource-bound.ts';
import type { EndpointView } from '../core/events/proxy-events.ts';
import type { Millis } from '../core/exchange/attempt-outcome.ts';
import type { ClientHash } from '../http/request/client-hash.ts';
import type { Endpoints } from '../http/upstream/endpoints.ts';
import type { Snapshot, Target } from '../http/request/snapshot-types.ts';

export interface RuntimeParts extends TargetParts {
  readonly clientHash: ClientHash;
  /** Where the practice upstream is, if there is one. */
  readonly practiceUrl: string | undefined;
}

export interface RuntimeWatch {
  /** Whether a request in flight goes there, or may yet. */
  readonly isUsing: (endpoints: Endpoints) => boolean;
  /** This upstream is not configured any more, and nothing is on its way there. */
  readonly onRemoved: (upstream: string) => void;
  /** Called now and then until it returns that nothing of what was configured before is left. */
  readonly sweep: () => boolean;
  /** Nothing of what was configured before is left. */
  readonly onSettled: () => void;
}

/** A configuration that could be built, and is not in effect yet. */
export interface Built {
  readonly config: Config;
  readonly targets: ReadonlyMap<string, Target>;
  readonly snapshot: Snapshot;
}

/** How often it is looked whether what is not configured any more is still in use. */
const LOOK_EVERY: Millis = 100;

/**
 * The configuration in effect, as the proxy knows it. A request keeps the snapshot of its arrival to the end, and the
 * connections that it goes by stay until it has ended.
 */
export class Runtime {
  readonly #parts: RuntimeParts;
  #built: Built;
  /** Connections of configurations before, and whose they are. */
  readonly #leaving = new Map<Endpoints, string>();
  #watch: RuntimeWatch | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @throws an Error of node:fs, when a certificate cannot be read */
  constructor(config: Config, parts: RuntimeParts) {
    this.#parts = parts;
    this.#built = this.#build(config, new Map());
  }

  get config(): Config {
    return this.#built.config;
  }

  get snapshot(): Snapshot {
    return this.#built.snapshot;
  }

  /** To be called before anything is swapped. */
  watch(watch: RuntimeWatch): void {
    this.#watch = watch;
  }

  /** Changes nothing. @throws an Error of node:fs, when a certificate cannot be read */
  build(config: Config): Built {
    return this.#build(config, this.#built.targets);
  }

  /** From the next request on. What is not needed any more ends when those have ended that need it. */
  swap(built: Built): void {
    const { targets } = this.#built;
    this.#built = built;
    this.#parts.clientHash.forget();
    for (const [name, { endpoints }] of targets) {
      if (built.targets.get(name)?.endpoints !== endpoints) this.#leaving.set(endpoints, name);
    }
    this.review();
  }

  /** Looks, before long, whether anything is left of what was configured before. */
  review(): void {
    clearTimeout(this.#timer);
    this.#lookSoon();
  }

  /** Of an upstream, the connections that nobody uses; without bound where everything is sent at once. */
  free(upstream: string): number {
    if (this.config.mode === 'observe') return Number.POSITIVE_INFINITY;
    return this.#built.targets.get(upstream)?.endpoints.free() ?? Number.POSITIVE_INFINITY;
  }

  views(): EndpointView[] {
    return [...this.#built.targets].flatMap(([upstream, { endpoints }]) =>
      endpoints.all.map(({ index, label }) => ({
        upstream,
        endpoint: label,
        isHealthy: !endpoints.isEjected(index),
      })),
    );
  }

  /** Those of connections that have ended are told on: what is counted never falls. */
  *bounds(): Generator<Bound> {
    if (this.#reached > 0) yield { name: 'upstream_connections', used: 0, reached: this.#reached };
    for (const endpoints of this.#all()) yield endpoints.bound;
  }

  #reached = 0;

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all([...this.#all()].map((endpoints) => endpoints.destroy()));
  }

  *#all(): Generator<Endpoints> {
    for (const { endpoints } of this.#built.targets.values()) yield endpoints;
    yield* this.#leaving.keys();
  }

  #build(config: Config, before: ReadonlyMap<string, Target>): Built {
    const { clientHash, practiceUrl, ...parts } = this.#parts;
    const targets = compileTargets(config, ownUrls(config, practiceUrl), parts, before);
    return { config, targets, snapshot: compileSnapshot(config, targets, clientHash) };
  }

  #lookSoon(): void {
    this.#timer = setTimeout(this.#look, LOOK_EVERY).unref();
  }

  readonly #look = (): void => {
    const watch = this.#watch;
    if (watch === undefined) return;
    for (const [endpoints, upstream] of this.#leaving) {
      if (watch.isUsing(endpoints) || !endpoints.isAtRest) continue;
      this.#leaving.delete(endpoints);
      this.#reached += endpoints.bound.reached;
      void endpoints.destroy();
      const isLeft = this.#built.targets.has(upstream) || [...this.#leaving.values()].includes(upstream);
      if (!isLeft) watch.onRemoved(upstream);
    }
    const isSwept = watch.sweep();
    if (isSwept && this.#leaving.size === 0) watch.onSettled();
    else this.#lookSoon();
  };
}
