import type { Millis } from '../../core/scalars.ts';

const BUCKETS = 64;
/** Fine buckets cover 0.3 s; coarse ones cover 5 s, for slow upstreams, whose number in flight changes slowly. */
const FINE_WIDTH: Millis = 5;
const COARSE_WIDTH: Millis = 80;

/** Sums of changes, in buckets of `width` milliseconds. */
class Changes {
  readonly #width: Millis;
  readonly #sums: number[] = [];
  #newest = Number.NEGATIVE_INFINITY;

  constructor(width: Millis) {
    this.#width = width;
    for (let i = 0; i < BUCKETS; i += 1) this.#sums.push(0);
  }

  record(at: Millis, change: number): void {
    const number = Math.floor(at / this.#width);
    if (number > this.#newest) {
      for (let skipped = Math.max(this.#newest + 1, number - BUCKETS + 1); skipped <= number; skipped += 1) {
        this.#sums[skipped % BUCKETS] = 0;
      }
      this.#newest = number;
    }
    if (number <= this.#newest - BUCKETS) return;
    const index = number % BUCKETS;
    this.#sums[index] = (this.#sums[index] ?? 0) + change;
  }

  /** The sum of the changes after the bucket of this time; undefined if that is too long ago. */
  sumSince(time: Millis): number | undefined {
    const number = Math.floor(time / this.#width);
    if (number <= this.#newest - BUCKETS) return undefined;
    let sum = 0;
    for (let later = number + 1; later <= this.#newest; later += 1) sum += this.#sums[later % BUCKETS] ?? 0;
    return sum;
  }
}

/**
 * How many requests were in flight at a recent time. Replicas report with different delays, so the number is right only once
 * all have reported that time.
 */
export class InFlightHistory {
  readonly #fine = new Changes(FINE_WIDTH);
  readonly #coarse = new Changes(COARSE_WIDTH);

  record(at: Millis, change: number): void {
    this.#fine.record(at, change);
    this.#coarse.record(at, change);
  }

  /** The number at the end of the bucket of `at`; undefined if that is too long ago. @param current the number now */
  inFlightAt(time: Millis, current: number): number | undefined {
    const since = this.#fine.sumSince(time) ?? this.#coarse.sumSince(time);
    return since === undefined ? undefined : Math.max(1, current - since);
  }
}
