import type { Millis } from '../../core/scalars.ts';

/** The ratio of neighbouring bucket edges: quantiles are off by at most 1 %. */
const GROWTH = 1.02;
const MIN_LATENCY: Millis = 0.01;
const LOG_GROWTH = Math.log(GROWTH);
const BUCKETS = 1024;

/** A histogram of times in buckets of equal ratio: constant memory, quantiles within 1 %. Times below 0.01 ms count as 0. */
export class LatencyHistogram {
  readonly #counts = new Float64Array(BUCKETS);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(took: Millis): void {
    const bucket = took < MIN_LATENCY ? 0 : 1 + Math.floor(Math.log(took / MIN_LATENCY) / LOG_GROWTH);
    const index = Math.min(BUCKETS - 1, bucket);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count += 1;
  }

  /** @returns the time that this share did not exceed, in ms; 0 without times */
  quantile(share: number): Millis {
    const rank = share * this.#count;
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      seen += this.#counts[bucket] ?? 0;
      if (seen > 0 && seen >= rank) return bucket === 0 ? 0 : MIN_LATENCY * GROWTH ** (bucket - 0.5);
    }
    return 0;
  }
}
