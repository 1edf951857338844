import type { Explanation } from '../../telemetry/explanations/build-explanation.ts';
import type { EndedRequest, RecentRequestsQuery } from '../../telemetry/history/recent-requests.ts';
import type { RequestCounts } from '../../telemetry/metrics/request-counts.ts';
import type { TimelineEntry } from '../../telemetry/history/timeline.ts';
import type {
  AccountView,
  ClientsView,
  EndpointFailure,
  EndpointView,
  LimitView,
} from '../../core/events/gate-views.ts';
import type { ClientState } from '../../core/events/event-labels.ts';
import type { LimitScope } from '../../core/limits/limit-state.ts';
import type { QuotaView } from '../../core/quota/calendar/calendar-quota.ts';
import type { OverrideChange } from '../../core/limits/operator-override.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { ClientQuery, ClientRank } from '../../store/clients/client-search.ts';

/**
 * The queries that one process answers about itself. Inputs and results are plain data, because they pass between a primary and
 * its workers. Unless stated otherwise, times are of the monotonic clock, which all processes share.
 */
export interface ProcessQueries {
  readonly view: { readonly input: ViewQuery; readonly result: ProcessView };
  readonly clients: { readonly input: ClientQuery & { readonly at: Millis }; readonly result: ClientMatches };
  readonly requests: { readonly input: RecentRequestsQuery; readonly result: RequestMatches };
  /** Timeline entries that are new or have changed. */
  readonly timeline: { readonly input: { readonly since: number }; readonly result: readonly TimelineEntry[] };
  /** The counters of each upstream and its own limit; cheap, whatever the number of clients. */
  readonly rates: { readonly input: null; readonly result: readonly UpstreamRates[] };
  /** The explanation of a request; undefined if it is not recorded here. */
  readonly explain: { readonly input: { readonly id: string }; readonly result: Explanation | undefined };
  readonly applyOverride: { readonly input: UpstreamOverride; readonly result: null };
  /** The upstreams at which the client was known. */
  readonly reset: { readonly input: { readonly client: string }; readonly result: readonly string[] };
}

/** An operator's override of the limits of an upstream. */
export interface UpstreamOverride {
  readonly upstream: string;
  readonly order: OverrideChange;
}

export type ProcessQueryName = keyof ProcessQueries;
export type QueryInput<K extends ProcessQueryName> = ProcessQueries[K]['input'];
export type QueryResult<K extends ProcessQueryName> = ProcessQueries[K]['result'];
export type QueryResults<K extends ProcessQueryName> = ReadonlyMap<number, QueryResult<K>>;

export type ProcessApi = {
  readonly [K in ProcessQueryName]: (input: QueryInput<K>) => QueryResult<K> | Promise<QueryResult<K>>;
};

export interface ViewQuery {
  /** Maximum number of clients in the view, most restricted first. */
  readonly maxClients: number;
}

export interface ProcessView {
  readonly counts: RequestCounts;
  readonly upstreams: readonly UpstreamProcessView[];
  readonly endpoints: readonly EndpointView[];
  readonly clients: ClientsView;
  readonly troubled: readonly ClientView[];
  /** All clients, to count those that several processes know once; undefined if they are too many to list. */
  readonly clientStates?: readonly ClientStateView[] | undefined;
  /** The shared store is not responding. */
  readonly isDegraded: boolean;
  /** Why it is not responding. */
  readonly storeProblem?: string | undefined;
}

/** The counters of one upstream since the start, and the rate of its own limit. */
export interface UpstreamRates {
  readonly name: string;
  readonly sent: number;
  readonly throttled: number;
  readonly failed: number;
  /** The last failed attempt; undefined if none has failed. */
  readonly failure: EndpointFailure | undefined;
  /** 0 while blocked; undefined without a limit for all clients. */
  readonly rate: PerSecond | undefined;
  readonly ceiling: PerSecond | undefined;
}

/** The limits of one upstream. */
export interface UpstreamProcessView {
  readonly name: string;
  readonly scope: LimitScope;
  /** Limits in force. */
  readonly limits: number;
  /** The most critical limit; undefined if none exists yet. */
  readonly mostCritical: LimitView | undefined;
  readonly queued: number;
  readonly inFlight: number;
  /** Retry budget left as a share of its burst. */
  readonly budget: number;
  /** The retry budget does not pay for one more retry. */
  readonly isBudgetSpent: boolean;
  /** The last failed attempt, whether or not others have succeeded since; undefined if none has failed. */
  readonly lastFailure: EndpointFailure | undefined;
  readonly refusals: RefusalsView;
  /** Outermost first. */
  readonly nested: readonly NestedLimitView[];
  /** Configured quotas, in the process that counts them; absent or empty elsewhere. */
  readonly quotas?: readonly QuotaView[] | undefined;
  /** In the configured order; absent if clients use their own credentials. */
  readonly accounts?: readonly AccountView[] | undefined;
}

/** The nested limits of one name, or the limit of a client class. */
export interface NestedLimitView {
  readonly name: string;
  readonly scope: LimitScope;
  readonly limits: number;
  readonly mostCritical: LimitView | undefined;
  readonly queued: number;
  readonly inFlight: number;
}

/** The refusals of the last five to ten seconds. */
export interface RefusalsView {
  readonly total: number;
  /** Only clients with many of them: see `RefusedClients`. */
  readonly clients: readonly RefusedClientView[];
}

export interface RefusedClientView extends Pick<ClientView, 'key' | 'name' | 'demand' | 'share' | 'heldUntil'> {
  readonly count: number;
}

export interface ClientView {
  readonly rank: ClientRank;
  readonly upstream: string;
  /** Hash of the client key. */
  readonly key: string;
  /** In the configuration; undefined if it has none. */
  readonly name: string | undefined;
  readonly state: ClientState;
  readonly allowance: number;
  readonly demand: PerSecond;
  /** Its part of the rate while others send too; undefined if there is no limit or if the part is unknown. */
  readonly share: PerSecond | undefined;
  readonly queued: number;
  /** These times are −Infinity if there is none. */
  readonly heldUntil: Millis;
  readonly nextSlot: Millis;
  readonly calmAt: Millis;
  readonly lastSeen: Millis;
}

export type ClientStateView = readonly [upstream: string, key: string, state: ClientState];

export interface ClientMatches {
  readonly tracked: number;
  readonly matching: number;
  readonly clients: readonly ClientView[];
}

export interface RequestMatches {
  /** Number of requests that have ended in this process. */
  readonly ended: number;
  readonly requests: readonly EndedRequest[];
}

/** The processes by number: 0 is a single process, or the primary of several workers. */
export interface ProcessGroup {
  /** Queries every process, and returns the results of those that respond in time. */
  query<K extends ProcessQueryName>(name: K, input: (process: number) => QueryInput<K>): Promise<QueryResults<K>>;
}
