import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Exemplar, Sample } from './exposition/metric-family.ts';
import type { Labels } from './counter-set.ts';

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

/** Of requests and attempts. */
export const REQUEST_BUCKETS = new Buckets(OF_REQUESTS);

export interface DurationsOptions {
  /** Those of requests unless given. */
  readonly buckets?: Buckets;
  /** Milliseconds of the epoch, for exemplars; none are kept unless given. */
  readonly wallClock?: () => Millis;
}

/** A histogram of durations: told in milliseconds, exported in seconds. */
export class Durations {
  readonly #labels: Labels;
  readonly #buckets: Buckets;
  /** Not cumulative; the last one has no upper bound. */
  readonly #counts: Float64Array;
  #sum: Millis = 0;
  /** Of each bucket, a request that fell into it. */
  readonly #exemplars: (Exemplar | undefined)[];
  /** 1 where that one has been told, and the next to come takes its place: at most one a bucket is made between two scrapes. */
  readonly #isTold: Uint8Array;
  readonly #wallClock: (() => Millis) | undefined;

  constructor(labels: Labels, { buckets = REQUEST_BUCKETS, wallClock }: DurationsOptions = {}) {
    this.#labels = labels;
    this.#buckets = buckets;
    this.#counts = new Float64Array(buckets.bounds.length + 1);
    this.#exemplars = Array.from(this.#counts, () => undefined);
    this.#isTold = new Uint8Array(this.#counts.length).fill(1);
    this.#wallClock = wallClock;
  }

  /**
   * @param took ≥ 0 and finite
   * @param requestId where an exemplar may be made of it
   * @param traceId of the trace that it is a part of, if it is of one
   */
  observe(took: Millis, requestId?: string, traceId?: string): void {
    const { bounds } = this.#buckets;
    let bucket = 0;
    // Linear: most durations end in the first half of 15 bounds, where a binary search is no faster.
    while (bucket < bounds.length && took > (bounds[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += took;
    if (requestId !== undefined && this.#isTold[bucket] === 1) this.#keep(bucket, took, requestId, traceId);
  }

  #keep(bucket: number, took: Millis, requestId: string, traceId: string | undefined): void {
    if (this.#wallClock === undefined) return;
    this.#isTold[bucket] = 0;
    const timestamp = this.#wallClock() / 1000;
    const labelSet = { request_id: requestId, ...(traceId === undefined ? {} : { trace_id: traceId }) };
    this.#exemplars[bucket] = { labelSet, value: took / 1000, timestamp };
  }

  /** How many fell into each bucket so far: a reading that goes on changing. */
  get counts(): ArrayLike<number> {
    return this.#counts;
  }

  /** The samples of the exposition format: cumulative buckets, sum and count of the metric `name`. */
  samples(name: string): Sample[] {
    const samples: Sample[] = [];
    let count = 0;
    for (const [index, le] of this.#buckets.inSeconds.entries()) {
      count += this.#counts[index] ?? 0;
      const bucket = { metricName: `${name}_bucket`, labels: { ...this.#labels, le }, value: count };
      const exemplar = this.#exemplars[index];
      samples.push(exemplar === undefined ? bucket : { ...bucket, exemplar });
    }
    this.#isTold.fill(1);
    samples.push({ metricName: `${name}_sum`, labels: this.#labels, value: this.#sum / 1000 });
    samples.push({ metricName: `${name}_count`, labels: this.#labels, value: count });
    return samples;
  }
}
