import type { EndpointView } from '../../core/events/gate-views.ts';
import type { MetricFamily } from './exposition/metric-family.ts';

/** Metrics of endpoints. Their names come from the configuration, which bounds the number of series. */
export class EndpointMetrics {
  readonly #readEndpoints: () => readonly EndpointView[];
  /** By upstream, then by endpoint. */
  readonly #ejections = new Map<string, Map<string, number>>();

  constructor(readEndpoints: () => readonly EndpointView[]) {
    this.#readEndpoints = readEndpoints;
  }

  countEjection(upstream: string, endpoint: string): void {
    const counts = this.#ejections.get(upstream) ?? new Map<string, number>();
    this.#ejections.set(upstream, counts);
    counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  }

  families(): MetricFamily[] {
    return [
      {
        name: 'tidegate_endpoint_healthy',
        help: '1 while the endpoint receives requests, 0 while it is ejected; always 1 for a single endpoint.',
        type: 'gauge',
        aggregation: 'min',
        samples: () =>
          this.#readEndpoints().map(({ upstream, endpoint, isHealthy }) => ({
            labels: { upstream, endpoint },
            value: isHealthy ? 1 : 0,
          })),
      },
      {
        name: 'tidegate_endpoint_ejections_total',
        help: 'Ejections of an endpoint, failed trials included.',
        type: 'counter',
        samples: () =>
          this.#readEndpoints().map(({ upstream, endpoint }) => ({
            labels: { upstream, endpoint },
            value: this.#ejections.get(upstream)?.get(endpoint) ?? 0,
          })),
      },
    ];
  }
}
