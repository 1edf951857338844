import { ZERO_REQUEST_COUNTS } from '../../telemetry/metrics/request-counts.ts';
import { Timeline } from '../../telemetry/history/timeline.ts';
import { describeFailure } from '../../telemetry/describe-failure.ts';
import type { ClientsView, EndpointFailure, GateView, LimitView } from '../../core/events/gate-views.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { DeliveryInspection } from '../../core/delivery/delivery-store.ts';
import type { ClientQuotaInspection } from '../../core/quota/clients/client-quota-inspection.ts';
import type { KeyInspection } from '../../core/idempotency/key-inspection.ts';
import type { LimitScope } from '../../core/limits/limit-state.ts';
import type { QuotaView } from '../../core/quota/calendar/calendar-quota.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { LimitServer } from '../../sharing/workers/limit-server.ts';
import type {
  QueryResult,
  QueryResults,
  QueryInput,
  RequestMatches,
  ProcessApi,
  ProcessQueryName,
  ProcessGroup,
} from '../../admin/operations/process-api.ts';
import { nestedLimitViews, EMPTY_SUMMARY, summarizeLimits } from '../../admin/operations/limit-group-summary.ts';
import { WorkerDeliveryInspection } from './worker-delivery-inspection.ts';
import { WorkerClientQuotas } from './worker-client-quotas.ts';
import { WorkerKeyInspection } from './worker-key-inspection.ts';
import type { WorkerSupervisor } from './worker-supervisor.ts';

export interface PrimaryProcessApiParts {
  /** Called once the primary serves: events arrive before it exists. */
  readonly limitServer: () => LimitServer;
  readonly clock: Clock;
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  readonly scopeOf: (upstream: string) => LimitScope | undefined;
  readonly nestedLimitScopes: (upstream: string) => Iterable<readonly [name: string, scope: LimitScope]>;
  /** Of the quotas that the primary counts. */
  readonly quotaViews: () => readonly QuotaView[];
  /** The wake time of the limit server may have become earlier. */
  readonly rearm: () => void;
}

/** The primary has no clients of its own. */
const NO_CLIENTS: ClientsView = {
  tracked: 0,
  byState: { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
  allowance: { min: 1, mean: 1 },
};
/** What the primary contributes to the metrics. */
export function primaryGateView(limits: readonly LimitView[], quotas: readonly QuotaView[]): GateView {
  return { limits, clients: NO_CLIENTS, budgets: new Map(), ...(quotas.length === 0 ? {} : { quotas }) };
}

const NO_REQUESTS: RequestMatches = { ended: 0, requests: [] };

/** The primary as one process of the group: it knows the shared limits, and serves no requests. */
export class PrimaryProcessApi implements ProcessApi {
  readonly #parts: PrimaryProcessApiParts;
  readonly #timeline: Timeline;
  readonly #failures = new Map<string, EndpointFailure>();

  constructor(parts: PrimaryProcessApiParts) {
    this.#parts = parts;
    this.#timeline = new Timeline(parts.wallClock, this.failureOf);
  }

  /** A worker reports a failed attempt. */
  readonly onFailure = (upstream: string, failure: EndpointFailure): void => void this.#failures.set(upstream, failure);

  /** The last failure of an upstream, in words. */
  readonly failureOf = (upstream: string): string | undefined => {
    const failure = this.#failures.get(upstream);
    return failure && describeFailure(failure);
  };

  get listen(): Timeline['listen'] {
    return this.#timeline.listen;
  }

  view(): QueryResult<'view'> {
    const { limitServer, clock, scopeOf, nestedLimitScopes } = this.#parts;
    const now = clock.now();
    const quotas = Map.groupBy(this.#parts.quotaViews(), ({ upstream }) => upstream);
    const summaries = summarizeLimits(limitServer().limits(now), now, scopeOf);
    // An upstream whose clients have limits of their own may have none yet.
    const names = [...new Set([...summaries.keys(), ...quotas.keys()])];
    const upstreams = names.map((name) => {
      const summary = summaries.get(name);
      const { limits, mostCritical } = summary?.get('') ?? EMPTY_SUMMARY;
      return {
        name,
        scope: scopeOf(name) ?? 'upstream',
        limits,
        mostCritical: mostCritical?.view(now),
        // The workers report queues and requests in flight.
        nested: nestedLimitViews(summary, nestedLimitScopes(name), now).map((each) => ({
          ...each,
          queued: 0,
          inFlight: 0,
        })),
        quotas: quotas.get(name),
        ...NO_TRAFFIC,
      };
    });
    return {
      counts: ZERO_REQUEST_COUNTS,
      upstreams,
      endpoints: [],
      clients: NO_CLIENTS,
      troubled: [],
      isDegraded: false,
    };
  }

  /** The workers report them. */
  rates(): QueryResult<'rates'> {
    return [];
  }

  clients(): QueryResult<'clients'> {
    return { tracked: 0, matching: 0, clients: [] };
  }

  requests(): QueryResult<'requests'> {
    return NO_REQUESTS;
  }

  timeline({ since }: QueryInput<'timeline'>): QueryResult<'timeline'> {
    return this.#timeline.since(since);
  }

  explain(): undefined {
    return undefined;
  }

  applyOverride({ upstream, order }: QueryInput<'applyOverride'>): null {
    const { limitServer, clock, scopeOf, rearm } = this.#parts;
    if (scopeOf(upstream) === undefined) return null; // removed by a reload
    limitServer().applyOverride(upstream, order, clock.now());
    rearm();
    return null;
  }

  reset({ client }: QueryInput<'reset'>): readonly string[] {
    this.#parts.limitServer().resetClient(client);
    return [];
  }
}

const NO_TRAFFIC = {
  queued: 0,
  inFlight: 0,
  budget: 1,
  isBudgetSpent: false,
  lastFailure: undefined,
  refusals: { total: 0, clients: [] },
} as const;

/** The primary, as process 0, and its workers by their ids. */
export class ClusterProcessGroup implements ProcessGroup {
  /** If Redis has them. */
  readonly sharedKeys: KeyInspection;
  /** Undefined if Redis has none. */
  readonly sharedDeliveries: DeliveryInspection | undefined;
  /** Undefined if the primary counts them. */
  readonly sharedClientQuotas: ClientQuotaInspection | undefined;
  readonly #own: ProcessApi;
  readonly #workers: WorkerSupervisor;

  constructor(own: ProcessApi, workers: WorkerSupervisor, { state, secret }: Pick<Config, 'state' | 'secret'>) {
    this.#own = own;
    this.#workers = workers;
    this.sharedKeys = new WorkerKeyInspection(workers.queries);
    this.sharedClientQuotas = state.store === 'redis' ? new WorkerClientQuotas(workers.queries) : undefined;
    const hasDeliveries = state.store === 'redis' && secret !== undefined;
    this.sharedDeliveries = hasDeliveries ? new WorkerDeliveryInspection(workers.queries) : undefined;
  }

  async query<K extends ProcessQueryName>(
    name: K,
    inputOf: (processId: number) => QueryInput<K>,
  ): Promise<QueryResults<K>> {
    // The primary first: its decisions reach the workers over the same channel, before their query.
    const own = await this.#own[name](inputOf(0));
    const results = await this.#workers.queries.ask(name, inputOf);
    return new Map([[0, own], ...results]);
  }
}
