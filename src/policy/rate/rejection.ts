import type { Millis } from '../types.ts';

/** A 429 that speaks of a limit. */
export interface Rejection {
  /** When the rejected request was sent. */
  readonly sentAt: Millis;
  /** Requests in flight when it was sent, itself included; 0 where that is not known. */
  readonly among: number;
  readonly retryAfter: Millis | undefined;
  /** Among how many clients its Retry-After is shared: it holds only one of them. */
  readonly activeClients: number;
  /** More was being sent than the rate allows: it says what the limit is, and nothing of the rate. */
  readonly overrun?: boolean;
}
