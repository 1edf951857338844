import type { Explanation } from '../../telemetry/explanations/build-explanation.ts';
import type { Counts } from '../../telemetry/metrics/request-counts.ts';
import type { RequestQuery } from '../../telemetry/history/recent-requests.ts';
import { RecentRequests } from '../../telemetry/history/recent-requests.ts';
import type { Moment } from '../../telemetry/history/timeline.ts';
import { Timeline } from '../../telemetry/history/timeline.ts';
import type { EndpointView, TideEvent } from '../../core/events/proxy-events.ts';
import type { Gate } from '../../core/admission/gate.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { Upstream } from '../../core/admission/gate-store.ts';
import type { Clock, Millis } from '../../core/exchange/attempt-outcome.ts';
import type { ClientQuery, Rank } from '../../store/clients/client-search.ts';
import { ClientSearch } from '../../store/clients/client-search.ts';
import type { MemoryStore } from '../../store/memory-store.ts';
import { lookAtNested, NOTHING_FELT, steeredView, surveyLimits } from './limit-group-summary.ts';
import type {
  ClientLook,
  ClientsFound,
  Look,
  LookQuestion,
  QuestionTo,
  RequestsFound,
  Station,
  UpstreamLook,
} from './process-api.ts';

export interface OwnStationParts {
  readonly gate: Gate;
  readonly store: MemoryStore;
  readonly clock: Clock;
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  readonly counts: () => Counts;
  readonly endpoints: () => readonly EndpointView[];
  /** Who waits at a limit may go now, or has to wait on. */
  readonly supply: (limit: Limit, now: Millis) => void;
  /** The stories of requests; none when absent. */
  readonly explain?: ((id: string) => Explanation | undefined) | undefined;
  /** Whether all clients have one weight: else nobody here knows what the share of one is. */
  readonly areEqual: () => boolean;
}

/** Clients that are looked at in one go; while so many are, nothing else happens in this process. */
const AT_A_TIME = 10_000;
/** Of those that are calm, so many are looked at for who asks for most. */
const CALM_LOOKED_AT = 20_000;

/** The station of a process that serves. */
export class OwnStation implements Station {
  readonly #parts: OwnStationParts;
  readonly #timeline: Timeline;
  readonly #requests: RecentRequests;
  #isDegraded = false;

  constructor(parts: OwnStationParts) {
    this.#parts = parts;
    this.#timeline = new Timeline(parts.wallClock);
    this.#requests = new RecentRequests(parts.wallClock);
  }

  readonly listen = (event: TideEvent): void => {
    if (event.type === 'done') return this.#requests.listen(event);
    if (event.type === 'store-degraded') this.#isDegraded = event.isDegraded;
    this.#timeline.listen(event);
  };

  look({ clients: most }: LookQuestion): Look {
    const { store, clock, counts, endpoints } = this.#parts;
    const now = clock.now();
    const search = most === 0 ? undefined : new ClientSearch(store.clients, { limit: most }, now).run(CALM_LOOKED_AT);
    return {
      counts: counts(),
      upstreams: this.#survey(now),
      endpoints: endpoints(),
      clients: store.clients.view(now),
      troubled: search?.found.map((rank) => this.#describe(rank, now)) ?? [],
      isDegraded: this.#isDegraded,
    };
  }

  async clients({ at, ...query }: ClientQuery & { readonly at: Millis }): Promise<ClientsFound> {
    const { store } = this.#parts;
    const search = new ClientSearch(store.clients, query, at);
    while (search.step(AT_A_TIME)) await new Promise(setImmediate);
    const clients = search.found.map((rank) => this.#describe(rank, this.#parts.clock.now()));
    return { tracked: store.clients.tracked, matching: search.matching, clients };
  }

  requests(query: RequestQuery): RequestsFound {
    return { ended: this.#requests.count, requests: this.#requests.recent(query) };
  }

  moments({ since }: { readonly since: number }): readonly Moment[] {
    return this.#timeline.since(since);
  }

  explain({ id }: QuestionTo<'explain'>): Explanation | undefined {
    return this.#parts.explain?.(id);
  }

  /** Of several processes, one may have lost an upstream already that another still has, or not have heard of it yet. */
  steer({ upstream, order }: QuestionTo<'steer'>): null {
    const { store, clock, supply } = this.#parts;
    if (!store.has(upstream)) return null;
    const now = clock.now();
    for (const limit of store.steer(upstream, order, now)) supply(limit, now);
    return null;
  }

  reset({ client }: QuestionTo<'reset'>): readonly string[] {
    const { store, clock, supply } = this.#parts;
    const now = clock.now();
    const known: string[] = [];
    for (const { name } of store.upstreams()) {
      if (!store.clients.forgive(name, client, now)) continue;
      known.push(name);
      for (const { ref, holds } of store.limits()) if (ref.upstream === name) holds?.forgive(client);
      const limit = store.limitOf(name, client);
      if (limit === undefined || limit.ref.scope !== 'client') continue;
      limit.meter.probeNow?.(now);
      supply(limit, now);
    }
    return known;
  }

  #survey(now: Millis): UpstreamLook[] {
    const { gate, store } = this.#parts;
    const surveys = surveyLimits(gate.limits(now), now, (upstream) => store.scopeOf(upstream));
    return [...store.upstreams()].map(({ name, backlog, budget, room }): UpstreamLook => {
      const survey = surveys.get(name);
      const { limits, nearest, inFlight } = survey?.get('') ?? NOTHING_FELT;
      const scope = store.scopeOf(name) ?? 'upstream';
      // Where limits are of clients, those that have none are under way too.
      const underWay = (scope === 'upstream' ? undefined : room?.underWay) ?? inFlight;
      const asSteered = steeredView({ upstream: name, nested: '', scope, key: '' }, store.steeringOf(name), now);
      return {
        name,
        scope,
        limits,
        nearest: nearest?.view(now) ?? asSteered,
        queued: backlog.size,
        inFlight: underWay,
        budget: budget.left,
        nested: lookAtNested(survey, store.nestedAt(name), now),
      };
    });
  }

  #describe(rank: Rank, now: Millis): ClientLook {
    const { store, areEqual } = this.#parts;
    const { clients } = store;
    const { slot } = rank;
    const [upstream, key] = clients.nameOf(slot);
    const limit = store.limitOf(upstream, key);
    const { room, activity } = store.scopeOf(upstream) === undefined ? NO_UPSTREAM : store.upstream(upstream);
    const waiting = room === undefined || room.line === limit ? 0 : room.line.queue.backlog(slot);
    const rate = limit?.meter.rate(now) ?? Number.POSITIVE_INFINITY;
    const among = limit?.ref.scope === 'upstream' ? (activity?.clients(now) ?? 1) : 1;
    return {
      rank,
      upstream,
      key,
      state: clients.stateAt(slot, now),
      allowance: clients.allowance(slot, now),
      demand: clients.demand(slot, now),
      share: Number.isFinite(rate) && areEqual() ? rate / among : undefined,
      queued: (limit?.queue.backlog(slot) ?? 0) + waiting,
      heldUntil: clients.heldUntil(slot),
      nextSlot: clients.promised(slot),
      calmAt: clients.calmAt(slot),
      lastSeen: clients.arrivedAt(slot),
    };
  }
}

/** Of one that a reload has taken away. */
const NO_UPSTREAM: Partial<Upstream> = {};
