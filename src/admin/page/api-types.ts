/** What the admin API tells, as the page and `tidegate top` read it. Times are ISO 8601 in UTC; null is unknown, or without a limit. */
import type {
  ClientRow,
  NestedLimitStatus,
  RequestRow,
  RequestsFrame,
  Status,
  StatusFrame,
  TimelineEvent,
  UpstreamStatus,
} from '../api/response-schemas.ts';

export type { ClientsPage, Explanation, RequestsPage, TimelinePage } from '../api/response-schemas.ts';
export type { ClientRow, NestedLimitStatus, RequestRow, Status, TimelineEvent, UpstreamStatus };

export type ClientState = ClientRow['state'];
export type RequestOutcome = RequestRow['outcome'];

/** What the stream of events carries, by the names of the events. */
export interface Events {
  readonly status: StatusFrame;
  readonly timeline: TimelineEvent;
  readonly requests: RequestsFrame;
}
