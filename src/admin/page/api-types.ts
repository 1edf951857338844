/** Types of the admin API as the page and `tidegate top` read it. Times are ISO 8601 in UTC; null means unknown or unlimited. */
import type {
  ClientRow,
  RequestRow,
  RequestsFrame,
  ProcessStatus,
  StatusFrame,
  TimelineEvent,
} from '../api/response-schemas.ts';
import type { NestedLimitStatus, UpstreamStatus } from '../api/upstream-schemas.ts';

export type { ClientsPage, ExplanationResponse, RequestsPage, TimelinePageSchema } from '../api/response-schemas.ts';
export type {
  ChangedDelivery,
  DeliveriesPage,
  DeliveryContent,
  DeliveryDetails,
  DeliveryRow,
  StoredDeliveries,
} from '../api/delivery-schemas.ts';
export type { ClientQuotasResponse as ClientQuotas } from '../api/action-schemas.ts';
export type { ForgottenKey, KeyRow, KeysPage } from '../api/key-schemas.ts';
export type { History } from '../api/upstream-schemas.ts';
export type { ClientRow, NestedLimitStatus, RequestRow, ProcessStatus, TimelineEvent, UpstreamStatus };

export type ApiClientState = ClientRow['state'];
export type ApiRequestOutcome = RequestRow['outcome'];

/** Data of the event stream, by event name. */
export interface StreamEvents {
  readonly status: StatusFrame;
  readonly timeline: TimelineEvent;
  readonly requests: RequestsFrame;
}
