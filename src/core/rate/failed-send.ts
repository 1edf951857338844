import type { Source } from './breaker/request-attributes.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

/** No answer, or one that says that the upstream is broken. */
export interface Failure {
  /** When the request was sent. */
  readonly sentAt: Millis;
  readonly retryAfter: Millis | undefined;
  /** More was being sent than the rate allows: it says what the limit is, and nothing of the rate. */
  readonly overrun?: boolean;
  /** Absent where it is not known. */
  readonly source?: Source | undefined;
}

/** A 429 that speaks of a limit. */
export interface Rejection extends Failure {
  /** Requests in flight when it was sent, itself included; 0 where that is not known. */
  readonly among: number;
  /** Among how many clients its Retry-After is shared: it holds only one of them. */
  readonly activeClients: number;
}
