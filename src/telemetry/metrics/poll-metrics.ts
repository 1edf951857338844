import type { PollOutcome } from '../../core/events/proxy-events.ts';
import { POLL_OUTCOMES } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { ByName } from './bounded-name-map.ts';
import { Durations } from './duration-histogram.ts';
import type { Family } from './exposition/metric-family.ts';
import type { Series } from './counter-set.ts';
import { CounterSet } from './counter-set.ts';

/** What is counted of the polls of one route. */
export class PollSeries {
  readonly polls: CounterSet<PollOutcome>;
  readonly waiting: Series;
  readonly slowed: Series;
  readonly waits: Durations;

  constructor(route: string) {
    this.polls = new CounterSet((outcome) => ({ route, outcome }), POLL_OUTCOMES);
    this.waiting = { labels: { route }, value: 0 };
    this.slowed = { labels: { route }, value: 0 };
    this.waits = new Durations({ route });
  }

  /** @param waited how long, of one that is not waited for any more */
  changed(waited: Millis | undefined): void {
    this.waiting.value += waited === undefined ? 1 : -1;
    if (waited !== undefined) this.waits.observe(waited);
  }
}

/** Of the routes that poll; none before the first poll. */
export function describePolls(routes: ByName<PollSeries>): Family[] {
  return [
    {
      name: 'tidegate_polls_total',
      help: 'Polls made for clients that wait for what is not ready, by what came of them; the first time that it was asked for is none.',
      type: 'counter',
      samples: () => routes.gather((route) => route.polls.values()),
    },
    {
      name: 'tidegate_polls_waiting',
      help: 'Requests that are polled for at present.',
      type: 'gauge',
      samples: () => routes.gather((route) => [route.waiting]),
    },
    {
      name: 'tidegate_poll_wait_seconds',
      help: 'How long clients were waited for that were polled for: from the arrival of a request to its answer.',
      type: 'histogram',
      samples: () => routes.gather((route) => route.waits.samples('tidegate_poll_wait_seconds')),
    },
    {
      name: 'tidegate_polls_slowed_total',
      help: 'Answers that are not ready to which a Retry-After was added, or a longer one written.',
      type: 'counter',
      samples: () => routes.gather((route) => [route.slowed]),
    },
  ];
}
