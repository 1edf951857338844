import type { Millis } from '../../core/scalars.ts';
import type { Exemplar, MetricSample } from './exposition/metric-family.ts';
import type { Labels } from './counter-set.ts';

/**
 * Upper bounds of the buckets: from what a proxy on the same host adds (1 ms) to a long deadline (60 s), in steps of about
 * 2.5, so that a quantile is off by no more than that factor.
 */
const REQUEST_BUCKET_BOUNDS: readonly Millis[] = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
];

/** The upper bounds of a histogram, in milliseconds and as label values. */
export class HistogramBuckets {
  readonly bounds: readonly Millis[];
  readonly inSeconds: readonly string[];

  /** @param bounds in rising order */
  constructor(bounds: readonly Millis[]) {
    this.bounds = bounds;
    this.inSeconds = [...bounds.map((bound) => String(bound / 1000)), '+Inf'];
  }
}

/** The buckets of requests and attempts. */
export const REQUEST_BUCKETS = new HistogramBuckets(REQUEST_BUCKET_BOUNDS);

export interface DurationHistogramOptions {
  /** REQUEST_BUCKETS unless given. */
  readonly buckets?: HistogramBuckets;
  /** Milliseconds of the epoch, for exemplars; none are kept unless given. */
  readonly wallClock?: () => Millis;
}

/** A histogram of durations: observed in milliseconds, exported in seconds. */
export class DurationHistogram {
  readonly #labels: Labels;
  readonly #buckets: HistogramBuckets;
  /** Not cumulative; the last one has no upper bound. */
  readonly #counts: Float64Array;
  #sum: Millis = 0;
  /** For each bucket, a request that fell into it. */
  readonly #exemplars: (Exemplar | undefined)[];
  /** 1 if the exemplar was exported: the next request replaces it, so a scrape has at most one new one per bucket. */
  readonly #isExported: Uint8Array;
  readonly #wallClock: (() => Millis) | undefined;

  constructor(labels: Labels, { buckets = REQUEST_BUCKETS, wallClock }: DurationHistogramOptions = {}) {
    this.#labels = labels;
    this.#buckets = buckets;
    this.#counts = new Float64Array(buckets.bounds.length + 1);
    this.#exemplars = Array.from(this.#counts, () => undefined);
    this.#isExported = new Uint8Array(this.#counts.length).fill(1);
    this.#wallClock = wallClock;
  }

  /**
   * @param took ≥ 0 and finite
   * @param requestId given where the request may become an exemplar
   * @param traceId of its trace, if it has one
   */
  observe(took: Millis, requestId?: string, traceId?: string): void {
    const { bounds } = this.#buckets;
    let bucket = 0;
    // Linear: most durations end in the first half of 15 bounds, where a binary search is no faster.
    while (bucket < bounds.length && took > (bounds[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += took;
    if (requestId !== undefined && this.#isExported[bucket] === 1) this.#setExemplar(bucket, took, requestId, traceId);
  }

  #setExemplar(bucket: number, took: Millis, requestId: string, traceId: string | undefined): void {
    if (this.#wallClock === undefined) return;
    this.#isExported[bucket] = 0;
    const timestamp = this.#wallClock() / 1000;
    const labelSet = { request_id: requestId, ...(traceId === undefined ? {} : { trace_id: traceId }) };
    this.#exemplars[bucket] = { labelSet, value: took / 1000, timestamp };
  }

  /** The count of each bucket: a live view. */
  get counts(): ArrayLike<number> {
    return this.#counts;
  }

  /** The samples of the exposition format: cumulative buckets, sum and count of the metric `name`. */
  samples(name: string): MetricSample[] {
    const samples: MetricSample[] = [];
    let count = 0;
    for (const [index, le] of this.#buckets.inSeconds.entries()) {
      count += this.#counts[index] ?? 0;
      const bucket = { metricName: `${name}_bucket`, labels: { ...this.#labels, le }, value: count };
      const exemplar = this.#exemplars[index];
      samples.push(exemplar === undefined ? bucket : { ...bucket, exemplar });
    }
    this.#isExported.fill(1);
    samples.push({ metricName: `${name}_sum`, labels: this.#labels, value: this.#sum / 1000 });
    samples.push({ metricName: `${name}_count`, labels: this.#labels, value: count });
    return samples;
  }
}
