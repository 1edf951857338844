import type { Millis } from '../../core/scalars.ts';
import { DurationHistogram, HistogramBuckets } from './duration-histogram.ts';
import type { MetricFamily } from './exposition/metric-family.ts';
import type { TimeSeries } from './counter-set.ts';

/** From a commit without a sync to a disk that is busy. */
const COMMIT_BUCKETS = new HistogramBuckets([0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000]);

/** Metrics of the database that keeps the keys of writes. */
export class StateMetrics {
  readonly #rows: () => Readonly<Record<string, number>>;
  readonly #durations = new DurationHistogram({}, { buckets: COMMIT_BUCKETS });
  readonly #failures: TimeSeries = { labels: {}, value: 0 };

  /** @param rows of the table of writes, by state */
  constructor(rows: () => Readonly<Record<string, number>>) {
    this.#rows = rows;
  }

  countCommit(isStored: boolean, took: Millis): void {
    if (isStored) this.#durations.observe(Math.max(0, took));
    else this.#failures.value += 1;
  }

  families(): MetricFamily[] {
    const duration = 'tidegate_state_commit_duration_seconds';
    return [
      {
        name: 'tidegate_state_writes',
        help: 'Writes with idempotency keys in the database, by state; a write in progress is unresolved.',
        type: 'gauge',
        samples: () => Object.entries(this.#rows()).map(([state, value]) => ({ labels: { state }, value })),
      },
      {
        name: duration,
        help: 'Time to store the changes of a turn of the event loop in the database.',
        type: 'histogram',
        samples: () => this.#durations.samples(duration),
      },
      {
        name: 'tidegate_state_commit_failures_total',
        help: 'Times that changes could not be stored in the database: until they are, idempotency.onStoreLost applies to writes with keys.',
        type: 'counter',
        samples: () => [this.#failures],
      },
    ];
  }
}
