/** How many results in a row change the state of an endpoint. */
export interface CheckThresholds {
  /** Successes in a row after which an unhealthy endpoint is healthy, ≥ 1. */
  readonly healthy: number;
  /** Failures in a row after which a healthy endpoint is unhealthy, ≥ 1. */
  readonly unhealthy: number;
}

/** The health of one endpoint by the results of its checks. It is healthy before the first. */
export class CheckResults {
  isHealthy = true;
  readonly #thresholds: CheckThresholds;
  /** Results in a row that contradict the state. */
  #streak = 0;

  constructor(thresholds: CheckThresholds) {
    this.#thresholds = thresholds;
  }

  /** Counts a result. Returns whether the state changed. */
  onResult(isPassed: boolean): boolean {
    if (isPassed === this.isHealthy) {
      this.#streak = 0;
      return false;
    }
    this.#streak += 1;
    if (this.#streak < this.#thresholds[isPassed ? 'healthy' : 'unhealthy']) return false;
    this.isHealthy = isPassed;
    this.#streak = 0;
    return true;
  }
}
