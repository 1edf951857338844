import type { PollOutcome } from '../../core/events/event-labels.ts';
import { POLL_OUTCOMES } from '../../core/events/event-labels.ts';
import type { Millis } from '../../core/scalars.ts';
import type { BoundedNameMap } from './bounded-name-map.ts';
import { DurationHistogram } from './duration-histogram.ts';
import type { MetricFamily } from './exposition/metric-family.ts';
import type { TimeSeries } from './counter-set.ts';
import { CounterSet } from './counter-set.ts';

/** Counters of the polls of one route. */
export class PollMetrics {
  readonly polls: CounterSet<PollOutcome>;
  readonly waiting: TimeSeries;
  readonly slowed: TimeSeries;
  readonly waits: DurationHistogram;

  constructor(route: string) {
    this.polls = new CounterSet((outcome) => ({ route, outcome }), POLL_OUTCOMES);
    this.waiting = { labels: { route }, value: 0 };
    this.slowed = { labels: { route }, value: 0 };
    this.waits = new DurationHistogram({ route });
  }

  /** @param waited the duration of a wait that ended; undefined for one that starts */
  countWaitChange(waited: Millis | undefined): void {
    this.waiting.value += waited === undefined ? 1 : -1;
    if (waited !== undefined) this.waits.observe(waited);
  }
}

/** Metrics of the routes that poll; a route has no series before its first poll. */
export function definePollMetrics(routes: BoundedNameMap<PollMetrics>): MetricFamily[] {
  return [
    {
      name: 'tidegate_polls_total',
      help: 'Polls for clients that wait, by outcome; the request of the client itself is not counted.',
      type: 'counter',
      samples: () => routes.flatMap((route) => route.polls.values()),
    },
    {
      name: 'tidegate_polls_waiting',
      help: 'Requests being polled for now.',
      type: 'gauge',
      samples: () => routes.flatMap((route) => [route.waiting]),
    },
    {
      name: 'tidegate_poll_wait_seconds',
      help: 'Time from the arrival of a polled request to its response.',
      type: 'histogram',
      samples: () => routes.flatMap((route) => route.waits.samples('tidegate_poll_wait_seconds')),
    },
    {
      name: 'tidegate_polls_slowed_total',
      help: 'Not-ready responses whose Retry-After was added or lengthened.',
      type: 'counter',
      samples: () => routes.flatMap((route) => [route.slowed]),
    },
  ];
}
