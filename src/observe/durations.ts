import type { Millis } from '../policy/types.ts';
import type { Sample } from './exposition.ts';
import type { Labels } from './series.ts';

/**
 * Upper bounds of the buckets: from what a proxy on the same host adds (1 ms) to what the most patient deadline allows
 * (60 s), in steps of about 2.5, so that a quantile is off by no more than that.
 */
const BOUNDS: readonly Millis[] = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];
const BOUNDS_IN_SECONDS: readonly string[] = [...BOUNDS.map((bound) => String(bound / 1000)), '+Inf'];

/** A histogram of durations: told in milliseconds, exported in seconds. */
export class Durations {
  readonly #labels: Labels;
  /** Not cumulative; the last one has no upper bound. */
  readonly #counts = new Float64Array(BOUNDS.length + 1);
  #sum: Millis = 0;

  constructor(labels: Labels) {
    this.#labels = labels;
  }

  /** @param took ≥ 0 and finite. */
  observe(took: Millis): void {
    let bucket = 0;
    // Linear: most durations end in the first half of 15 bounds, where a binary search is no faster.
    while (bucket < BOUNDS.length && took > (BOUNDS[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += took;
  }

  /** The samples of the exposition format: cumulative buckets, sum and count of the metric `name`. */
  samples(name: string): Sample[] {
    const samples: Sample[] = [];
    let count = 0;
    for (const [index, le] of BOUNDS_IN_SECONDS.entries()) {
      count += this.#counts[index] ?? 0;
      samples.push({ metricName: `${name}_bucket`, labels: { ...this.#labels, le }, value: count });
    }
    samples.push({ metricName: `${name}_sum`, labels: this.#labels, value: this.#sum / 1000 });
    samples.push({ metricName: `${name}_count`, labels: this.#labels, value: count });
    return samples;
  }
}
