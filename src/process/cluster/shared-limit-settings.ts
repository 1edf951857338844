import { compileUpstreams } from '../../config/compile/compile-policy.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { Scope } from '../../core/events/proxy-events.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { LocalMeter } from '../../core/limits/meter.ts';
import type { Random } from '../../core/exchange/attempt-outcome.ts';
import type { LiveRate } from '../../store/upstream-state.ts';
import type { NestedSettings } from '../../store/upstream-nested-limits.ts';

interface Lent {
  scope: Scope;
  isKeyed: boolean;
  readonly rate: LiveRate;
}

interface LentUpstream {
  /** Its own limit, and the nested ones by their names. */
  readonly own: Lent;
  readonly nested: Map<string, Lent>;
}

/** What is configured of the limits that a primary keeps. Its meters read it anew each time. */
export class LentSettings {
  readonly #upstreams = new Map<string, LentUpstream>();
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
    for (const { name, scope, rate, nested = [] } of upstreams) {
      const before = this.#upstreams.get(name);
      const own = adjust(before?.own, { scope, isKeyed: scope !== 'upstream', rate });
      const inner = nested.map((each) => [each.name, adjust(before?.nested.get(each.name), each)] as const);
      this.#upstreams.set(name, { own, nested: new Map(inner) });
    }
  }

  forgetOthers(): void {
    for (const name of this.#upstreams.keys()) if (!this.#configured.has(name)) this.#upstreams.delete(name);
  }

  /** Limits that are there whether or not they have been felt. */
  shared(): LimitRef[] {
    if (!this.#isKeeper) return [];
    return [...this.#upstreams].flatMap(([upstream, { own, nested }]) =>
      [['', own] as const, ...nested].flatMap(([name, { scope, isKeyed }]) =>
        scope === 'upstream' && !isKeyed ? [{ upstream, nested: name, scope, key: '' }] : [],
      ),
    );
  }

  scopeOf(upstream: string): Scope | undefined {
    return this.#upstreams.get(upstream)?.own.scope;
  }

  /** As of `MemoryStore`. */
  *nestedAt(upstream: string): Iterable<readonly [name: string, scope: Scope]> {
    for (const [name, { scope }] of this.#upstreams.get(upstream)?.nested ?? []) yield [name, scope];
  }

  /** Whether requests stand under it by what is configured. */
  readonly isKept = (ref: LimitRef): boolean => this.#find(ref)?.scope === ref.scope;

  /** Undefined where its upstream has been forgotten, or its name is not configured any more. */
  makeMeter(ref: LimitRef, random: Random): LocalMeter | undefined {
    const lent = this.#find(ref);
    return lent === undefined ? undefined : new LocalMeter(lent.rate, random);
  }

  #find({ upstream, nested }: LimitRef): Lent | undefined {
    const found = this.#upstreams.get(upstream);
    return nested === '' ? found?.own : found?.nested.get(nested);
  }
}

/** Meters hold on to the rate that they were made with. */
function adjust(before: Lent | undefined, { scope, isKeyed, rate }: Omit<NestedSettings, 'name'>): Lent {
  if (before === undefined) return { scope, isKeyed, rate: { ...rate } };
  Object.assign(before.rate, rate);
  return { scope, isKeyed, rate: before.rate };
}
