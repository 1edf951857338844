/** The metrics of a process, with the labels that its configuration gives. */
import { insecureUpstreams } from '../config/compile/compile-snapshot.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { modeOfConfig, observedUpstreams } from '../config/values/enforcement-mode.ts';
import { routeName } from '../config/schema/route-name.ts';
import type { Clock } from '../core/scalars.ts';
import type { Metrics, MetricsOptions } from '../telemetry/metrics/metrics.ts';
import { createMetrics } from '../telemetry/metrics/metrics.ts';
import { CertificateExpiries } from './certificates/certificate-expiries.ts';

type Measurements = Pick<
  MetricsOptions,
  | 'bounds'
  | 'config'
  | 'endpoints'
  | 'explanationBytes'
  | 'replayBufferBytes'
  | 'sharedKeys'
  | 'shedShare'
  | 'view'
  | 'workers'
> &
  Required<Pick<MetricsOptions, 'storedWrites' | 'deliveries'>>;

export interface ProcessMetricsParts extends Measurements {
  /** The configuration in effect. */
  readonly currentConfig: () => Config;
  readonly clock: Clock;
  readonly version: string;
}

/** @param first the configuration of the start: the series of client names and store stay as they were then */
export function createProcessMetrics(
  first: Config,
  { currentConfig, clock, version, storedWrites, deliveries, ...measurements }: ProcessMetricsParts,
): Metrics & { readonly certificates: CertificateExpiries } {
  const certificates = new CertificateExpiries(currentConfig, clock);
  const metrics = createMetrics({
    ...measurements,
    certificates: () => certificates.all(),
    get routes() {
      return currentConfig().routes.map(routeName);
    },
    get delivering() {
      return currentConfig()
        .routes.filter((route) => (route.deliver ?? route.async) !== undefined)
        .map(routeName);
    },
    get upstreams() {
      return Object.keys(currentConfig().upstreams);
    },
    get insecure() {
      return insecureUpstreams(currentConfig());
    },
    clientNames: Object.keys(first.clients.names),
    now: () => clock.now(),
    wallClock: () => Date.now(),
    build: { version },
    get mode() {
      return modeOfConfig(currentConfig());
    },
    get observed() {
      return new Set(observedUpstreams(currentConfig()));
    },
    store: first.state.store === 'redis' ? first.state.store : undefined,
    storedWrites: first.state.store === 'sqlite' ? storedWrites : undefined,
    deliveries: first.state.store === 'memory' ? undefined : deliveries,
  });
  return { ...metrics, certificates };
}
