import type { Millis } from '../scalars.ts';

/** The median of nine samples follows a change within five responses. */
const WINDOW = 9;
/** With fewer, one slow response would decide. */
const MIN_SAMPLES = 3;

/**
 * How long the upstream usually takes to respond to a write: the median of the last nine times. A write with less time left is
 * not worth an attempt. A median rather than a mean, because one slow response must not prevent the retries of later writes.
 */
export class LatencyEstimate {
  readonly #samples: Millis[] = [];
  #next = 0;
  #median: Millis | undefined = 0;

  /** @param took from the send to the response head */
  onAnswer(took: Millis): void {
    this.#samples[this.#next] = took;
    this.#next = (this.#next + 1) % WINDOW;
    this.#median = undefined;
  }

  /** 0 until three times are known. Bound to this object, so that one function serves all requests and retains none. */
  readonly get = (): Millis => (this.#median ??= this.#computeMedian());

  /** For an even number of times, the lower of the two in the middle. */
  #computeMedian(): Millis {
    if (this.#samples.length < MIN_SAMPLES) return 0;
    const sorted = this.#samples.toSorted((a, b) => a - b);
    return sorted[(sorted.length - 1) >> 1] ?? 0;
  }
}

/** One estimate for each route: the paths of one upstream may differ in latency. */
export class LatencyEstimates {
  readonly #estimates = new Map<string, LatencyEstimate>();

  of(route: string): LatencyEstimate {
    const known = this.#estimates.get(route);
    if (known !== undefined) return known;
    const estimate = new LatencyEstimate();
    this.#estimates.set(route, estimate);
    return estimate;
  }
}
