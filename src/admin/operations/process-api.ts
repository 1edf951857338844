import type { Explanation } from '../../telemetry/explanations/build-explanation.ts';
import type { EndedRequest, RequestQuery } from '../../telemetry/history/recent-requests.ts';
import type { Counts } from '../../telemetry/metrics/request-counts.ts';
import type { Moment } from '../../telemetry/history/timeline.ts';
import type { ClientsView, ClientState, EndpointView, LimitView, Scope } from '../../core/events/proxy-events.ts';
import type { Order } from '../../core/limits/operator-override.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { ClientQuery, Rank } from '../../store/clients/client-search.ts';

/**
 * What one process can be asked about itself, and told to do. Questions and answers are plain data: they cross from a primary to its
 * workers as they are. Times are of the monotonic clock that all of them read, where nothing else is said.
 */
export interface Dialogue {
  readonly look: { readonly asks: LookQuestion; readonly tells: Look };
  readonly clients: { readonly asks: ClientQuery & { readonly at: Millis }; readonly tells: ClientsFound };
  readonly requests: { readonly asks: RequestQuery; readonly tells: RequestsFound };
  /** Those that are new, or have changed. */
  readonly moments: { readonly asks: { readonly since: number }; readonly tells: readonly Moment[] };
  /** The story of a request; undefined where it is not known here. */
  readonly explain: { readonly asks: { readonly id: string }; readonly tells: Explanation | undefined };
  readonly steer: { readonly asks: UpstreamOrder; readonly tells: null };
  /** The upstreams at which the client was known. */
  readonly reset: { readonly asks: { readonly client: string }; readonly tells: readonly string[] };
}

/** An operator's word on the limits of an upstream. */
export interface UpstreamOrder {
  readonly upstream: string;
  readonly order: Order;
}

export type StationName = keyof Dialogue;
export type QuestionTo<K extends StationName> = Dialogue[K]['asks'];
export type AnswerOf<K extends StationName> = Dialogue[K]['tells'];
export type Answers<K extends StationName> = ReadonlyMap<number, AnswerOf<K>>;

export type Station = {
  readonly [K in StationName]: (question: QuestionTo<K>) => AnswerOf<K> | Promise<AnswerOf<K>>;
};

export interface LookQuestion {
  /** How many of the clients in most trouble are told. */
  readonly clients: number;
}

export interface Look {
  readonly counts: Counts;
  readonly upstreams: readonly UpstreamLook[];
  readonly endpoints: readonly EndpointView[];
  readonly clients: ClientsView;
  readonly troubled: readonly ClientLook[];
  /** The store that is shared does not answer. */
  readonly isDegraded: boolean;
}

/** The limits of one upstream. */
export interface UpstreamLook {
  readonly name: string;
  readonly scope: Scope;
  /** Limits in force. */
  readonly limits: number;
  /** The one nearest to trouble; undefined where none has been felt. */
  readonly nearest: LimitView | undefined;
  readonly queued: number;
  readonly inFlight: number;
  /** Retry budget left as a share of its burst. */
  readonly budget: number;
  /** In the order in which requests stand under them. */
  readonly nested: readonly NestedLook[];
}

/** The nested limits of one name, or that of a class of clients. */
export interface NestedLook {
  readonly name: string;
  readonly scope: Scope;
  readonly limits: number;
  readonly nearest: LimitView | undefined;
  readonly queued: number;
  readonly inFlight: number;
}

export interface ClientLook {
  readonly rank: Rank;
  readonly upstream: string;
  /** Its hash. */
  readonly key: string;
  readonly state: ClientState;
  readonly allowance: number;
  readonly demand: PerSecond;
  /** What it has of the rate while others ask too; undefined where nothing limits, or that is not known. */
  readonly share: PerSecond | undefined;
  readonly queued: number;
  /** Each −Infinity where there is none. */
  readonly heldUntil: Millis;
  readonly nextSlot: Millis;
  readonly calmAt: Millis;
  readonly lastSeen: Millis;
}

export interface ClientsFound {
  readonly tracked: number;
  readonly matching: number;
  readonly clients: readonly ClientLook[];
}

export interface RequestsFound {
  /** How many have ended here in all. */
  readonly ended: number;
  readonly requests: readonly EndedRequest[];
}

/** The stations of all processes, by number: 0 is that of a process of its own, or of a primary. */
export interface Stations {
  /** Asks each of them what is to be asked of it, and returns the answers of those that answer in time. */
  ask<K extends StationName>(name: K, question: (station: number) => QuestionTo<K>): Promise<Answers<K>>;
}
