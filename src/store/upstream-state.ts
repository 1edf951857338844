import { Activity } from '../core/admission/active-clients.ts';
import type { QueueSettings } from '../core/admission/wait-estimate.ts';
import { Backlog } from '../core/admission/queue-occupancy.ts';
import type { BudgetSettings } from '../core/retry/retry-token-bucket.ts';
import { RetryBudget } from '../core/retry/retry-token-bucket.ts';
import type { Scope } from '../core/events/proxy-events.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import type { Limit } from '../core/limits/limit.ts';
import { Nests } from '../core/admission/address-groups.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';
import { Room } from '../core/admission/connection-slots.ts';
import { UntoldQuotas } from '../core/quota/unmetered-successes.ts';
import type { Steering } from '../core/limits/operator-override.ts';
import { isSteered, UNSTEERED } from '../core/limits/operator-override.ts';
import type { Upstream } from '../core/admission/gate-store.ts';
import { isUsed } from './limit-in-use.ts';
import type { NestedSettings } from './upstream-nested-limits.ts';
import { NestedLimits } from './upstream-nested-limits.ts';

export interface UpstreamSettings {
  readonly name: string;
  readonly scope: Scope;
  readonly rate: RateSettings;
  /** In the order in which requests stand under them; none when absent. */
  readonly nested?: readonly NestedSettings[] | undefined;
  readonly queue: QueueSettings;
  readonly budget: BudgetSettings;
}

/** Settings of meters that read them anew each time: what is changed here holds for all of them at once. */
export type LiveRate = { -readonly [Key in keyof RateSettings]: RateSettings[Key] };

export interface KeptUpstreamParts {
  readonly makeLimit: (ref: LimitRef, rate: RateSettings) => Limit;
  readonly onForget: (limit: Limit) => void;
  /** A queue for room alone. */
  readonly makeLine: (ref: LimitRef) => Limit;
  /** How many connections nobody uses; not bounded here where absent. */
  readonly free: (() => number) | undefined;
}

/** One upstream in a store. Its settings may change; what has been counted and learned stays. */
export class KeptUpstream implements Upstream {
  readonly name: string;
  queue: QueueSettings;
  readonly budget: RetryBudget;
  readonly activity = new Activity();
  readonly nests = new Nests();
  readonly untold = new UntoldQuotas();
  readonly rate: LiveRate;
  readonly room: Room | undefined;
  readonly nested: NestedLimits;
  /** What an operator wants: it outlasts limits, of which there may be none yet. */
  steering: Steering = UNSTEERED;
  readonly backlog = new Backlog();
  overflows = 0;
  #scope: Scope;
  /** The limit that all of its requests stand under; undefined where each client or credential has its own. */
  #shared: Limit | undefined;
  /** That of before, where the scope has changed: who waits there is served to the end. */
  #former: Limit | undefined;
  readonly #parts: KeptUpstreamParts;
  readonly #ref: LimitRef;

  constructor({ name, scope, rate, nested = [], queue, budget }: UpstreamSettings, parts: KeptUpstreamParts) {
    this.name = name;
    this.queue = queue;
    this.budget = new RetryBudget(budget);
    this.rate = { ...rate };
    this.#scope = scope;
    this.#parts = parts;
    this.#ref = { upstream: name, nested: '', scope: 'upstream', key: '' };
    if (scope === 'upstream') this.#shared = parts.makeLimit(this.#ref, this.rate);
    this.nested = new NestedLimits(name, nested, parts);
    this.room = parts.free === undefined ? undefined : new Room(this.#line(), parts.free);
  }

  get scope(): Scope {
    return this.#scope;
  }

  /** Of all its requests, those that were there before the scope changed included. */
  get shared(): Limit | undefined {
    return this.#shared ?? this.#former;
  }

  /** Whether there is a limit to begin with, by configuration or an operator's word, and no first rejection is waited for. */
  get isKnown(): boolean {
    const { initialRate, maxRate } = this.rate;
    return initialRate !== undefined || Number.isFinite(maxRate) || isSteered(this.steering, Number.NEGATIVE_INFINITY);
  }

  has(nested: string): boolean {
    return nested === '' || this.nested.has(nested);
  }

  adjust({ scope, rate, nested = [], queue, budget }: UpstreamSettings): void {
    this.nested.adjust(nested);
    this.queue = queue;
    this.budget.adjust(budget);
    Object.assign(this.rate, rate);
    const wasShared = this.#shared;
    this.#scope = scope;
    if (scope === 'upstream' && wasShared === undefined) {
      this.#shared = this.#former ?? this.#parts.makeLimit(this.#ref, this.rate);
      this.#former = undefined;
    } else if (scope !== 'upstream' && wasShared !== undefined) {
      this.#shared = undefined;
      this.#former = wasShared;
    }
  }

  /** Lets go of the limit of another scope, if nobody uses it any more. Returns it then. */
  letGo(): Limit | undefined {
    const former = this.#former;
    if (this.room !== undefined && this.room.line.queue.size === 0) this.#moveLine(this.room);
    if (former === undefined || isUsed(former)) return undefined;
    this.#former = undefined;
    return former;
  }

  /** Where the scope is another than that of those who wait for room. */
  #moveLine(room: Room): void {
    const isOwn = this.#shared === undefined && room.line !== this.#former;
    if (room.line !== this.#shared && !isOwn) room.line = this.#line();
  }

  #line(): Limit {
    return this.#shared ?? this.#parts.makeLine(this.#ref);
  }
}
