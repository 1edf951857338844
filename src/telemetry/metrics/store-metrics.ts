import type {
  SharedKeyCounts,
  SharedStore,
  StoreEvent,
  SharedStoreOperation,
  SharedStoreResult,
} from '../../core/events/store-events.ts';
import { SHARED_STORE_OPERATIONS, SHARED_STORE_RESULTS } from '../../core/events/store-events.ts';
import { HistogramBuckets, DurationHistogram } from './duration-histogram.ts';
import type { MetricFamily } from './exposition/metric-family.ts';
import type { TimeSeries } from './counter-set.ts';

/** From a tenth of a call within one machine to the maximum of `state.timeout`. */
const STORE_BUCKETS = new HistogramBuckets([0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 175, 250]);

interface StoreRequestSeries {
  readonly requests: TimeSeries;
  readonly durations: DurationHistogram;
}

/** Metrics of the store that replicas share. */
export class StoreMetrics {
  readonly #byOperation: Readonly<
    Record<SharedStoreOperation, Readonly<Record<SharedStoreResult, StoreRequestSeries>>>
  >;
  readonly #degraded: TimeSeries;
  readonly #readKeys: () => TimeSeries[];

  /** @param readKeys the keys of writes in the store */
  constructor(store: SharedStore, readKeys: () => readonly SharedKeyCounts[] = () => []) {
    const seriesOf = (op: SharedStoreOperation, result: SharedStoreResult): StoreRequestSeries => {
      const labels = { store, op, result };
      return { requests: { labels, value: 0 }, durations: new DurationHistogram(labels, { buckets: STORE_BUCKETS }) };
    };
    const seriesByResult = (op: SharedStoreOperation) => ({
      ok: seriesOf(op, 'ok'),
      error: seriesOf(op, 'error'),
      timeout: seriesOf(op, 'timeout'),
    });
    this.#byOperation = {
      lease: seriesByResult('lease'),
      report: seriesByResult('report'),
      hold: seriesByResult('hold'),
      key: seriesByResult('key'),
      delivery: seriesByResult('delivery'),
      quota: seriesByResult('quota'),
    };
    this.#degraded = { labels: { store }, value: 0 };
    this.#readKeys = () =>
      readKeys().flatMap(({ upstream, unresolved, answered }) =>
        Object.entries({ unresolved, answered }).map(([state, value]) => ({
          labels: { store, upstream, state },
          value,
        })),
      );
  }

  count(event: Exclude<StoreEvent, { type: 'store-deaf' }>): void {
    if (event.type === 'store-degraded') {
      this.#degraded.value = event.isDegraded ? 1 : 0;
      return;
    }
    const { requests, durations } = this.#byOperation[event.op][event.result];
    requests.value += 1;
    durations.observe(event.duration);
  }

  families(): MetricFamily[] {
    const duration = 'tidegate_store_duration_seconds';
    const allSeries = SHARED_STORE_OPERATIONS.flatMap((op) =>
      SHARED_STORE_RESULTS.map((result) => this.#byOperation[op][result]),
    );
    return [
      {
        name: 'tidegate_store_requests_total',
        help: 'Requests to the shared store, by result; after a timeout this process no longer waits for the response.',
        type: 'counter',
        samples: () => allSeries.map(({ requests }) => requests),
      },
      {
        name: duration,
        help: 'Time from a request to the shared store to its response, error or timeout.',
        type: 'histogram',
        samples: () => allSeries.flatMap(({ durations }) => durations.samples(duration)),
      },
      {
        name: 'tidegate_store_keys',
        help: 'Idempotency keys of an upstream in the shared store, by state, as this process has last seen; a write in progress is unresolved.',
        type: 'gauge',
        aggregation: 'max',
        samples: () => this.#readKeys(),
      },
      {
        name: 'tidegate_store_degraded',
        help: '1 while the shared store does not respond to requests about limits, keys or deliveries; else 0.',
        type: 'gauge',
        aggregation: 'max',
        samples: () => [this.#degraded],
      },
    ];
  }
}
