import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** Bucket edges grow by this: what is told is off by at most 1 %. */
const GROWTH = 1.02;
const SHORTEST: Millis = 0.01;
const LOG_GROWTH = Math.log(GROWTH);
const BUCKETS = 1024;

/** How long many things took, in buckets of equal ratio: constant memory, quantiles within 1 %. Below 0.01 ms is 0. */
export class Latencies {
  readonly #counts = new Float64Array(BUCKETS);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(took: Millis): void {
    const bucket = took < SHORTEST ? 0 : 1 + Math.floor(Math.log(took / SHORTEST) / LOG_GROWTH);
    const index = Math.min(BUCKETS - 1, bucket);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count += 1;
  }

  /** @returns the time that this share of all did not exceed, 0 when there are none */
  quantile(share: number): Millis {
    const rank = share * this.#count;
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      seen += this.#counts[bucket] ?? 0;
      if (seen > 0 && seen >= rank) return bucket === 0 ? 0 : SHORTEST * GROWTH ** (bucket - 0.5);
    }
    return 0;
  }
}
