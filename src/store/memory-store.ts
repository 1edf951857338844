import type { ClientHold } from '../core/limits/client-holds.ts';
import type { ResourceBound } from '../core/overload/resource-bound.ts';
import type { LimitView } from '../core/events/gate-views.ts';
import type { LimitScope } from '../core/limits/limit-state.ts';
import type { GateStore, GateUpstream } from '../core/admission/gate-store.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import { Limit } from '../core/limits/limit.ts';
import { LocalMeter } from '../core/limits/local-meter.ts';
import { isRequesterKey } from '../core/quota/requester.ts';
import { applyOverride, type OverrideChange, type OperatorOverride } from '../core/limits/operator-override.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';
import type { Millis } from '../core/scalars.ts';
import type { MemoryStoreOptions } from './memory-store-options.ts';
import { makeConnectionQueue } from './connection-queue.ts';
import { ClientTable } from './clients/client-table.ts';
import { UpstreamState, type UpstreamSettings } from './upstream-state.ts';
import type { LearnedState } from './persistence/learned-state.ts';
import { PerClientLimits } from './per-client-limits.ts';
import { isLimitInUse } from './limit-in-use.ts';
import { shareAccounts } from './share-accounts.ts';
import { restoreStop } from '../core/limits/meter-stop.ts';

const NEVER = Number.NEGATIVE_INFINITY;

