import type { Millis } from '../../src/core/scalars.ts';

/** Longer than any process needs after a fault, and shorter than any hold that a fault may leave behind. */
const MAX_IDLE: Millis = 60_000;

/** Finds out whether writes go on between faults: to refuse all of them would break no other promise. */
export class ProgressWatch {
  #charges = 0;
  #at: Millis;
  /** Time without a fault since the last charge. */
  #idle: Millis = 0;
  #longest: Millis = 0;

  constructor(now: Millis) {
    this.#at = now;
  }

  /** @param charges all so far @param isFaulty whether a fault is in progress */
  observe(charges: number, isFaulty: boolean, now: Millis): void {
    if (charges > this.#charges) this.#idle = 0;
    else if (!isFaulty) this.#idle += now - this.#at;
    this.#longest = Math.max(this.#longest, this.#idle);
    this.#charges = charges;
    this.#at = now;
  }

  get violations(): readonly string[] {
    if (this.#longest <= MAX_IDLE) return [];
    return [`nothing was executed in ${Math.round(this.#longest / 1000)} s without a fault`];
  }
}
