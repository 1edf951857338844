import type { Bound } from '../policy/bound.ts';
import type { LimitView, Listen, Scope } from '../policy/events.ts';
import type { Store, Upstream } from '../policy/store.ts';
import type { LimitRef } from '../policy/limit-ref.ts';
import { Limit } from '../policy/limit.ts';
import type { Meter } from '../policy/meter.ts';
import { LocalMeter } from '../policy/meter.ts';
import type { Order, Steering } from '../policy/steering.ts';
import { obey } from '../policy/steering.ts';
import type { RateSettings } from '../policy/rate/state.ts';
import type { Millis, Random } from '../policy/types.ts';
import type { Hold } from './leasing/words.ts';
import { ClientTable } from './client-table.ts';
import type { UpstreamSettings } from './kept-upstream.ts';
import { isUsed, KeptUpstream } from './kept-upstream.ts';
import type { Learned } from './learned.ts';

export type { UpstreamSettings } from './kept-upstream.ts';

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

/** Limits that are looked at for one to forget: a newcomer costs no more, however many are in use. */
const LOOKS = 32;

/** Everything in this process's memory. Answers at once. */
export class MemoryStore implements Store {
  readonly clients: ClientTable;
  readonly #options: MemoryOptions;
  readonly #upstreams = new Map<string, KeptUpstream>();
  /** Limits of scope client and credential, least recently used first. */
  readonly #own = new Map<string, Limit>();
  #maxLimits: number;
  #forgotten = 0;

  constructor(options: MemoryOptions) {
    this.#options = options;
    this.#maxLimits = options.maxLimits ?? options.maxTracked;
    const { sharing } = options;
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
    if (ref.scope === 'upstream') return entry.shared;
    const key = keyOf(ref);
    const limit = this.#own.get(key);
    // A limit that is known beforehand needs no first rejection.
    if (limit === undefined) return entry.isKnown ? this.make(ref) : undefined;
    this.#own.delete(key);
    this.#own.set(key, limit);
    return limit;
  }

  make(ref: LimitRef): Limit {
    const { rate, steering } = this.#entry(ref.upstream);
    const limit = this.#newLimit(ref, rate);
    this.#hold(limit, steering, NEVER);
    this.#own.set(keyOf(ref), limit);
    if (this.#own.size > this.#maxLimits) this.#forgetOne(limit);
    return limit;
  }

  /** A client was told to wait, or was allowed less, where it came to another process. */
  heed(hold: Hold, now: Millis): void {
    this.clients.heed(hold, now);
  }

  /** An operator's word on all limits of an upstream. Returns them: who waits there may go, or has to wait on. */
  steer(upstream: string, order: Order, now: Millis): readonly Limit[] {
    const entry = this.#entry(upstream);
    entry.steering = obey(entry.steering, order);
    const limits = entry.shared === undefined ? [] : [entry.shared];
    for (const limit of this.#own.values()) if (limit.ref.upstream === upstream) limits.push(limit);
    for (const limit of limits) {
      this.#hold(limit, entry.steering, now);
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

  /** The limit that a client stands under, if that is known. Of credentials it is not. */
  limitOf(upstream: string, client: string): Limit | undefined {
    const entry = this.#upstreams.get(upstream);
    if (entry?.scope !== 'client') return entry?.shared;
    return this.#own.get(keyOf({ upstream, scope: 'client', key: client }));
  }

  get bounds(): readonly Bound[] {
    const upstreams = [...this.#upstreams.values()];
    return [
      this.clients.bound,
      { name: 'client_limits', used: this.#own.size / this.#maxLimits, reached: this.#forgotten },
      ...upstreams.map(({ nests }) => nests.bound),
      ...upstreams.map(({ queue, queued, overflows }): Bound => {
        return { name: 'queue', used: queued / Math.max(1, queue.maxDepth), reached: overflows };
      }),
    ];
  }

  /** What has been learned of limits: not what operators want of them. */
  *learned(now: Millis): Iterable<LimitView> {
    for (const limit of this.limits()) yield limit.view(now, limit.own);
  }

  *limits(): Iterable<Limit> {
    for (const { shared, room } of this.#upstreams.values()) {
      if (shared !== undefined) yield shared;
      else if (room !== undefined && room.line.queue.size > 0) yield room.line;
    }
    yield* this.#own.values();
  }

  /**
   * What is configured from now on. An upstream that is not named any more goes on until it is removed.
   * @param maxLimits as of the options
   */
  configure(upstreams: readonly UpstreamSettings[], maxLimits: number): void {
    this.#maxLimits = maxLimits;
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
    const shared = this.#upstreams.get(name)?.shared;
    if (shared !== undefined) this.#options.sharing?.forget(shared);
    for (const [key, { ref }] of this.#own) if (ref.upstream === name) this.#forget(key);
    this.#upstreams.delete(name);
  }

  /** Lets go of limits that no request stands under any more, because the scope has changed. Returns whether none is left. */
  sweep(): boolean {
    let left = 0;
    for (const upstream of this.#upstreams.values()) {
      const former = upstream.letGo();
      if (former !== undefined) this.#options.sharing?.forget(former);
      else if (upstream.scope !== 'upstream' && upstream.shared !== undefined) left += 1;
    }
    for (const [key, limit] of this.#own) {
      if (this.#upstreams.get(limit.ref.upstream)?.scope === limit.ref.scope) continue;
      if (isUsed(limit)) left += 1;
      else this.#forget(key);
    }
    return left === 0;
  }

  /** Goes on from what another process had learned. Of what is not configured, or is kept elsewhere, nothing is taken. */
  restore({ limits, holds }: Learned, now: Millis): void {
    for (const { ref, rate, ceiling, places, blockedUntil } of limits) {
      if (this.#upstreams.get(ref.upstream)?.scope !== ref.scope) continue;
      const { meter } = this.find(ref) ?? this.make(ref);
      if (rate !== undefined) meter.resume?.(rate, ceiling ?? rate, now, places);
      if (blockedUntil !== undefined) meter.stop(blockedUntil);
    }
    for (const hold of holds) if (this.#upstreams.has(upstreamOf(hold))) this.heed(hold, now);
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

  /**
   * The least recently used that nobody uses: an open one if there is one near, for it remembers nothing. Those in use are
   * as many as there are requests, and put behind; where a look finds nothing else, there is one too many for a while.
   * @param newest open still, and about to learn why it was made
   */
  #forgetOne(newest: Limit): void {
    let oldest: string | undefined;
    let looks = 0;
    for (const [key, limit] of this.#own) {
      if (this.#own.size <= this.#maxLimits || looks === LOOKS) break;
      looks += 1;
      if (limit === newest) continue;
      if (isUsed(limit)) {
        this.#own.delete(key);
        this.#own.set(key, limit);
      } else if (limit.meter.phase === 'open') this.#forget(key);
      else oldest ??= key;
    }
    if (oldest !== undefined && this.#own.size > this.#maxLimits) this.#forget(oldest);
  }

  #forget(key: string): void {
    const limit = this.#own.get(key);
    if (limit !== undefined) this.#options.sharing?.forget(limit);
    this.#own.delete(key);
    this.#forgotten += 1;
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

function keyOf({ upstream, scope, key }: LimitRef): string {
  return `${upstream}\0${scope}\0${key}`;
}

function upstreamOf({ client }: Hold): string {
  return client.slice(0, client.indexOf('\0'));
}