/** Keeps limits and clients in the memory of this process. */
export class MemoryStore implements GateStore {
  readonly clients: ClientTable;
  readonly #options: MemoryStoreOptions;
  readonly #upstreams = new Map<string, UpstreamState>();
  #maxQuotaClients: number;
  /** The limits of scope `client` and `credential`. */
  readonly #perClientLimits: PerClientLimits;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
    const { sharingHooks, maxTracked, maxLimits = maxTracked, maxQuotaClients = maxTracked } = options;
    this.#maxQuotaClients = maxQuotaClients;
    this.#perClientLimits = new PerClientLimits(maxLimits, (limit) => sharingHooks?.onLimitForgotten(limit));
    this.clients = new ClientTable(maxTracked, options.listen, (hold) => sharingHooks?.onClientHeld(hold));
    for (const settings of options.upstreams) this.#upstreams.set(settings.name, this.#addUpstream(settings));
  }

  upstream(name: string): GateUpstream {
    return this.#entry(name);
  }

  has(upstream: string): boolean {
    return this.#upstreams.has(upstream);
  }

  upstreams(): Iterable<GateUpstream> {
    return this.#upstreams.values();
  }

  findLimit(ref: LimitRef): Limit | undefined {
    const entry = this.#entry(ref.upstream);
    if (ref.scope === 'upstream') return ref.nested === '' ? entry.shared : entry.nested.find(ref);
    if (ref.nested !== '' && !entry.nested.has(ref.nested)) return undefined;
    const existing = this.#perClientLimits.use(ref);
    if (existing !== undefined) return existing;
    if (!entry.isConfigured(ref)) return entry.sharedLimit(ref.nested); // its scope has changed since the request arrived
    // A limit with a configured rate exists before its first rejection.
    return entry.hasKnownRate(ref.nested) ? this.findOrCreateLimit(ref) : undefined;
  }

  findOrCreateLimit(ref: LimitRef): Limit {
    const entry = this.#entry(ref.upstream);
    // Removed by a reload: nothing is learned of it.
    if (!entry.isConfigured(ref)) return makeConnectionQueue(ref, this.#options.random);
    const shared = ref.scope === 'upstream' ? this.findLimit(ref) : undefined;
    if (shared !== undefined) return shared;
    const limit = this.#makeLimit(ref, entry.nested.rateOf(ref.nested) ?? entry.rate);
    if (ref.nested === '') this.#applyOverrideTo(limit, entry.override, NEVER);
    this.#perClientLimits.add(limit);
    return limit;
  }

  holdClientAt(limit: Limit, key: string, until: Millis, now: Millis): void {
    limit.holdClient(key, until, now);
    const { upstream } = limit.ref;
    if (limit !== this.#upstreams.get(upstream)?.shared) return; // at other limits, only the process that received the response holds it
    this.#options.sharingHooks?.onClientHeld({ client: `${upstream}\0${key}`, until });
  }

  /** Applies a hold, or a reduced allowance, that another process published. */
  applyHold(hold: ClientHold, now: Millis): void {
    const key = hold.client.slice(hold.client.indexOf('\0') + 1);
    if (!isRequesterKey(key)) return this.clients.applyHold(hold, now);
    this.#upstreams.get(upstreamOfHold(hold))?.shared?.holdClient(key, hold.until, now);
  }

  /**
   * Applies an operator's change to the upstream's own limits. `unblock` also allows a probe at once, on nested limits too.
   * Returns the limits concerned: their queues need to be served again.
   */
  applyOverride(upstream: string, change: OverrideChange, now: Millis): readonly Limit[] {
    const entry = this.#entry(upstream);
    entry.override = applyOverride(entry.override, change);
    const limits = entry.shared === undefined ? [] : [entry.shared];
    for (const limit of this.#perClientLimits.values()) if (limit.ref.upstream === upstream) limits.push(limit);
    if (change.action === 'unblock') {
      limits.push(...entry.nested.limits());
      entry.accounts?.endStops();
    }
    for (const limit of limits) {
      if (limit.ref.nested === '') this.#applyOverrideTo(limit, entry.override, now);
      if (change.action === 'unblock') limit.meter.probeNow?.(now);
    }
    return limits;
  }

  /** The operator's override of the upstream's own limits. */
  overrideOf(upstream: string): OperatorOverride {
    return this.#entry(upstream).override;
  }

  /** Undefined if no upstream has this name. */
  scopeOf(upstream: string): LimitScope | undefined {
    return this.#upstreams.get(upstream)?.scope;
  }

  /** Names and scopes of the nested limits of an upstream, in the order in which requests take their tokens. */
  nestedLimitScopes(upstream: string): Iterable<readonly [name: string, scope: LimitScope]> {
    return this.#upstreams.get(upstream)?.nested.scopesByName() ?? [];
  }

  /** The limit that applies to a client; undefined for limits of scope `credential`, and before one exists. */
  clientLimit(upstream: string, client: string): Limit | undefined {
    const entry = this.#upstreams.get(upstream);
    if (entry?.scope !== 'client') return entry?.shared;
    return this.#perClientLimits.peek({ upstream, nested: '', scope: 'client', key: client });
  }

  /** The limit of an account; undefined before one exists. */
  accountLimit(upstream: string, account: string): Limit | undefined {
    return this.#perClientLimits.peek({ upstream, nested: '', scope: 'credential', key: account });
  }

  get bounds(): readonly ResourceBound[] {
    const ofUpstreams = [...this.#upstreams.values()].flatMap(({ bounds }) => bounds);
    return [this.clients.bound, this.#perClientLimits.bound, ...ofUpstreams];
  }

  /** The limits as they were learned, without overrides of operators. */
  *learnedViews(now: Millis): Iterable<LimitView> {
    for (const limit of this.limits()) yield limit.view(now, limit.learnedMeter);
  }

  *limits(): Iterable<Limit> {
    for (const { shared, connectionSlots, nested } of this.#upstreams.values()) {
      if (shared !== undefined) yield shared;
      else if (connectionSlots !== undefined && connectionSlots.queueLimit.isAwaited) yield connectionSlots.queueLimit;
      yield* nested.limits();
    }
    yield* this.#perClientLimits.values();
  }

  /** Applies a new configuration, with bounds as in the options. An upstream that it no longer names stays until it is removed. */
  configure(upstreams: readonly UpstreamSettings[], maxLimits: number, maxQuotaClients = this.#maxQuotaClients): void {
    this.#perClientLimits.maxSize = maxLimits;
    this.#maxQuotaClients = maxQuotaClients;
    for (const settings of upstreams) {
      const known = this.#upstreams.get(settings.name);
      if (known === undefined) this.#upstreams.set(settings.name, this.#addUpstream(settings));
      else {
        known.reconfigure(settings);
        if (known.shared !== undefined) this.#applyOverrideTo(known.shared, known.override, NEVER);
      }
    }
    this.#options.sharingHooks?.onSettingsChanged?.();
  }

  /** Removes an upstream that no request uses any more. Its clients stay until they are evicted. */
  removeUpstream(name: string): void {
    const { sharingHooks } = this.#options;
    const upstream = this.#upstreams.get(name);
    upstream?.closeQuotas();
    for (const account of upstream?.accounts?.accounts ?? []) account.retireCredential();
    for (const limit of upstream?.limitsForAll() ?? []) sharingHooks?.onLimitForgotten(limit);
    this.#perClientLimits.removeIf(({ ref }) => ref.upstream === name);
    this.#upstreams.delete(name);
  }

  /** Removes unused limits whose scope has changed or whose name is no longer configured. Returns whether none is left. */
  sweep(): boolean {
    let remaining = 0;
    for (const upstream of this.#upstreams.values()) {
      const former = upstream.releaseFormerLimit();
      if (former !== undefined) this.#options.sharingHooks?.onLimitForgotten(former);
      else if (upstream.scope !== 'upstream' && upstream.shared !== undefined) remaining += 1;
      remaining += upstream.nested.sweep();
    }
    this.#perClientLimits.removeIf((limit) => {
      if (this.isConfigured(limit.ref)) return false;
      if (isLimitInUse(limit)) remaining += 1;
      return !isLimitInUse(limit);
    });
    return remaining === 0;
  }

  /** Restores what another process learned, as far as its limits are configured here. */
  restore({ limits, holds }: LearnedState, now: Millis): void {
    for (const learned of limits.filter(({ ref }) => this.isConfigured(ref))) {
      const { ref, rate, ceiling, concurrencyLimit } = learned;
      const { meter } = this.findLimit(ref) ?? this.findOrCreateLimit(ref);
      if (rate !== undefined) meter.resume?.(rate, ceiling ?? rate, now, concurrencyLimit);
      restoreStop(meter, learned, now);
    }
    for (const hold of holds) if (this.#upstreams.has(upstreamOfHold(hold))) this.applyHold(hold, now);
  }

  /** Whether the configuration has a limit of this name and scope, with keys if this one has any. */
  isConfigured(ref: LimitRef): boolean {
    return this.#upstreams.get(ref.upstream)?.isConfigured(ref) === true;
  }

  #entry(name: string): UpstreamState {
    const entry = this.#upstreams.get(name);
    if (entry === undefined) throw new Error(`no upstream is named '${name}'`);
    return entry;
  }

  #addUpstream(settings: UpstreamSettings): UpstreamState {
    return new UpstreamState(settings, {
      makeLimit: (ref, rate) => this.#makeLimit(ref, rate),
      makeConnectionQueue: (ref) => makeConnectionQueue(ref, this.#options.random),
      onLimitForgotten: (limit) => this.#options.sharingHooks?.onLimitForgotten(limit),
      accountSharing: shareAccounts(this.#options, settings.name),
      connections: this.#options.connections?.get(settings.name),
      quotas: { wallTimeAt: (now) => now, ...this.#options.quotas, maxClients: () => this.#maxQuotaClients },
    });
  }

  #makeLimit(ref: LimitRef, rate: RateSettings): Limit {
    const { makeMeter, random, sharingHooks } = this.#options;
    const limit = new Limit(ref, makeMeter?.(ref, rate, random) ?? new LocalMeter(rate, random));
    sharingHooks?.onLimitCreated(limit);
    return limit;
  }

  #applyOverrideTo(limit: Limit, override: OperatorOverride, now: Millis): void {
    if (this.#options.isPinnedElsewhere !== true) return limit.setOverride(override, now);
    limit.isPinnedElsewhere = override.pinnedRate !== undefined;
    limit.setOverride({ ...override, pinnedRate: undefined }, now);
  }
}

function upstreamOfHold({ client }: ClientHold): string {
  return client.slice(0, client.indexOf('\0'));
}
