import type { Millis } from '../../core/exchange/attempt-outcome.ts';

const BUCKETS = 64;
/** Finely for a third of a second, and for five seconds as a slow upstream needs it, whose requests come and go slowly. */
const FINE: Millis = 5;
const COARSE: Millis = 80;

/** What has changed, in buckets of so many milliseconds. */
class Changes {
  readonly #width: Millis;
  readonly #sums: number[] = [];
  #newest = Number.NEGATIVE_INFINITY;

  constructor(width: Millis) {
    this.#width = width;
    for (let i = 0; i < BUCKETS; i += 1) this.#sums.push(0);
  }

  note(at: Millis, change: number): void {
    const number = Math.floor(at / this.#width);
    if (number > this.#newest) {
      for (let skipped = Math.max(this.#newest + 1, number - BUCKETS + 1); skipped <= number; skipped += 1) {
        this.#sums[skipped % BUCKETS] = 0;
      }
      this.#newest = number;
    }
    if (number <= this.#newest - BUCKETS) return;
    const place = number % BUCKETS;
    this.#sums[place] = (this.#sums[place] ?? 0) + change;
  }

  /** After this moment. */
  since(moment: Millis): number | undefined {
    const number = Math.floor(moment / this.#width);
    if (number <= this.#newest - BUCKETS) return undefined;
    let sum = 0;
    for (let later = number + 1; later <= this.#newest; later += 1) sum += this.#sums[later % BUCKETS] ?? 0;
    return sum;
  }
}

/**
 * How many requests were in flight at a moment not long ago. Those who call tell of it late, and none as late as the
 * other: so it is known some time after the moment, when all have told.
 */
export class InFlightHistory {
  readonly #fine = new Changes(FINE);
  readonly #coarse = new Changes(COARSE);

  note(at: Millis, change: number): void {
    this.#fine.note(at, change);
    this.#coarse.note(at, change);
  }

  /** At the end of the stretch of milliseconds in which this moment is; undefined where that is too long ago. @param now how many there are */
  at(moment: Millis, now: number): number | undefined {
    const since = this.#fine.since(moment) ?? this.#coarse.since(moment);
    return since === undefined ? undefined : Math.max(1, now - since);
  }
}
