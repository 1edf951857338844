import type { SharedStoreResult } from '../../core/events/store-events.ts';
import type { Millis } from '../../core/scalars.ts';

/** Of requests that fail and succeed in turn, the successes do not count until no request has failed for this long. */
const SETTLED_AFTER: Millis = 1000;

/** Whether a process works without its shared store: for its limits, or for the keys of writes. */
export class StoreDegradation {
  readonly #onChange: (isDegraded: boolean) => void;
  #areLimitsAlone = false;
  #areKeysLost = false;
  #lastFailureAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(onChange: (isDegraded: boolean) => void) {
    this.#onChange = onChange;
  }

  /** The process keeps its limits on its own, or shares them again. */
  setLimitsAlone(areAlone: boolean): void {
    this.#update(areAlone, this.#areKeysLost);
  }

  /** A request about keys has ended. */
  onKeyRequest(result: SharedStoreResult, now: Millis): void {
    if (result !== 'ok') {
      this.#lastFailureAt = now;
      this.#update(this.#areLimitsAlone, true);
    } else if (now - this.#lastFailureAt >= SETTLED_AFTER) this.onConnected();
  }

  /** There is a new connection. */
  onConnected(): void {
    this.#update(this.#areLimitsAlone, false);
  }

  #update(areLimitsAlone: boolean, areKeysLost: boolean): void {
    const wasDegraded = this.#areLimitsAlone || this.#areKeysLost;
    this.#areLimitsAlone = areLimitsAlone;
    this.#areKeysLost = areKeysLost;
    const isDegraded = areLimitsAlone || areKeysLost;
    if (isDegraded !== wasDegraded) this.#onChange(isDegraded);
  }
}
