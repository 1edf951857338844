import type { Millis } from '../policy/types.ts';
import type { Sample } from './exposition.ts';
import type { Labels } from './series.ts';

/**
 * Upper bounds of the buckets: from what a proxy on the same host adds (1 ms) to what the most patient deadline allows
 * (60 s), in steps of about 2.5, so that a quantile is off by no more than that.
 */
const OF_REQUESTS: readonly Millis[] = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
];

/** The upper bounds of a histogram, as reckoned with and as written. */
export class Buckets {
  readonly bounds: readonly Millis[];
  readonly inSeconds: readonly string[];

  /** @param bounds in rising order */
  constructor(bounds: readonly Millis[]) {
    this.bounds = bounds;
    this.inSeconds = [...bounds.map((bound) => String(bound / 1000)), '+Inf'];
  }
}

const REQUESTS = new Buckets(OF_REQUESTS);

/** A histogram of durations: told in milliseconds, exported in seconds. */
export class Durations {
  readonly #labels: Labels;
  readonly #buckets: Buckets;
  /** Not cumulative; the last one has no upper bound. */
  readonly #counts: Float64Array;
  #sum: Millis = 0;

  constructor(labels: Labels, buckets: Buckets = REQUESTS) {
    this.#labels = labels;
    this.#buckets = buckets;
    this.#counts = new Float64Array(buckets.bounds.length + 1);
  }

  /** @param took ≥ 0 and finite. */
  observe(took: Millis): void {
    const { bounds } = this.#buckets;
    let bucket = 0;
    // Linear: most durations end in the first half of 15 bounds, where a binary search is no faster.
    while (bucket < bounds.length && took > (bounds[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += took;
  }

  /** The samples of the exposition format: cumulative buckets, sum and count of the metric `name`. */
  samples(name: string): Sample[] {
    const samples: Sample[] = [];
    let count = 0;
    for (const [index, le] of this.#buckets.inSeconds.entries()) {
      count += this.#counts[index] ?? 0;
      samples.push({ metricName: `${name}_bucket`, labels: { ...this.#labels, le }, value: count });
    }
    samples.push({ metricName: `${name}_sum`, labels: this.#labels, value: this.#sum / 1000 });
    samples.push({ metricName: `${name}_count`, labels: this.#labels, value: count });
    return samples;
  }
}
