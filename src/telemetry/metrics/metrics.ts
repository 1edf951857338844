import type { DeliveryTotals } from '../../core/delivery/delivery-store.ts';
import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { EndpointView, GateView } from '../../core/events/gate-views.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { SharedKeyCounts, SharedStore } from '../../core/events/store-events.ts';
import type { Millis } from '../../core/scalars.ts';
import { AccountMetrics } from './upstreams/account-metrics.ts';
import { defineBoundMetrics } from './bound-metrics.ts';
import { BoundedNameMap } from './bounded-name-map.ts';
import type { RequestCounts } from './request-counts.ts';
import { sumRequestCounts } from './request-counts.ts';
import { ClientMetrics } from './client-metrics.ts';
import type { CertificateExpiry } from './certificate-metrics.ts';
import { defineCertificateMetrics } from './certificate-metrics.ts';
import type { ConfigReloadState } from './config-metrics.ts';
import { defineConfigMetrics } from './config-metrics.ts';
import { countEvents } from './count-events.ts';
import { defineDeliveryMetrics, DeliveryMetrics } from './delivery-metrics.ts';
import { CostMetrics } from './upstreams/cost-metrics.ts';
import { EndpointMetrics } from './upstreams/endpoint-metrics.ts';
import { FallbackMetrics } from './upstreams/fallback-metrics.ts';
import { defineEventMetrics } from './event-metrics.ts';
import { registerFamilies } from './exposition/metric-family.ts';
import { defineLimitMetrics, type GateSnapshot } from './limit-metrics.ts';
import { defineQuotaMetrics } from './upstreams/quota-metrics.ts';
import { summarizeLimits } from './limit-summary.ts';
import { MetricsRegistry } from './exposition/metrics-registry.ts';
import { exposeNodeMetrics } from './node-metrics.ts';
import type { ProcessMetricsOptions, WorkerCounts } from './process-metrics.ts';
import { defineProcessMetrics, defineWorkerMetrics } from './process-metrics.ts';
import { RouteMetrics } from './route-metrics.ts';
import { definePollMetrics, PollMetrics } from './poll-metrics.ts';
import type { TimeSeries } from './counter-set.ts';
import { StateMetrics } from './state-metrics.ts';
import { StoreMetrics } from './store-metrics.ts';
import { UpstreamMetrics } from './upstreams/upstream-metrics.ts';

export interface MetricsOptions extends ProcessMetricsOptions {
  /** Configured routes, read at each scrape: each has series from the start. Others get theirs when first seen. */
  readonly routes: Iterable<string>;
  /** Those that deliver, read at each scrape: they have series of deliveries from the start. None when absent. */
  readonly delivering?: Iterable<string>;
  /** Names from `clients.names`; none unless given. */
  readonly clientNames?: Iterable<string>;
  /** Called once a scrape. */
  readonly view: () => GateView;
  /** None when absent. */
  readonly endpoints?: () => readonly EndpointView[];
  /** The monotonic clock of the times in `view`. */
  readonly now: () => Millis;
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  /** Called twice a scrape; none when absent. */
  readonly bounds?: () => Iterable<ResourceBound>;
  /** The store that replicas share their limits through; undefined if they share none. */
  readonly store?: SharedStore | undefined;
  /** The keys of writes in that store. */
  readonly sharedKeys?: () => readonly SharedKeyCounts[];
  /** Rows of the database of this process with the keys of writes, by state; no metrics of it when absent. */
  readonly storedWrites?: (() => Readonly<Record<string, number>>) | undefined;
  /** The stored deliveries; no metrics of them when absent. */
  readonly deliveries?: (() => DeliveryTotals | undefined) | undefined;
  /** The result of the last reload and the time of the last success; no such metrics when absent. */
  readonly config?: () => ConfigReloadState;
  /** The certificates of the configuration; no such metric when absent. */
  readonly certificates?: () => Iterable<CertificateExpiry>;
  /** Given only where several processes serve. */
  readonly workers?: () => WorkerCounts;
}

