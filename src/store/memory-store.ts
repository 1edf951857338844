import type { Bound } from '../core/overload/resource-bound.ts';
import type { LimitView, Listen, Scope } from '../core/events/proxy-events.ts';
import type { Store, Upstream } from '../core/admission/gate-store.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import { Limit } from '../core/limits/limit.ts';
import type { Meter } from '../core/limits/meter.ts';
import { LocalMeter } from '../core/limits/meter.ts';
import { isOfRequester } from '../core/quota/requester.ts';
import type { Order, Steering } from '../core/limits/operator-override.ts';
import { obey } from '../core/limits/operator-override.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';
import type { Millis, Random } from '../core/exchange/attempt-outcome.ts';
import type { Hold } from '../sharing/workers/worker-protocol.ts';
import { ClientTable } from './clients/client-table.ts';
import type { UpstreamSettings } from './upstream-state.ts';
import { KeptUpstream } from './upstream-state.ts';
import type { Learned } from './persistence/learned-state.ts';
import { OwnLimits } from './per-client-limits.ts';
import { isUsed } from './limit-in-use.ts';
import { keepStop } from '../core/limits/meter-stop.ts';

export type { UpstreamSettings } from './upstream-state.ts';

export interface MemoryOptions {
  readonly upstreams: readonly UpstreamSettings[];
  /** Clients that are remembered at most. */
  readonly maxTracked: number;
  /** Limits of single clients or credentials that are remembered at most; as many as clients when absent. */
  readonly maxLimits?: number;
  readonly random: Random;
  readonly listen: Listen;
  /** How many connections to an upstream nobody uses, by its name; not bounded here when absent. */
  readonly freeConnections?: Pick<ReadonlyMap<string, () => number>, 'get'>;
  /** One of its own for each limit when absent. */
  readonly makeMeter?: (ref: LimitRef, rate: RateSettings, random: Random) => Meter;
  /** Told of each limit that is made or forgotten, and of each client that is to wait, where others share them. */
  readonly sharing?: Sharing;
  /** Rates that an operator has chosen are kept to by who lends the tokens. */
  readonly isPinnedElsewhere?: boolean;
}

export interface Sharing {
  adopt(limit: Limit): void;
  forget(limit: Limit): void;
  hold(hold: Hold): void;
}

const NEVER = Number.NEGATIVE_INFINITY;

/** Everything in this process's memory. Answers at once. */
export class MemoryStore implements Store {
  readonly clients: ClientTable;
  readonly #options: MemoryOptions;
  readonly #upstreams = new Map<string, KeptUpstream>();
  /** Limits of scope client and credential. */
  readonly #own: OwnLimits;

  constructor(options: MemoryOptions) {
    this.#options = options;
    const { sharing } = options;
    this.#own = new OwnLimits(options.maxLimits ?? options.maxTracked, (limit) => sharing?.forget(limit));
    const onHold = sharing === undefined ? undefined : (hold: Hold) => sharing.hold(hold);
    this.clients = new ClientTable(options.maxTracked, options.listen, onHold);
    for (const settings of options.upstreams) this.#upstreams.set(settings.name, this.#enter(settings));
  }

  upstream(name: string): Upstream {
    return this.#entry(name);
  }

  has(upstream: string): boolean {
    return this.#upstreams.has(upstream);
  }

  upstreams(): Iterable<Upstream> {
    return this.#upstreams.values();
  }

  find(ref: LimitRef): Limit | undefined {
    const entry = this.#entry(ref.upstream);
    if (ref.scope === 'upstream') return ref.nested === '' ? entry.shared : entry.nested.find(ref);
    if (ref.nested !== '' && !entry.nested.has(ref.nested)) return undefined;
    const isKnown = ref.nested === '' ? entry.isKnown : entry.nested.isKnown(ref.nested);
    // A limit that is known beforehand needs no first rejection.
    return this.#own.use(ref) ?? (isKnown ? this.make(ref) : undefined);
  }

