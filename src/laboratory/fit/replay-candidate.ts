import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { Latencies } from '../../simulator/report/latency-histogram.ts';
import type { Conduct } from '../../simulator/upstream/upstream-model.ts';
import type { Logged } from './logged-request.ts';

/** A policy that a log is played through. */
export interface Candidate {
  readonly name: string;
  /** A request arrives; `at` never goes back. */
  arrive(logged: Logged, at: Millis): void;
  /** No more will come: what is under way ends. */
  finish(): void;
  row(): FitRow;
}

/** What a policy would have made of the log. */
export interface FitRow {
  readonly policy: string;
  /** Requests of clients that have ended. */
  readonly requests: number;
  readonly successes: number;
  /** Ended in a 429 or a refusal of the proxy's. */
  readonly refused: number;
  /** Ended in an error. */
  readonly failed: number;
  /** Attempts at the upstream. */
  readonly sends: number;
  /** Attempts that the upstream refused or failed, for each success. */
  readonly waste: number;
  /** Of successes, from the client's request to its answer. */
  readonly latency: { readonly p50: Millis; readonly p99: Millis };
}

/** Counts for a row. */
export class FitTally {
  readonly #took = new Latencies();
  #sends = 0;
  #wasted = 0;
  #refused = 0;
  #failed = 0;

  /** The upstream has decided on an attempt. */
  sent(conduct: Conduct): void {
    this.#sends += 1;
    if (conduct.kind !== 'serve') this.#wasted += 1;
  }

  succeeded(took: Millis): void {
    this.#took.add(took);
  }

  refused(): void {
    this.#refused += 1;
  }

  failed(): void {
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
