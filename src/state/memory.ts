import { Activity } from '../policy/activity.ts';
import type { QueueSettings } from '../policy/admission.ts';
import type { BudgetSettings } from '../policy/budget.ts';
import { RetryBudget } from '../policy/budget.ts';
import type { Bound } from '../policy/bound.ts';
import type { Listen, Scope } from '../policy/events.ts';
import type { Store, Upstream } from '../policy/store.ts';
import type { LimitRef } from '../policy/limit-ref.ts';
import { Limit } from '../policy/limit.ts';
import type { Meter } from '../policy/meter.ts';
import { LocalMeter } from '../policy/meter.ts';
import { Nests } from '../policy/nests.ts';
import { Room } from '../policy/room.ts';
import type { RateSettings } from '../policy/rate/state.ts';
import type { Millis, Random } from '../policy/types.ts';
import type { Hold } from './leasing/words.ts';
import { ClientTable } from './client-table.ts';

export interface UpstreamSettings {
  readonly name: string;
  readonly scope: Scope;
  readonly rate: RateSettings;
  readonly queue: QueueSettings;
  readonly budget: BudgetSettings;
}

export interface MemoryOptions {
  readonly upstreams: readonly UpstreamSettings[];
  /** Clients that are remembered at most. */
  readonly maxTracked: number;
  /** Limits of single clients or credentials that are remembered at most; as many as clients when absent. */
  readonly maxLimits?: number;
  readonly random: Random;
  readonly listen: Listen;
  /** How many connections to an upstream nobody uses, by its name; not bounded here when absent. */
  readonly freeConnections?: ReadonlyMap<string, () => number>;
  /** One of its own for each limit when absent. */
  readonly makeMeter?: (ref: LimitRef, rate: RateSettings, random: Random) => Meter;
  /** Told of each limit that is made or forgotten, and of each client that is to wait, where others share them. */
  readonly sharing?: Sharing;
}

export interface Sharing {
  adopt(limit: Limit): void;
  forget(limit: Limit): void;
  hold(hold: Hold): void;
}

interface Entry extends Upstream {
  readonly settings: UpstreamSettings;
  readonly shared: Limit | undefined;
}

/** Limits that are looked at for one to forget: a newcomer costs no more, however many are in use. */
const LOOKS = 32;

/** Everything in this process's memory. Answers at once. */
export class MemoryStore implements Store {
  readonly clients: ClientTable;
  readonly #options: MemoryOptions;
  readonly #upstreams = new Map<string, Entry>();
  /** Limits of scope client and credential, least recently used first. */
  readonly #own = new Map<string, Limit>();
  readonly #maxLimits: number;
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

  upstreams(): Iterable<Upstream> {
    return this.#upstreams.values();
  }

  find(ref: LimitRef): Limit | undefined {
    const entry = this.#entry(ref.upstream);
    if (ref.scope === 'upstream') return entry.shared;
    const key = keyOf(ref);
    const limit = this.#own.get(key);
    // A limit that is known beforehand needs no first rejection.
    if (limit === undefined) return isKnown(entry.settings.rate) ? this.make(ref) : undefined;
    this.#own.delete(key);
    this.#own.set(key, limit);
    return limit;
  }

  make(ref: LimitRef): Limit {
    const limit = this.#newLimit(ref, this.#entry(ref.upstream).settings);
    this.#own.set(keyOf(ref), limit);
    if (this.#own.size > this.#maxLimits) this.#forgetOne(limit);
    return limit;
  }

  /** A client was told to wait, or was allowed less, where it came to another process. */
  heed(hold: Hold, now: Millis): void {
    this.clients.heed(hold, now);
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

  *limits(): Iterable<Limit> {
    for (const { shared, room } of this.#upstreams.values()) {
      if (shared !== undefined) yield shared;
      else if (room !== undefined && room.line.queue.size > 0) yield room.line;
    }
    yield* this.#own.values();
  }

  #entry(name: string): Entry {
    const entry = this.#upstreams.get(name);
    if (entry === undefined) throw new Error(`no upstream is named '${name}'`);
    return entry;
  }

  #enter(settings: UpstreamSettings): Entry {
    const { name, queue, scope } = settings;
    const ref: LimitRef = { upstream: name, scope: 'upstream', key: '' };
    const shared = scope === 'upstream' ? this.#newLimit(ref, settings) : undefined;
    const free = this.#options.freeConnections?.get(name);
    return {
      name,
      queue,
      settings,
      shared,
      budget: new RetryBudget(settings.budget),
      activity: new Activity(),
      nests: new Nests(),
      ...(free === undefined ? {} : { room: new Room(shared ?? this.#newLine(ref), free) }),
      queued: 0,
      overflows: 0,
    };
  }

  #newLimit(ref: LimitRef, settings: UpstreamSettings): Limit {
    const { makeMeter = makeLocalMeter, random } = this.#options;
    const limit = new Limit(ref, makeMeter(ref, settings.rate, random));
    this.#options.sharing?.adopt(limit);
    return limit;
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
      if (limit.queue.size > 0 || limit.meter.inFlight > 0) {
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

function isKnown(rate: RateSettings): boolean {
  return rate.initialRate !== undefined || Number.isFinite(rate.maxRate);
}

function keyOf({ upstream, scope, key }: LimitRef): string {
  return `${upstream}\0${scope}\0${key}`;
}
