import type { EndpointView } from '../../../core/events/gate-views.ts';
import type { MetricFamily } from '../exposition/metric-family.ts';

interface EndpointCounts {
  ejections: number;
  checksPassed: number;
  checksFailed: number;
}

const NONE: Readonly<EndpointCounts> = { ejections: 0, checksPassed: 0, checksFailed: 0 };

/** Metrics of endpoints. Their names come from the configuration, which bounds the number of series. */
export class EndpointMetrics {
  readonly #readEndpoints: () => readonly EndpointView[];
  /** By upstream, then by endpoint. */
  readonly #counts = new Map<string, Map<string, EndpointCounts>>();

  constructor(readEndpoints: () => readonly EndpointView[]) {
    this.#readEndpoints = readEndpoints;
  }

  countEjection(upstream: string, endpoint: string): void {
    this.#countsOf(upstream, endpoint).ejections += 1;
  }

  countCheck(upstream: string, endpoint: string, passed: boolean): void {
    this.#countsOf(upstream, endpoint)[passed ? 'checksPassed' : 'checksFailed'] += 1;
  }

  #countsOf(upstream: string, endpoint: string): EndpointCounts {
    const byEndpoint = this.#counts.get(upstream) ?? new Map<string, EndpointCounts>();
    this.#counts.set(upstream, byEndpoint);
    const counts = byEndpoint.get(endpoint) ?? { ...NONE };
    byEndpoint.set(endpoint, counts);
    return counts;
  }

  families(): MetricFamily[] {
    return [
      {
        name: 'tidegate_endpoint_healthy',
        help: '1 while the endpoint receives requests, 0 while it is ejected or its health checks fail. The only endpoint of an upstream is never ejected.',
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
            value: this.#counts.get(upstream)?.get(endpoint)?.ejections ?? 0,
          })),
      },
      {
        name: 'tidegate_endpoint_checks_total',
        help: 'Health checks of an endpoint, by result (passed or failed); absent without checks.',
        type: 'counter',
        samples: () =>
          this.#readEndpoints().flatMap(({ upstream, endpoint }) => {
            const { checksPassed, checksFailed } = this.#counts.get(upstream)?.get(endpoint) ?? NONE;
            if (checksPassed + checksFailed === 0) return [];
            return [
              { labels: { upstream, endpoint, result: 'passed' }, value: checksPassed },
              { labels: { upstream, endpoint, result: 'failed' }, value: checksFailed },
            ];
          }),
      },
    ];
  }
}
