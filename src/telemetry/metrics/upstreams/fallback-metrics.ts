import { FALLBACK_REASONS, type FallbackReason } from '../../../core/events/event-labels.ts';
import { CounterSet } from '../counter-set.ts';
import type { MetricFamily } from '../exposition/metric-family.ts';

/** Requests that were sent to another upstream. An upstream has series from its first one on. */
export class FallbackMetrics {
  readonly #byUpstream = new Map<string, CounterSet<FallbackReason>>();

  count(upstream: string, why: FallbackReason): void {
    const counters =
      this.#byUpstream.get(upstream) ?? new CounterSet((reason) => ({ upstream, reason }), FALLBACK_REASONS);
    this.#byUpstream.set(upstream, counters);
    counters.count(why);
  }

  families(): MetricFamily[] {
    return [
      {
        name: 'tidegate_upstream_fallbacks_total',
        help: 'Requests that were sent to the fallback of an upstream, by the reason why the upstream did not serve them.',
        type: 'counter',
        samples: () => [...this.#byUpstream.values()].flatMap((counters) => [...counters.values()]),
      },
    ];
  }
}
