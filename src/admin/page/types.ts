/** What the admin API tells, as the page and `tidegate top` read it. Times are ISO 8601 in UTC; null is unknown, or without a limit. */
import type {
  ClientRow,
  RequestRow,
  RequestsFrame,
  Status,
  StatusFrame,
  TimelineEvent,
  UpstreamStatus,
} from '../api/schemas.ts';

export type { ClientsPage, RequestsPage, TimelinePage } from '../api/schemas.ts';
export type { ClientRow, RequestRow, Status, TimelineEvent, UpstreamStatus };

export type ClientState = ClientRow['state'];
export type RequestOutcome = RequestRow['outcome'];

/** What the stream of events carries, by the names of the events. */
export interface Events {
  readonly status: StatusFrame;
  readonly timeline: TimelineEvent;
  readonly requests: RequestsFrame;
}

export interface Explanation {
  readonly id: string;
  readonly at: string;
  readonly client: { readonly key: string; readonly identifiedBy: string | null };
  readonly route: string;
  readonly upstream: string;
  readonly method: string;
  readonly path: string;
  readonly outcome: string;
  readonly status: number;
  readonly verdict: string;
  readonly steps: readonly { readonly at: number; readonly what: string; readonly text: string }[];
}
