import type { SharedStoreResult } from '../../core/events/store-events.ts';
import type { Millis } from '../../core/scalars.ts';

/** Of requests that fail and succeed in turn, the successes do not count until no request has failed for this long. */
const SETTLED_AFTER: Millis = 1000;

/** Whether a process works without its shared store: for its limits, or for keys of writes and deliveries. */
export class StoreDegradation {
  readonly #onChange: (isDegraded: boolean) => void;
  #areLimitsAlone = false;
  #isStoreLost = false;
  #lastFailureAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(onChange: (isDegraded: boolean) => void) {
    this.#onChange = onChange;
  }

  /** The process keeps its limits on its own, or shares them again. */
  setLimitsAlone(areAlone: boolean): void {
    this.#update(areAlone, this.#isStoreLost);
  }

  /** A request about keys or deliveries has ended. */
  onStoreRequest(result: SharedStoreResult, now: Millis): void {
    if (result !== 'ok') {
      this.#lastFailureAt = now;
      this.#update(this.#areLimitsAlone, true);
    } else if (now - this.#lastFailureAt >= SETTLED_AFTER) this.onConnected();
  }

  /** There is a new connection. */
  onConnected(): void {
    this.#update(this.#areLimitsAlone, false);
  }

  #update(areLimitsAlone: boolean, isStoreLost: boolean): void {
    const wasDegraded = this.#areLimitsAlone || this.#isStoreLost;
    this.#areLimitsAlone = areLimitsAlone;
    this.#isStoreLost = isStoreLost;
    const isDegraded = areLimitsAlone || isStoreLost;
    if (isDegraded !== wasDegraded) this.#onChange(isDegraded);
  }
}
