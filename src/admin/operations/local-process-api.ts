import type { Explanation } from '../../telemetry/explanations/build-explanation.ts';
import { ZERO_UPSTREAM_COUNTS } from '../../telemetry/metrics/request-counts.ts';
import type { RequestCounts } from '../../telemetry/metrics/request-counts.ts';
import type { RecentRequestsQuery } from '../../telemetry/history/recent-requests.ts';
import { RecentRequests } from '../../telemetry/history/recent-requests.ts';
import type { TimelineEntry } from '../../telemetry/history/timeline.ts';
import { describeFailure } from '../../telemetry/describe-failure.ts';
import { Timeline } from '../../telemetry/history/timeline.ts';
import type { EndpointFailure, EndpointView } from '../../core/events/gate-views.ts';
import { readAccountViews } from '../../core/events/read-gate-view.ts';
import type { ProxyEvent } from '../../core/events/proxy-events.ts';
import type { Gate } from '../../core/admission/gate.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { ClientQuery } from '../../store/clients/client-search.ts';
import { ClientSearch } from '../../store/clients/client-search.ts';
import type { MemoryStore } from '../../store/memory-store.ts';
import { ClientViews } from './client-views.ts';
import { LastFailures } from './last-failures.ts';
import { nestedLimitViews, EMPTY_SUMMARY, overrideView, summarizeLimits } from './limit-group-summary.ts';
import type {
  ClientMatches,
  ProcessView,
  ViewQuery,
  QueryInput,
  RequestMatches,
  ProcessApi,
  UpstreamProcessView,
  UpstreamRates,
} from './process-api.ts';

export interface LocalProcessApiParts {
  /** This and `store` are called once the process serves: events arrive before they exist. */
  readonly gate: () => Gate;
  readonly store: () => MemoryStore;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => Millis;
  readonly counts: () => RequestCounts;
  readonly endpoints: () => readonly EndpointView[];
  /** Re-evaluates the queue of a limit whose tokens have changed. */
  readonly onTokensSupplied: (limit: Limit, now: Millis) => void;
  /** Finds the explanation of a request; no explanations when absent. */
  readonly explain?: ((id: string) => Explanation | undefined) | undefined;
  /** Whether all clients have the same weight. Otherwise the share of a client is unknown here. */
  readonly haveEqualWeights: () => boolean;
  /** See `LastFailures`. */
  readonly onFailure?: ((upstream: string, failure: EndpointFailure) => void) | undefined;
}

/** Clients that are searched before the event loop gets its turn. */
const SEARCH_STEP = 10_000;
/** Clients in the normal state that are searched for the highest demand. */
const NORMAL_CLIENTS_SCANNED = 20_000;

/** The process API of a process that serves. */
export class LocalProcessApi implements ProcessApi {
  readonly #parts: LocalProcessApiParts;
  readonly #timeline: Timeline;
  readonly #requests: RecentRequests;
  readonly #failures: LastFailures;
  readonly #clients: ClientViews;
  #isDegraded = false;
  #storeProblem: string | undefined;

  constructor(parts: LocalProcessApiParts) {
    this.#parts = parts;
    this.#failures = new LastFailures(parts.clock, parts.onFailure);
    this.#clients = new ClientViews(parts.store, parts.haveEqualWeights);
    this.#timeline = new Timeline(parts.wallClock, this.failureOf);
    this.#requests = new RecentRequests(parts.wallClock);
  }

  readonly listen = (event: ProxyEvent): void => {
    if (event.type === 'done') {
      this.#requests.listen(event);
      return this.#clients.onDone(event.record, this.#parts.clock.now());
    }
    if (event.type === 'attempt') return this.#failures.onAttempt(event);
    if (event.type === 'store-degraded') {
      this.#isDegraded = event.isDegraded;
      this.#storeProblem = event.cause;
    }
    this.#timeline.listen(event);
  };

  /** The last failure of an upstream, in words; undefined if there was none. */
  readonly failureOf = (upstream: string): string | undefined => {
    const failure = this.#failures.of(upstream);
    return failure && describeFailure(failure);
  };