export interface Metrics {
  /** Counts an event in some ten nanoseconds, without allocating. */
  readonly listen: EventSink;
  /** The metrics of Tidegate and of Node. */
  readonly registry: MetricsRegistry;
  /** Counts a commit of the database. */
  readonly countCommit: (isStored: boolean, took: Millis) => void;
  /** Shows the counters of deliveries of a route before the first event, so that an alert sees the first increase. */
  readonly addDeliveryRoute: (route: string) => void;
  /** The counters that rates are computed from. Costs nothing until it is called. */
  readonly counts: () => RequestCounts;
}

/**
 * Counts events and exposes them to Prometheus. The configuration bounds the number of series, whatever clients and upstreams
 * send.
 */
export function createMetrics(options: MetricsOptions): Metrics {
  const routes = new BoundedNameMap(
    (name) => new RouteMetrics(name, options.wallClock),
    () => options.routes,
  );
  const upstreams = new BoundedNameMap(
    (name) => new UpstreamMetrics(name, options.wallClock),
    () => options.upstreams,
  );
  const clients = new ClientMetrics(options.clientNames ?? []);
  const endpoints = new EndpointMetrics(options.endpoints ?? (() => []));
  const fallbacks = new FallbackMetrics();
  const accounts = new AccountMetrics();
  const costs = new CostMetrics();
  const overloads: TimeSeries = { labels: {}, value: 0 };
  const polls = new BoundedNameMap(
    (name) => new PollMetrics(name),
    () => [],
  );
  const deliveries = new BoundedNameMap(
    (name) => new DeliveryMetrics(name),
    () => options.delivering ?? [],
  );
  const store = options.store === undefined ? undefined : new StoreMetrics(options.store, options.sharedKeys);

  const state = options.storedWrites === undefined ? undefined : new StateMetrics(options.storedWrites);

  const readSnapshot = cachePerMicrotask((): GateSnapshot => {
    const view = options.view();
    const origin = options.wallClock() - options.now();
    return { view, limits: summarizeLimits(view, upstreams.names()), clockOrigin: origin };
  });

  const registry = new MetricsRegistry();
  registerFamilies(registry, [
    ...defineEventMetrics({ routes, upstreams, clients }),
    // With a shared store, each worker knows the state of a limit; else only the primary does.
    ...defineLimitMetrics(readSnapshot, store === undefined ? 'primary' : 'max'),
    ...defineQuotaMetrics(readSnapshot),
    ...defineBoundMetrics(options.bounds ?? (() => [])),
    ...endpoints.families(),
    ...fallbacks.families(),
    ...costs.families(),
    ...accounts.families(() => readSnapshot().view),
    ...definePollMetrics(polls),
    ...defineDeliveryMetrics(deliveries, options.deliveries, options.wallClock),
    ...(store?.families() ?? []),
    ...(state?.families() ?? []),
    ...defineProcessMetrics(options, overloads),
  ]);
  if (options.config !== undefined) registerFamilies(registry, defineConfigMetrics(options.config));
  if (options.certificates !== undefined) registerFamilies(registry, defineCertificateMetrics(options.certificates));
  if (options.workers !== undefined) registerFamilies(registry, defineWorkerMetrics(options.workers));
  exposeNodeMetrics(registry);

  const counts = (): RequestCounts => {
    const ofRoutes = sumRequestCounts(routes.flatMap((route) => [route.counts()]));
    const ofUpstreams = [...upstreams.names()].map((name) => [name, upstreams.get(name).counts()] as const);
    return { ...ofRoutes, upstreams: new Map(ofUpstreams) };
  };
  const listen = countEvents({
    ...{ routes, upstreams, clients, endpoints, accounts, fallbacks, overloads },
    ...{ polls, deliveries, costs, store },
  });
  const countCommit: Metrics['countCommit'] = (isStored, took) => state?.countCommit(isStored, took);
  return { listen, registry, countCommit, addDeliveryRoute: (route) => void deliveries.get(route), counts };
}

/**
 * Caches a value until the next microtask. prom-client 15.1.3 reads all metrics of a scrape synchronously, so all of them show
 * the same state, and the gate is read once.
 */
function cachePerMicrotask<T>(read: () => T): () => T {
  let reading: { readonly value: T } | undefined;
  return () => {
    if (reading === undefined) {
      reading = { value: read() };
      queueMicrotask(() => {
        reading = undefined;
      });
    }
    return reading.value;
  };
}
