import type { Explanation } from '../../telemetry/explanations/build-explanation.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Draining, ResetClient, SteeredUpstream } from './action-schemas.ts';
import type { ClientsQuery, RequestsQuery } from './query-schemas.ts';
import type {
  ClientsPage,
  RequestsPage,
  Status,
  StatusFrame,
  RequestsFrame,
  TimelineEvent,
} from './response-schemas.ts';

/** What operators can see and do, be it one process or several. */
export interface Operations {
  /** Takes a second where nobody has looked for a minute: rates are of the time since the last look. */
  status(): Promise<Status>;
  /** Undefined where the cursor is none of ours. */
  clients(query: ClientsQuery): Promise<ClientsPage | undefined>;
  requests(query: RequestsQuery): Promise<RequestsPage | undefined>;
  /** Newest first. */
  timeline(limit: number): Promise<readonly TimelineEvent[]>;
  /** As one would write it, without secrets. */
  config(): Readonly<Record<string, unknown>>;
  /** The story of a request; undefined where it is not known any more, or never was. */
  explain(id: string): Promise<Explanation | undefined>;
  /** @param by where who says so is, for the log */
  steer(upstream: string, command: Command, by: string): Promise<Done<SteeredUpstream>>;
  /** A client begins anew: what it was told, and what its allowance had fallen to, is forgotten. */
  reset(client: string, by: string): Promise<Done<ResetClient>>;
  /** As on SIGTERM. */
  drain(by: string): Draining;
  /** Whether this would do as a configuration. */
  validate(text: string): Validation;
  /** For who watches: what is new since the last frame. Costs nothing while nobody does. */
  watch(): Watch;
}

export type Command =
  | { readonly do: 'pin'; readonly rate: PerSecond }
  | { readonly do: 'unpin' | 'unblock' }
  /** For `time`, or until it is unblocked. */
  | { readonly do: 'block'; readonly time: Millis | undefined };

export type Done<T> =
  | { readonly kind: 'done'; readonly row: T }
  /** There is none of this name. */
  | { readonly kind: 'unknown'; readonly nearest: string | undefined }
  /** In a sentence. */
  | { readonly kind: 'refused'; readonly why: string };

export type Validation =
  | { readonly kind: 'valid'; readonly warnings: readonly string[] }
  | { readonly kind: 'mistakes'; readonly mistakes: readonly { readonly place: string; readonly message: string }[] };

/** Somebody watches. */
export interface Watch {
  /** To be asked for twice a second; the status is in every other. */
  frame(): Promise<Frame>;
}

export interface Frame {
  readonly status?: StatusFrame;
  /** Oldest first. */
  readonly moments: readonly TimelineEvent[];
  readonly requests?: RequestsFrame;
}
