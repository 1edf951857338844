import { AccountPool, type AccountPoolSettings } from '../core/accounts/account-pool.ts';
import type { ResourceBound } from '../core/overload/resource-bound.ts';
import { ActiveClients } from '../core/admission/active-clients.ts';
import type { QueueSettings } from '../core/limits/longest-wait.ts';
import { QueueOccupancy } from '../core/admission/queue-occupancy.ts';
import type { BudgetSettings } from '../core/retry/retry-token-bucket.ts';
import { RetryTokenBucket } from '../core/retry/retry-token-bucket.ts';
import type { LimitScope } from '../core/limits/limit-state.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import type { Limit } from '../core/limits/limit.ts';
import { AddressGroups } from '../core/admission/address-groups.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';
import type { ConnectionCounts } from '../core/admission/connection-slots.ts';
import { ConnectionSlots } from '../core/admission/connection-slots.ts';
import type { CalendarQuotaSettings } from '../core/quota/calendar/calendar-quota.ts';
import { UpstreamQuotas, type UpstreamQuotasParts } from '../core/quota/calendar/upstream-quotas.ts';
import { UnmeteredSuccesses } from '../core/quota/unmetered-successes.ts';
import type { OperatorOverride } from '../core/limits/operator-override.ts';
import { isOverridden, NO_OVERRIDE } from '../core/limits/operator-override.ts';
import type { GateUpstream } from '../core/admission/gate-store.ts';
import { isLimitInUse } from './limit-in-use.ts';
import type { NestedLimitSettings } from './upstream-nested-limits.ts';
import { UpstreamNestedLimits } from './upstream-nested-limits.ts';

export interface UpstreamSettings {
  readonly name: string;
  readonly scope: LimitScope;
  readonly rate: RateSettings;
  /** In the order in which requests take their tokens; none when absent. */
  readonly nested?: readonly NestedLimitSettings[] | undefined;
  /** None when absent. */
  readonly quotas?: readonly CalendarQuotaSettings[] | undefined;
  readonly queue: QueueSettings;
  readonly budget: BudgetSettings;
  /** Undefined if clients use their own credentials. Otherwise the scope is `credential`: each account has its own limit. */
  readonly accounts?: AccountPoolSettings | undefined;
}

/** Settings that meters read at each use: a change applies to all of them at once. */
export type LiveRateSettings = { -readonly [Key in keyof RateSettings]: RateSettings[Key] };

export interface UpstreamStateParts {
  readonly makeLimit: (ref: LimitRef, rate: RateSettings) => Limit;
  readonly onLimitForgotten: (limit: Limit) => void;
  /** Makes a queue that waits for a connection alone. */
  readonly makeConnectionQueue: (ref: LimitRef) => Limit;
  readonly quotas: UpstreamQuotasParts;
  /** Connections are unbounded where undefined. */
  readonly connections: ConnectionCounts | undefined;
}

/** One upstream in a store. A reload changes its settings, and keeps what was counted and learned. */
export class UpstreamState implements GateUpstream {
  readonly name: string;
  queue: QueueSettings;
  readonly retryBudget: RetryTokenBucket;
  readonly activeClients = new ActiveClients();
  readonly addressGroups = new AddressGroups();
  readonly unmeteredSuccesses = new UnmeteredSuccesses();
  readonly rate: LiveRateSettings;
  readonly connectionSlots: ConnectionSlots | undefined;
  quotas: UpstreamQuotas | undefined;
  readonly nested: UpstreamNestedLimits;
  /** The operator's override, also for limits that are made later. */
  override: OperatorOverride = NO_OVERRIDE;
  accounts: AccountPool | undefined;
  readonly queueOccupancy = new QueueOccupancy();
  queueOverflows = 0;
  #scope: LimitScope;
  /** The limit for all requests; undefined if each client or credential has its own. */
  #shared: Limit | undefined;
  /** The shared limit from before a change of scope, until its queue is served. */
  #former: Limit | undefined;
  readonly #parts: UpstreamStateParts;
  readonly #ref: LimitRef;

