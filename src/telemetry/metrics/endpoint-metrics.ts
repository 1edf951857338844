import type { EndpointView } from '../../core/events/proxy-events.ts';
import type { Family } from './exposition/metric-family.ts';

/** What is told of endpoints. Their names are configured, so that there are no more than the configuration has. */
export class EndpointSeries {
  readonly #look: () => readonly EndpointView[];
  /** By upstream, then by endpoint. */
  readonly #ejections = new Map<string, Map<string, number>>();

  constructor(look: () => readonly EndpointView[]) {
    this.#look = look;
  }

  ejected(upstream: string, endpoint: string): void {
    const counts = this.#ejections.get(upstream) ?? new Map<string, number>();
    this.#ejections.set(upstream, counts);
    counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  }

  families(): Family[] {
    return [
      {
        name: 'tidegate_endpoint_healthy',
        help: '1 while the endpoint is sent to, 0 while it is left out; of a single endpoint always 1.',
        type: 'gauge',
        across: 'min',
        samples: () =>
          this.#look().map(({ upstream, endpoint, isHealthy }) => ({
            labels: { upstream, endpoint },
            value: isHealthy ? 1 : 0,
          })),
      },
      {
        name: 'tidegate_endpoint_ejections_total',
        help: 'Times that an endpoint was left out, failed trials included.',
        type: 'counter',
        samples: () =>
          this.#look().map(({ upstream, endpoint }) => ({
            labels: { upstream, endpoint },
            value: this.#ejections.get(upstream)?.get(endpoint) ?? 0,
          })),
      },
    ];
  }
}
