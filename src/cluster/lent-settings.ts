import { compileUpstreams } from '../compile-policy.ts';
import type { Config } from '../config/schema.ts';
import type { Scope } from '../policy/events.ts';
import type { LimitRef } from '../policy/limit-ref.ts';
import { LocalMeter } from '../policy/meter.ts';
import type { Random } from '../policy/types.ts';
import type { LiveRate } from '../state/kept-upstream.ts';

interface Lent {
  scope: Scope;
  readonly rate: LiveRate;
}

/** What is configured of the limits that a primary keeps. Its meters read it anew each time. */
export class LentSettings {
  readonly #upstreams = new Map<string, Lent>();
  readonly #isKeeper: boolean;
  #configured: ReadonlySet<string> = new Set();

  /** @param isKeeper false where a store keeps them, and nothing is lent */
  constructor(config: Config, isKeeper: boolean) {
    this.#isKeeper = isKeeper;
    this.change(config);
  }

  /** An upstream that is not configured any more goes on until it is forgotten. */
  change(config: Config): void {
    const upstreams = compileUpstreams(config);
    this.#configured = new Set(upstreams.map(({ name }) => name));
    for (const { name, scope, rate } of upstreams) {
      const known = this.#upstreams.get(name);
      if (known === undefined) this.#upstreams.set(name, { scope, rate: { ...rate } });
      else {
        known.scope = scope;
        Object.assign(known.rate, rate);
      }
    }
  }

  forgetOthers(): void {
    for (const name of this.#upstreams.keys()) if (!this.#configured.has(name)) this.#upstreams.delete(name);
  }

  /** Limits that are there whether or not they have been felt. */
  shared(): LimitRef[] {
    if (!this.#isKeeper) return [];
    return [...this.#upstreams].flatMap(([upstream, { scope }]) =>
      scope === 'upstream' ? [{ upstream, scope, key: '' }] : [],
    );
  }

  scopeOf(upstream: string): Scope | undefined {
    return this.#upstreams.get(upstream)?.scope;
  }

  /** Whether requests stand under it by what is configured. */
  readonly isKept = ({ upstream, scope }: LimitRef): boolean => this.#upstreams.get(upstream)?.scope === scope;

  /** Undefined where its upstream has been forgotten. */
  makeMeter({ upstream }: LimitRef, random: Random): LocalMeter | undefined {
    const lent = this.#upstreams.get(upstream);
    return lent === undefined ? undefined : new LocalMeter(lent.rate, random);
  }
}
