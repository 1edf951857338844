import type { RequestAttributes } from './breaker/request-attributes.ts';
import type { Millis } from '../scalars.ts';

/** A request without a response, or with one of a broken upstream. */
export interface FailedSend {
  /** When the request was sent. */
  readonly sentAt: Millis;
  readonly retryAfterMs: Millis | undefined;
  /** More was being sent than the rate allows: the result shows where the limit is, but not that the rate is too high. */
  readonly overrun?: boolean;
  /** No connection could be opened, and none is open: any other request would have failed too. */
  readonly isUnreachable?: boolean;
  /**
   * Its client has disconnected at its own timeout. This shows how long the upstream has not responded, and nothing else: neither
   * a failure of the upstream nor one of an endpoint.
   */
  readonly isAbandoned?: boolean;
  /** How long it took is learned later, in the order of all responses. */
  readonly isTimedLater?: boolean;
  /** Absent if unknown. */
  readonly attributes?: RequestAttributes | undefined;
}

/** A request that was rejected for a limit. */
export interface RejectedSend extends FailedSend {
  /** Requests in flight when it was sent, itself included; 0 if unknown. */
  readonly inFlightAtSend: number;
  /** The number of active clients at the limit. Its Retry-After holds only one of them. */
  readonly activeClients: number;
  /** What the history counted for it, in units; 1 when absent. */
  readonly cost?: number;
}

/** Why the charge of a request is corrected. */
export type CostResult =
  /** Its response names the cost. */
  | 'read'
  /** An attempt to send it failed before the upstream received anything. */
  | 'unsent'
  /** It was admitted, and never counted as sent. */
  | 'cancelled';

/** What a request that took a token has cost at one limit, once that is known. */
export interface SettledCost {
  /** What it was charged, in units. */
  readonly charged: number;
  /** What the upstream counted, in units; ≥ 0 and finite. */
  readonly actual: number;
  readonly result: CostResult;
}

/** What a request has cost that was counted as sent, once that is known. */
export interface KnownCost {
  readonly sentAt: Millis;
  /** What the history counted, in units: see `onSent` of `Learner`. */
  readonly counted: number;
  /** What the upstream counted, in units; ≥ 0 and finite. Undefined if it received nothing. */
  readonly actual: number | undefined;
}

/** A request that ended with a response or failed, as far as its latency says something. */
export interface LateLatency {
  readonly latency: Millis;
  /** Requests of all processes that had no response when it ended, its own included. */
  readonly unanswered: number;
  readonly at: Millis;
  readonly hasFailed: boolean;
  /** See `FailedSend`; absent: false. */
  readonly isAbandoned?: boolean;
}
