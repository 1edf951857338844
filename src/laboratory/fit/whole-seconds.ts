import type { Millis } from '../../core/scalars.ts';

const SECOND: Millis = 1000;
/** Sums of durations are rounded. */
const TOLERANCE: Millis = 0.01;
/** Fewer may be at the same part of a second by chance. */
const MIN_TIMES = 20;

/** Whether times are whole seconds, from any origin. */
export class WholeSeconds {
  #first: Millis | undefined;
  #same = 0;
  #count = 0;

  add(time: Millis): void {
    this.#first ??= time;
    const after = (((time - this.#first) % SECOND) + SECOND) % SECOND;
    if (Math.min(after, SECOND - after) < TOLERANCE) this.#same += 1;
    this.#count += 1;
  }

  /** False for few times. */
  get isTrue(): boolean {
    return this.#count >= MIN_TIMES && this.#same === this.#count;
  }
}