  constructor(
    { name, scope, rate, nested = [], quotas = [], queue, budget, accounts }: UpstreamSettings,
    parts: UpstreamStateParts,
  ) {
    this.name = name;
    this.queue = queue;
    this.accounts = accounts && new AccountPool(accounts);
    this.retryBudget = new RetryTokenBucket(budget);
    this.rate = { ...rate };
    this.#scope = scope;
    this.#parts = parts;
    this.#ref = { upstream: name, nested: '', scope: 'upstream', key: '' };
    if (scope === 'upstream') this.#shared = parts.makeLimit(this.#ref, this.rate);
    this.nested = new UpstreamNestedLimits(name, nested, parts);
    this.#setQuotas(quotas);
    this.connectionSlots =
      parts.connections === undefined
        ? undefined
        : new ConnectionSlots(this.#connectionQueue(), parts.connections, this.activeClients);
  }

  get scope(): LimitScope {
    return this.#scope;
  }

  /** The limit for all requests, or the one from before a change of scope. */
  get shared(): Limit | undefined {
    return this.#shared ?? this.#former;
  }

  /** The limits of this upstream for all requests. */
  *limitsForAll(): Iterable<Limit> {
    if (this.shared !== undefined) yield this.shared;
    yield* this.nested.limits();
  }

  /** Whether the configuration has a limit of this name and scope, with keys if this one has any. */
  isConfigured(ref: LimitRef): boolean {
    return ref.nested === '' ? ref.scope === this.#scope : this.nested.isConfigured(ref);
  }

  /** The limit of this name for all requests; undefined if there are several, or none. */
  sharedLimit(nested: string): Limit | undefined {
    return nested === '' ? this.shared : this.nested.sharedOf(nested);
  }

  /**
   * Whether limits of this name exist before the first rejection: a rate or a quota is configured, a rate is overridden, or there is
   * one for each account, which counts the requests of all clients.
   */
  hasKnownRate(nested: string): boolean {
    return nested === '' ? this.#hasKnownRate : this.nested.hasKnownLimit(nested);
  }

  get #hasKnownRate(): boolean {
    if (this.quotas !== undefined) return true; // requests that wait for it need the queue of a limit
    const { initialRate, maxRate } = this.rate;
    return (
      this.accounts !== undefined ||
      initialRate !== undefined ||
      Number.isFinite(maxRate) ||
      isOverridden(this.override, Number.NEGATIVE_INFINITY)
    );
  }

  get hasNestedLimits(): boolean {
    return !this.nested.isEmpty;
  }

  hasNestedLimit(nested: string): boolean {
    return nested === '' || this.nested.has(nested);
  }

  get bounds(): readonly ResourceBound[] {
    const used = this.queueOccupancy.size / Math.max(1, this.queue.maxDepth);
    return [...this.nested.bounds, this.addressGroups.bound, { name: 'queue', used, reached: this.queueOverflows }];
  }

  reconfigure({ scope, rate, nested = [], quotas = [], queue, budget, accounts }: UpstreamSettings): void {
    if (accounts === undefined || this.accounts === undefined) this.accounts = accounts && new AccountPool(accounts);
    else this.accounts.reconfigure(accounts);
    this.nested.reconfigure(nested);
    this.#setQuotas(quotas);
    this.queue = queue;
    this.retryBudget.adjust(budget);
    Object.assign(this.rate, rate);
    const wasShared = this.#shared;
    this.#scope = scope;
    if (scope === 'upstream' && wasShared === undefined) {
      this.#shared = this.#former ?? this.#parts.makeLimit(this.#ref, this.rate);
      this.#former = undefined;
    } else if (scope !== 'upstream' && wasShared !== undefined) {
      this.#shared = undefined;
      this.#former = wasShared;
    } else return;
    // At the former limit, those that wait for its tokens would delay requests that lack only a connection.
    this.connectionSlots?.moveQueue(this.#connectionQueue());
  }

  /** Removes and returns the limit of the former scope, once it is unused. */
  releaseFormerLimit(): Limit | undefined {
    const former = this.#former;
    if (former === undefined || isLimitInUse(former)) return undefined;
    this.#former = undefined;
    return former;
  }

  #setQuotas(settings: readonly CalendarQuotaSettings[]): void {
    if (settings.length === 0) this.closeQuotas();
    else if (this.quotas === undefined) this.quotas = new UpstreamQuotas(this.name, settings, this.#parts.quotas);
    else this.quotas.reconfigure(settings);
  }

  /** Returns what is leased of quotas. Requests that wait for them wait no longer. */
  closeQuotas(): void {
    this.quotas?.reconfigure([]);
    this.quotas = undefined;
  }

  #connectionQueue(): Limit {
    return this.#shared ?? this.#parts.makeConnectionQueue(this.#ref);
  }
}
