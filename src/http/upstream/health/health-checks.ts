import { CheckResults, type CheckThresholds } from '../../../core/endpoints/check-results.ts';
import type { Millis, Random } from '../../../core/scalars.ts';
import type { Endpoint } from '../open-endpoint.ts';
import { checkEndpoint, type CheckRequest, type CheckResult } from './check-endpoint.ts';

export interface HealthCheckSettings extends CheckThresholds, CheckRequest {
  /** From the end of a check to the next, on average. */
  readonly interval: Millis;
  /** What `isHealthyStatus` accepts, to compare settings. */
  readonly statuses: string;
}

export interface HealthCheckListener {
  /** @param isHealthy of the endpoint, if this result changes it; else undefined */
  onResult(endpoint: Endpoint, result: CheckResult, isHealthy: boolean | undefined): void;
}

/** Spreads the checks of several processes and endpoints. */
const JITTER = 0.1;

/** Checks each of several endpoints, one check at a time for each. */
export class HealthChecks {
  readonly #endpoints: readonly Endpoint[];
  readonly #settings: HealthCheckSettings;
  readonly #random: Random;
  readonly #listener: HealthCheckListener;
  readonly #timers = new Map<Endpoint, NodeJS.Timeout>();
  #isRunning = false;

  constructor(
    endpoints: readonly Endpoint[],
    settings: HealthCheckSettings,
    random: Random,
    listener: HealthCheckListener,
  ) {
    this.#endpoints = endpoints;
    this.#settings = settings;
    this.#random = random;
    this.#listener = listener;
  }

  /** Starts with a check of each endpoint within the interval. Does nothing if it runs. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (const endpoint of this.#endpoints) {
      this.#schedule(endpoint, new CheckResults(this.#settings), this.#settings.interval * this.#random());
    }
  }

  /** A check that is under way no longer counts. */
  stop(): void {
    this.#isRunning = false;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #schedule(endpoint: Endpoint, results: CheckResults, delay: Millis): void {
    this.#timers.set(endpoint, setTimeout(() => void this.#check(endpoint, results), delay).unref());
  }

  async #check(endpoint: Endpoint, results: CheckResults): Promise<void> {
    const result = await checkEndpoint(endpoint, this.#settings);
    if (!this.#isRunning) return;
    const isChanged = result.passed !== undefined && results.onResult(result.passed);
    this.#listener.onResult(endpoint, result, isChanged ? results.isHealthy : undefined);
    this.#schedule(endpoint, results, this.#settings.interval * (1 - JITTER + 2 * JITTER * this.#random()));
  }
}
