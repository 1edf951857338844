import type { SharedStore, StoreEvent, StoreOp, StoreResult } from '../../core/events/store-events.ts';
import { STORE_OPS, STORE_RESULTS } from '../../core/events/store-events.ts';
import { Buckets, Durations } from './duration-histogram.ts';
import type { Family } from './exposition/metric-family.ts';
import type { Series } from './counter-set.ts';

/** From a tenth of what a call within one machine takes to the longest that anybody waits for an answer (`state.timeout`). */
const BUCKETS = new Buckets([0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 175, 250]);

interface Asked {
  readonly requests: Series;
  readonly durations: Durations;
}

/** What is told of the store that replicas share. */
export class StoreSeries {
  readonly #asked: Readonly<Record<StoreOp, Readonly<Record<StoreResult, Asked>>>>;
  readonly #degraded: Series;

  constructor(store: SharedStore) {
    const of = (op: StoreOp, result: StoreResult): Asked => {
      const labels = { store, op, result };
      return { requests: { labels, value: 0 }, durations: new Durations(labels, { buckets: BUCKETS }) };
    };
    const ofOp = (op: StoreOp) => ({ ok: of(op, 'ok'), error: of(op, 'error'), timeout: of(op, 'timeout') });
    this.#asked = { lease: ofOp('lease'), report: ofOp('report'), hold: ofOp('hold') };
    this.#degraded = { labels: { store }, value: 0 };
  }

  count(event: Exclude<StoreEvent, { type: 'store-deaf' }>): void {
    if (event.type === 'store-degraded') {
      this.#degraded.value = event.isDegraded ? 1 : 0;
      return;
    }
    const { requests, durations } = this.#asked[event.op][event.result];
    requests.value += 1;
    durations.observe(event.duration);
  }

  families(): Family[] {
    const duration = 'tidegate_store_duration_seconds';
    const asked = STORE_OPS.flatMap((op) => STORE_RESULTS.map((result) => this.#asked[op][result]));
    return [
      {
        name: 'tidegate_store_requests_total',
        help: 'Questions to the store that replicas share, by how they ended; after a timeout this process does not wait for the answer.',
        type: 'counter',
        samples: () => asked.map(({ requests }) => requests),
      },
      {
        name: duration,
        help: 'From a question to the store to its answer, its error, or the end of waiting.',
        type: 'histogram',
        samples: () => asked.flatMap(({ durations }) => durations.samples(duration)),
      },
      {
        name: 'tidegate_store_degraded',
        help: '1 while the store does not answer, and limits are kept by this process alone; else 0.',
        type: 'gauge',
        across: 'max',
        samples: () => [this.#degraded],
      },
    ];
  }
}
