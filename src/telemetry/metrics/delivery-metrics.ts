import type { DeliveryTotals } from '../../core/delivery/delivery-store.ts';
import { DELIVERY_EVENTS, type DeliveryEvent } from '../../core/events/event-labels.ts';
import type { Millis } from '../../core/scalars.ts';
import type { BoundedNameMap } from './bounded-name-map.ts';
import { CounterSet } from './counter-set.ts';
import { DurationHistogram, HistogramBuckets } from './duration-histogram.ts';
import type { MetricFamily, MetricSample } from './exposition/metric-family.ts';

const SECOND: Millis = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** From a delivery at the first attempt to one after days. */
const AGE_BUCKETS = new HistogramBuckets([
  ...[0.01 * SECOND, 0.1 * SECOND, SECOND, 10 * SECOND],
  ...[MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 24 * HOUR, 72 * HOUR],
]);

/** Counters of the deliveries of one route. */
export class DeliveryMetrics {
  readonly events: CounterSet<DeliveryEvent>;
  readonly attempts: CounterSet<string>;
  readonly ages: DurationHistogram;

  constructor(route: string) {
    this.events = new CounterSet((event) => ({ route, event }), DELIVERY_EVENTS);
    this.attempts = new CounterSet((result) => ({ route, result }), ['acknowledged']);
    this.ages = new DurationHistogram({ route }, { buckets: AGE_BUCKETS });
  }

  /** @param age of a delivery that has ended */
  countEvent(event: DeliveryEvent, age: Millis | undefined): void {
    this.events.count(event);
    if (event === 'delivered' && age !== undefined) this.ages.observe(Math.max(0, age));
  }
}

/**
 * Metrics of deliveries.
 * @param totals of the store; undefined if there is none
 */
export function defineDeliveryMetrics(
  routes: BoundedNameMap<DeliveryMetrics>,
  totals: (() => DeliveryTotals | undefined) | undefined,
  wallClock: () => Millis,
): MetricFamily[] {
  return [
    {
      name: 'tidegate_deliveries_total',
      help: 'Deliveries accepted, found to be duplicates, delivered, given up (dead), canceled, and of unknown outcome.',
      type: 'counter',
      samples: () => routes.flatMap((route) => route.events.values()),
    },
    {
      name: 'tidegate_delivery_attempts_total',
      help: 'Attempts of deliveries, by result: acknowledged, postponed before they were sent, or why not acknowledged.',
      type: 'counter',
      samples: () => routes.flatMap((route) => route.attempts.values()),
    },
    {
      name: 'tidegate_delivery_age_seconds',
      help: 'Time from the acceptance of a delivery to its acknowledgement.',
      type: 'histogram',
      samples: () => routes.flatMap((route) => route.ages.samples('tidegate_delivery_age_seconds')),
    },
    ...(totals === undefined ? [] : defineStoredDeliveryMetrics(totals, wallClock)),
  ];
}

/** No samples where another process has the store. Each worker reads those in Redis, at slightly different times. */
function defineStoredDeliveryMetrics(
  totals: () => DeliveryTotals | undefined,
  wallClock: () => Millis,
): MetricFamily[] {
  return [
    {
      name: 'tidegate_deliveries',
      help: 'Stored deliveries, by state.',
      type: 'gauge',
      aggregation: 'max',
      samples: () => Object.entries(totals()?.counts ?? {}).map(([state, value]) => ({ labels: { state }, value })),
    },
    {
      name: 'tidegate_deliveries_bytes',
      help: 'Bytes of the messages of stored deliveries.',
      type: 'gauge',
      aggregation: 'max',
      samples: () => sampleOf(totals()?.bytes),
    },
    {
      name: 'tidegate_delivery_oldest_age_seconds',
      help: 'Age of the oldest delivery that has not ended; 0 if there is none.',
      type: 'gauge',
      aggregation: 'max',
      samples: () => {
        const now = wallClock();
        const present = totals();
        return sampleOf(present && Math.max(0, now - (present.oldestAt ?? now)) / 1000);
      },
    },
  ];
}

function sampleOf(value: number | undefined): MetricSample[] {
  return value === undefined ? [] : [{ labels: {}, value }];
}
