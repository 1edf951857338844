import type { Explanation } from '../../telemetry/explanations/build-explanation.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type {
  ClientQuotasResponse,
  ClientResetResponse,
  DrainResponse,
  QuotasResetResponse,
  UpstreamActionResponse,
} from './action-schemas.ts';
import type { ChangedDelivery, DeliveriesPage, DeliveryDetails } from './delivery-schemas.ts';
import type { ForgottenKey, KeyRow, KeysPage } from './key-schemas.ts';
import type {
  ClientsQuery,
  DeliveriesQuery,
  DeliveryQuery,
  KeysQuery,
  RequestsQuery,
  TimelineQuery,
} from './query-schemas.ts';
import type { History } from './upstream-schemas.ts';
import type {
  ClientsPage,
  RequestsPage,
  ProcessStatus,
  StatusFrame,
  RequestsFrame,
  TimelineEvent,
} from './response-schemas.ts';

/** The operations behind the admin API, for one process or several. */
export interface AdminOperations {
  /** Rates cover the time since the previous call. After a minute without a call, this one takes a second to measure them. */
  status(): Promise<ProcessStatus>;
  /** Most restricted first. Undefined if the cursor is invalid. */
  clients(query: ClientsQuery): Promise<ClientsPage | undefined>;
  /** Newest first. Undefined if the cursor is invalid. */
  requests(query: RequestsQuery): Promise<RequestsPage | undefined>;
  /** Newest first. */
  timeline(query: TimelineQuery): Promise<readonly TimelineEvent[]>;
  /** Adds a sample to the history. To be called each second. */
  sampleRates(): Promise<void>;
  /** The rates of the last hour. */
  history(): History;
  /** The effective configuration, without secrets. */
  config(): Readonly<Record<string, unknown>>;
  /** The explanation of a request; undefined if it is not recorded. */
  explain(id: string): Promise<Explanation | undefined>;
  /** @param by address of the operator, for the log */
  overrideUpstream(
    upstream: string,
    command: OverrideCommand,
    by: string,
  ): Promise<ActionResult<UpstreamActionResponse>>;
  /** Clears the hold, the reserved slot and the reduced allowance of a client. */
  reset(client: string, by: string): Promise<ActionResult<ClientResetResponse>>;
  readonly clientQuotas: ClientQuotaActions;
  keys(query: KeysQuery): Promise<ActionResult<KeysPage>>;
  /** A write with an idempotency key, by its id. */
  key(id: string): Promise<ActionResult<KeyRow>>;
  /** Forgets a write with an idempotency key. */
  forgetKey(id: string, by: string): Promise<ActionResult<ForgottenKey>>;
  readonly deliveries: DeliveryActions;
  /** As on SIGTERM. */
  drain(by: string): DrainResponse;
  /** Validates a configuration without applying it. */
  validate(text: string): ValidationReport;
  /** Returns a source of frames for the event stream. It costs nothing until its first frame. */
  watch(): FrameSource;
}

/** The stored deliveries. */
export interface DeliveryActions {
  /** In the order of acceptance. */
  list(query: DeliveriesQuery): Promise<ActionResult<DeliveriesPage>>;
  find(id: string, query: DeliveryQuery): Promise<ActionResult<DeliveryDetails>>;
  /** Makes a dead, canceled, unknown or waiting delivery due now, with a new schedule. @param by address of the operator, for the log */
  retry(id: string, by: string): Promise<ActionResult<ChangedDelivery>>;
  /** Ends a delivery that waits. */
  cancel(id: string, by: string): Promise<ActionResult<ChangedDelivery>>;
}

/** What a client has used of its own quotas. It is given by its key, or by the name that it has proven. */
export interface ClientQuotaActions {
  find(client: string): Promise<ActionResult<ClientQuotasResponse>>;
  /** Counts its requests from 0 on. @param by address of the operator, for the log */
  reset(client: string, by: string): Promise<ActionResult<QuotasResetResponse>>;
}

export type OverrideCommand =
  | { readonly do: 'pin'; readonly rate: PerSecond }
  | { readonly do: 'unpin' | 'unblock' }
  /** For `time`; undefined: until unblocked. */
  | { readonly do: 'block'; readonly time: Millis | undefined };

export type ActionResult<T> =
  | { readonly kind: 'done'; readonly row: T }
  /** Nothing has this name. */
  | { readonly kind: 'unknown'; readonly nearest: string | undefined }
  /** This process has nothing of this kind. */
  | { readonly kind: 'absent'; readonly why: string }
  /** `why` is a sentence. */
  | { readonly kind: 'refused'; readonly why: string }
  /** It cannot be done completely now. */
  | { readonly kind: 'unavailable'; readonly why: string };

export type ValidationReport =
  | { readonly kind: 'valid'; readonly warnings: readonly string[] }
  | { readonly kind: 'mistakes'; readonly mistakes: readonly { readonly place: string; readonly message: string }[] };

/** Produces the frames of the event stream. */
export interface FrameSource {
  /** To be called twice a second. Every second frame contains the status. */
  nextFrame(): Promise<EventFrame>;
}

export interface EventFrame {
  readonly status?: StatusFrame;
  /** Oldest first. */
  readonly timelineEvents: readonly TimelineEvent[];
  readonly requests?: RequestsFrame;
}