  view({ maxClients }: ViewQuery): ProcessView {
    const { clock, counts, endpoints } = this.#parts;
    const store = this.#parts.store();
    const now = clock.now();
    const search =
      maxClients === 0
        ? undefined
        : new ClientSearch(store.clients, { limit: maxClients }, now, this.#clients.names).run(NORMAL_CLIENTS_SCANNED);
    return {
      counts: counts(),
      upstreams: this.#upstreamViews(now),
      endpoints: endpoints(),
      clients: store.clients.view(now),
      troubled: search?.found.map((rank) => this.#clients.view(rank, now)) ?? [],
      clientStates: this.#clients.states(now),
      isDegraded: this.#isDegraded,
      storeProblem: this.#storeProblem,
    };
  }

  async clients({ at, ...query }: ClientQuery & { readonly at: Millis }): Promise<ClientMatches> {
    const store = this.#parts.store();
    const search = new ClientSearch(store.clients, query, at, this.#clients.names);
    while (search.step(SEARCH_STEP)) await new Promise(setImmediate);
    const clients = search.found.map((rank) => this.#clients.view(rank, this.#parts.clock.now()));
    return { tracked: store.clients.tracked, matching: search.matching, clients };
  }

  requests(query: RecentRequestsQuery): RequestMatches {
    return { ended: this.#requests.count, requests: this.#requests.recent(query) };
  }

  timeline({ since }: { readonly since: number }): readonly TimelineEntry[] {
    return this.#timeline.since(since);
  }

  rates(): readonly UpstreamRates[] {
    const { clock, counts } = this.#parts;
    const store = this.#parts.store();
    const now = clock.now();
    const { upstreams } = counts();
    return [...store.upstreams()].map(({ name }) => {
      const { sent, throttled, failed } = upstreams.get(name) ?? ZERO_UPSTREAM_COUNTS;
      const scope = store.scopeOf(name);
      const limit =
        scope === 'upstream' ? store.findLimit({ upstream: name, nested: '', scope, key: '' })?.view(now) : undefined;
      const rate = limit?.state === 'blocked' ? 0 : limit?.rate;
      return {
        name,
        sent,
        throttled,
        failed,
        failure: this.#failures.of(name),
        rate: finite(rate),
        ceiling: finite(limit?.ceiling),
      };
    });
  }

  explain({ id }: QueryInput<'explain'>): Explanation | undefined {
    return this.#parts.explain?.(id);
  }

  /** Ignores an unknown upstream: during a reload, processes add and remove upstreams at different times. */
  applyOverride({ upstream, order }: QueryInput<'applyOverride'>): null {
    const { clock, onTokensSupplied } = this.#parts;
    const store = this.#parts.store();
    if (!store.has(upstream)) return null;
    const now = clock.now();
    for (const limit of store.applyOverride(upstream, order, now)) onTokensSupplied(limit, now);
    return null;
  }

  reset({ client }: QueryInput<'reset'>): readonly string[] {
    const { clock, onTokensSupplied } = this.#parts;
    const store = this.#parts.store();
    const now = clock.now();
    const known: string[] = [];
    for (const { name } of store.upstreams()) {
      const slot = store.clients.find(name, client);
      if (slot === undefined) continue;
      store.clients.resetClient(slot, now);
      known.push(name);
      for (const { ref, clientHolds, returnPromises } of store.limits()) {
        if (ref.upstream !== name) continue;
        clientHolds?.clearClient(client);
        returnPromises?.delete(client);
      }
      const limit = store.clientLimit(name, client);
      if (limit === undefined || limit.ref.scope !== 'client') continue;
      limit.meter.probeNow?.(now);
      onTokensSupplied(limit, now);
    }
    return known;
  }

  #upstreamViews(now: Millis): UpstreamProcessView[] {
    const store = this.#parts.store();
    const summaries = summarizeLimits(this.#parts.gate().limits(now), now, (upstream) => store.scopeOf(upstream));
    return [...store.upstreams()].map((upstream): UpstreamProcessView => {
      const { name, queueOccupancy, retryBudget, connectionSlots, quotas, accounts } = upstream;
      const summary = summaries.get(name);
      const { limits, mostCritical, inFlight } = summary?.get('') ?? EMPTY_SUMMARY;
      const scope = store.scopeOf(name) ?? 'upstream';
      // With a limit per client, requests of clients without a limit are in flight too.
      const totalInFlight = (scope === 'upstream' ? undefined : connectionSlots?.active) ?? inFlight;
      const overridden = overrideView({ upstream: name, nested: '', scope, key: '' }, store.overrideOf(name), now);
      return {
        name,
        scope,
        limits,
        mostCritical: mostCritical?.view(now) ?? overridden,
        queued: queueOccupancy.size,
        inFlight: totalInFlight,
        budget: retryBudget.left,
        isBudgetSpent: retryBudget.isSpent,
        lastFailure: this.#failures.of(name),
        refusals: this.#clients.refusals(name, now),
        nested: nestedLimitViews(summary, store.nestedLimitScopes(name), now),
        quotas: quotas?.views(now),
        accounts: accounts && readAccountViews(name, accounts, (key) => store.accountLimit(name, key)?.view(now).rate),
      };
    });
  }
}

function finite(value: number | undefined): number | undefined {
  return Number.isFinite(value) ? value : undefined;
}