  make(ref: LimitRef): Limit {
    const { rate, nested, steering } = this.#entry(ref.upstream);
    if (ref.nested !== '' && ref.scope === 'upstream') return nested.find(ref) ?? this.#newLine(ref);
    if (ref.nested !== '' && !nested.has(ref.nested)) return this.#newLine(ref); // gone meanwhile
    const limit = this.#newLimit(ref, nested.rateOf(ref.nested) ?? rate);
    if (ref.nested === '') this.#hold(limit, steering, NEVER);
    this.#own.add(limit);
    return limit;
  }

  holdAt(limit: Limit, key: string, until: Millis, now: Millis): void {
    limit.hold(key, until, now);
    const { upstream } = limit.ref;
    if (limit !== this.#upstreams.get(upstream)?.shared) return; // at others it is held by who heard it
    this.#options.sharing?.hold({ client: `${upstream}\0${key}`, until });
  }

  /** A client was told to wait, or was allowed less, where it came to another process. */
  heed(hold: Hold, now: Millis): void {
    const key = hold.client.slice(hold.client.indexOf('\0') + 1);
    if (!isOfRequester(key)) return this.clients.heed(hold, now);
    this.#upstreams.get(upstreamOf(hold))?.shared?.hold(key, hold.until, now);
  }

  /**
   * An operator's word on an upstream's own limits; and that it is to be asked at once whether it lets anything through, on
   * the nested ones too. Returns those limits: who waits there may go, or has to wait on.
   */
  steer(upstream: string, order: Order, now: Millis): readonly Limit[] {
    const entry = this.#entry(upstream);
    entry.steering = obey(entry.steering, order);
    const limits = entry.shared === undefined ? [] : [entry.shared];
    for (const limit of this.#own.values()) if (limit.ref.upstream === upstream) limits.push(limit);
    if (order.do === 'unblock') limits.push(...entry.nested.limits());
    for (const limit of limits) {
      if (limit.ref.nested === '') this.#hold(limit, entry.steering, now);
      if (order.do === 'unblock') limit.meter.probeNow?.(now);
    }
    return limits;
  }

  /** What an operator wants of the limits of an upstream. */
  steeringOf(upstream: string): Steering {
    return this.#entry(upstream).steering;
  }

  /** Undefined where no upstream is named so. */
  scopeOf(upstream: string): Scope | undefined {
    return this.#upstreams.get(upstream)?.scope;
  }

  /** Names and scopes of the nested limits of an upstream, in the order in which requests stand under them. */
  nestedAt(upstream: string): Iterable<readonly [name: string, scope: Scope]> {
    return this.#upstreams.get(upstream)?.nested.scopes() ?? [];
  }

  /** The limit that a client stands under, if that is known. Of credentials it is not. */
  limitOf(upstream: string, client: string): Limit | undefined {
    const entry = this.#upstreams.get(upstream);
    if (entry?.scope !== 'client') return entry?.shared;
    return this.#own.peek({ upstream, nested: '', scope: 'client', key: client });
  }

  get bounds(): readonly Bound[] {
    const upstreams = [...this.#upstreams.values()];
    return [
      this.clients.bound,
      this.#own.bound,
      ...upstreams.flatMap(({ nested }) => nested.bounds),
      ...upstreams.map(({ nests }) => nests.bound),
      ...upstreams.map(({ queue, backlog, overflows }): Bound => {
        return { name: 'queue', used: backlog.size / Math.max(1, queue.maxDepth), reached: overflows };
      }),
    ];
  }

  /** What has been learned of limits: not what operators want of them. */
  *learned(now: Millis): Iterable<LimitView> {
    for (const limit of this.limits()) yield limit.view(now, limit.own);
  }

  *limits(): Iterable<Limit> {
    for (const { shared, room, nested } of this.#upstreams.values()) {
      if (shared !== undefined) yield shared;
      else if (room !== undefined && room.line.queue.size > 0) yield room.line;
      yield* nested.limits();
    }
    yield* this.#own.values();
  }

  /**
   * What is configured from now on. An upstream that is not named any more goes on until it is removed.
   * @param maxLimits as of the options
   */
  configure(upstreams: readonly UpstreamSettings[], maxLimits: number): void {
    this.#own.most = maxLimits;
    for (const settings of upstreams) {
      const known = this.#upstreams.get(settings.name);
      if (known === undefined) this.#upstreams.set(settings.name, this.#enter(settings));
      else {
        known.adjust(settings);
        if (known.shared !== undefined) this.#hold(known.shared, known.steering, NEVER);
      }
    }
  }

  /** Nobody asks for this upstream any more: all that was kept of it goes, but for its clients, who are forgotten in time. */
  remove(name: string): void {
    const { sharing } = this.#options;
    const { shared, nested } = this.#upstreams.get(name) ?? {};
    if (shared !== undefined) sharing?.forget(shared);
    for (const limit of nested?.limits() ?? []) sharing?.forget(limit);
    this.#own.drop(({ ref }) => ref.upstream === name);
    this.#upstreams.delete(name);
  }

  /** Lets go of limits that no request stands under any more, because the scope has changed or a name is gone. Returns whether none is left. */
  sweep(): boolean {
    let left = 0;
    for (const upstream of this.#upstreams.values()) {
      const former = upstream.letGo();
      if (former !== undefined) this.#options.sharing?.forget(former);
      else if (upstream.scope !== 'upstream' && upstream.shared !== undefined) left += 1;
      left += upstream.nested.sweep();
    }
    this.#own.drop((limit) => {
      if (this.#isKept(limit.ref)) return false;
      if (isUsed(limit)) left += 1;
      return !isUsed(limit);
    });
    return left === 0;
  }

  /** Goes on from what another process had learned. Of what is not configured, or is kept elsewhere, nothing is taken. */
  restore({ limits, holds }: Learned, now: Millis): void {
    for (const known of limits) {
      const { ref, rate, ceiling, places } = known;
      if (!this.#isKept(ref)) continue;
      const { meter } = this.find(ref) ?? this.make(ref);
      if (rate !== undefined) meter.resume?.(rate, ceiling ?? rate, now, places);
      keepStop(meter, known, now);
    }
    for (const hold of holds) if (this.#upstreams.has(upstreamOf(hold))) this.heed(hold, now);
  }

  /** Whether requests stand under it by what is configured. */
  #isKept({ upstream, nested, scope }: LimitRef): boolean {
    const entry = this.#upstreams.get(upstream);
    return scope === (nested === '' ? entry?.scope : entry?.nested.scopeOf(nested));
  }

  #entry(name: string): KeptUpstream {
    const entry = this.#upstreams.get(name);
    if (entry === undefined) throw new Error(`no upstream is named '${name}'`);
    return entry;
  }

  #enter(settings: UpstreamSettings): KeptUpstream {
    return new KeptUpstream(settings, {
      makeLimit: (ref, rate) => this.#newLimit(ref, rate),
      makeLine: (ref) => this.#newLine(ref),
      onForget: (limit) => this.#options.sharing?.forget(limit),
      free: this.#options.freeConnections?.get(settings.name),
    });
  }

  #newLimit(ref: LimitRef, rate: RateSettings): Limit {
    const { makeMeter = makeLocalMeter, random } = this.#options;
    const limit = new Limit(ref, makeMeter(ref, rate, random));
    this.#options.sharing?.adopt(limit);
    return limit;
  }

  /** To a rate that was chosen for all, who lends the tokens of all. */
  #hold(limit: Limit, steering: Steering, now: Millis): void {
    if (this.#options.isPinnedElsewhere !== true) return limit.steer(steering, now);
    limit.isPinnedElsewhere = steering.pinned !== undefined;
    limit.steer({ ...steering, pinned: undefined }, now);
  }

  #newLine(ref: LimitRef): Limit {
    return new Limit(ref, new LocalMeter(UNLIMITED, this.#options.random));
  }
}

/** Of a line that is no limit. */
const UNLIMITED: RateSettings = {
  initialRate: undefined,
  maxRate: Number.POSITIVE_INFINITY,
  minRate: 1,
  cooldown: 0,
};

function makeLocalMeter(_ref: LimitRef, rate: RateSettings, random: Random): Meter {
  return new LocalMeter(rate, random);
}

function upstreamOf({ client }: Hold): string {
  return client.slice(0, client.indexOf('\0'));
}
