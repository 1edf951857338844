import type { Millis } from '../../core/scalars.ts';
import { LatencyHistogram } from '../../simulator/report/latency-histogram.ts';
import type { UpstreamDecision } from '../../simulator/upstream/upstream-model.ts';
import type { LoggedRequest } from './logged-request.ts';

/** A policy that a log is replayed through. */
export interface ReplayCandidate {
  readonly name: string;
  /** Delivers a request; `at` must not decrease. */
  arrive(logged: LoggedRequest, at: Millis): void;
  /** Ends the input: requests in progress run to their end. */
  finish(): void;
  row(): FitRow;
}

/** The result of a policy on the log. */
export interface FitRow {
  readonly policy: string;
  /** Requests of clients that have ended. */
  readonly requests: number;
  readonly successes: number;
  /** Requests that ended in a 429 or a rejection by the proxy. */
  readonly refused: number;
  /** Requests that ended in an error. */
  readonly failed: number;
  /** Attempts at the upstream. */
  readonly sends: number;
  /** Attempts that the upstream refused or failed, for each success. */
  readonly waste: number;
  /** Latency of successes, from the client's request to its response, in ms. */
  readonly latency: { readonly p50: Millis; readonly p99: Millis };
}

/** Counts the values of a row. */
export class FitCounters {
  readonly #took = new LatencyHistogram();
  #sends = 0;
  #wasted = 0;
  #refused = 0;
  #failed = 0;

  /** Counts a decision of the upstream. */
  recordSend(decision: UpstreamDecision): void {
    this.#sends += 1;
    if (decision.kind !== 'serve') this.#wasted += 1;
  }

  recordSuccess(took: Millis): void {
    this.#took.add(took);
  }

  recordRefusal(): void {
    this.#refused += 1;
  }

  recordFailure(): void {
    this.#failed += 1;
  }

  row(policy: string): FitRow {
    const successes = this.#took.count;
    return {
      policy,
      requests: successes + this.#refused + this.#failed,
      successes,
      refused: this.#refused,
      failed: this.#failed,
      sends: this.#sends,
      waste: successes === 0 ? this.#wasted : this.#wasted / successes,
      latency: { p50: this.#took.quantile(0.5), p99: this.#took.quantile(0.99) },
    };
  }
}
