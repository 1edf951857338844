import type { Bound } from '../../core/overload/resource-bound.ts';
import type { EndpointView, GateView, Listen } from '../../core/events/proxy-events.ts';
import type { SharedStore } from '../../core/events/store-events.ts';
import type { Millis, Mode } from '../../core/exchange/attempt-outcome.ts';
import { describeBounds } from './bound-metrics.ts';
import { ByName } from './bounded-name-map.ts';
import type { Counts } from './request-counts.ts';
import { addCounts } from './request-counts.ts';
import { ClientSeries } from './client-metrics.ts';
import type { ConfigReading } from './config-metrics.ts';
import { describeConfig } from './config-metrics.ts';
import { EndpointSeries } from './endpoint-metrics.ts';
import { describeCounted } from './event-metrics.ts';
import type { Family } from './exposition/metric-family.ts';
import { exposeFamilies } from './exposition/metric-family.ts';
import { describeGate, type Sight } from './limit-metrics.ts';
import { summarizeGate } from './limit-summary.ts';
import { MetricsRegistry } from './exposition/metrics-registry.ts';
import { exposeNodeMetrics } from './node-metrics.ts';
import { RouteSeries } from './route-metrics.ts';
import { describePolls, PollSeries } from './poll-metrics.ts';
import type { Series } from './counter-set.ts';
import { StoreSeries } from './store-metrics.ts';
import { UpstreamSeries } from './upstream-metrics.ts';

export interface MetricsOptions {
  /** Configured names, which have series from the start; others get theirs when first seen. */
  readonly routes: Iterable<string>;
  readonly upstreams: Iterable<string>;
  /** Those of them whose certificate nobody verifies; none unless given. */
  readonly insecure?: ReadonlySet<string>;
  /** Clients that are told apart; none unless given. */
  readonly clientNames?: Iterable<string>;
  /** Called once a scrape. */
  readonly view: () => GateView;
  /** None when absent. */
  readonly endpoints?: () => readonly EndpointView[];
  /** The monotonic clock that `view` tells times of. */
  readonly now: () => Millis;
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  readonly replayBufferBytes: () => number;
  /** What the stories of requests take, about; 0 where none are kept. */
  readonly storyBytes?: () => number;
  /** Called twice a scrape; none when absent. */
  readonly bounds?: () => Iterable<Bound>;
  /** Of new requests, which this process turns away because it is overloaded itself. */
  readonly shedShare?: () => number;
  readonly build: { readonly version: string };
  readonly mode: Mode;
  /** What replicas share their limits through; undefined: they do not. */
  readonly store?: SharedStore | undefined;
  /** How the last reading of the configuration ended, and when one ended well; no such metrics when absent. */
  readonly config?: () => ConfigReading;
  /** Where several processes serve: how many do, and how many had to be replaced. */
  readonly workers?: () => { readonly serving: number; readonly restarts: number };
}

export interface Metrics {
  /** Counts an event, in some ten nanoseconds and without allocating. */
  readonly listen: Listen;
  /** All metrics of Tidegate and those of Node. */
  readonly registry: MetricsRegistry;
  /** What rates are made of. Costs nothing until it is asked for. */
  readonly counts: () => Counts;
}

interface Counters {
  readonly routes: ByName<RouteSeries>;
  readonly upstreams: ByName<UpstreamSeries>;
  readonly clients: ClientSeries;
  readonly endpoints: EndpointSeries;
  readonly overloads: Series;
  readonly polls: ByName<PollSeries>;
  readonly store: StoreSeries | undefined;
}

const MODES: readonly Mode[] = ['enforce', 'observe'];

/** Counts what happens and shows it to Prometheus. The number of series is bounded by the configuration, whatever clients and upstreams send. */
export function createMetrics(options: MetricsOptions): Metrics {
  const routes = new ByName((name) => new RouteSeries(name, options.wallClock), options.routes);
  const upstreams = new ByName((name) => new UpstreamSeries(name, options.wallClock), options.upstreams);
  const clients = new ClientSeries(options.clientNames ?? []);
  const endpoints = new EndpointSeries(options.endpoints ?? (() => []));
  const overloads: Series = { labels: {}, value: 0 };
  const polls = new ByName((name) => new PollSeries(name), []);
  const store = options.store === undefined ? undefined : new StoreSeries(options.store);

  const look = oncePerTurn((): Sight => {
    const view = options.view();
    const origin = options.wallClock() - options.now();
    return { view, limits: summarizeGate(view, upstreams.names()), origin };
  });

  const registry = new MetricsRegistry();
  exposeFamilies(registry, [
    ...describeCounted({ routes, upstreams, clients }),
    // In a store that they share, each worker knows how a limit stands.
    ...describeGate(look, store === undefined ? 'primary' : 'max'),
    ...describeBounds(options.bounds ?? (() => [])),
    ...endpoints.families(),
    ...describePolls(polls),
    ...(store?.families() ?? []),
    {
      name: 'tidegate_replay_buffer_bytes',
      help: 'Request bodies held for a possible retry.',
      type: 'gauge',
      samples: () => [{ labels: {}, value: options.replayBufferBytes() }],
    },
    {
      name: 'tidegate_story_bytes',
      help: 'Memory that stories of requests take, which explanations are made of; about.',
      type: 'gauge',
      samples: () => [{ labels: {}, value: options.storyBytes?.() ?? 0 }],
    },
    {
      name: 'tidegate_upstream_tls_insecure',
      help: '1 for an upstream whose certificate is not verified (tls.insecure), else 0.',
      type: 'gauge',
      across: 'max',
      samples: () =>
        [...options.upstreams].map((upstream) => ({
          labels: { upstream },
          value: options.insecure?.has(upstream) === true ? 1 : 0,
        })),
    },
    {
      name: 'tidegate_overload_shed_ratio',
      help: 'Share of new requests that are turned away because this process itself cannot keep up.',
      type: 'gauge',
      across: 'max',
      samples: () => [{ labels: {}, value: options.shedShare?.() ?? 0 }],
    },
    {
      name: 'tidegate_overload_episodes_total',
      help: 'Times this process could not keep up.',
      type: 'counter',
      samples: () => [overloads],
    },
    {
      name: 'tidegate_build_info',
      help: '1, labelled with the version that runs.',
      type: 'gauge',
      across: 'max',
      samples: () => [{ labels: { version: options.build.version }, value: 1 }],
    },
    {
      name: 'tidegate_mode',
      help: '1 for the mode that runs: in observe mode, decisions, retries, waits and states of clients tell what would have been.',
      type: 'gauge',
      across: 'max',
      samples: () => MODES.map((mode) => ({ labels: { mode }, value: mode === options.mode ? 1 : 0 })),
    },
  ]);
  if (options.config !== undefined) exposeFamilies(registry, describeConfig(options.config));
  if (options.workers !== undefined) exposeFamilies(registry, describeWorkers(options.workers));
  exposeNodeMetrics(registry);

  const counts = (): Counts => {
    const ofRoutes = addCounts(routes.gather((route) => [route.counts()]));
    const ofUpstreams = [...upstreams.names()].map((name) => [name, upstreams.get(name).counts()] as const);
    return { ...ofRoutes, upstreams: new Map(ofUpstreams) };
  };
  return { listen: countInto({ routes, upstreams, clients, endpoints, overloads, polls, store }), registry, counts };
}

function describeWorkers(look: NonNullable<MetricsOptions['workers']>): Family[] {
  return [
    {
      name: 'tidegate_workers',
      help: 'Processes that serve.',
      type: 'gauge',
      across: 'primary',
      samples: () => [{ labels: {}, value: look().serving }],
    },
    {
      name: 'tidegate_worker_restarts_total',
      help: 'Times a process that had ended was replaced.',
      type: 'counter',
      across: 'primary',
      samples: () => [{ labels: {}, value: look().restarts }],
    },
  ];
}

/** The events of every request come first: a switch over strings compares one after the other. */
function countInto({ routes, upstreams, clients, endpoints, overloads, polls, store }: Counters): Listen {
  return (event) => {
    switch (event.type) {
      case 'arrived':
        routes.get(event.route).arrived();
        break;
      case 'decision':
        upstreams.get(event.upstream).decisions.count(event.decision);
        break;
      case 'attempt':
        upstreams.get(event.upstream).attempted(event);
        break;
      case 'done':
        routes.get(event.record.route).done(event.record);
        if (event.record.clientName !== undefined) clients.done(event.record.clientName, event.record.outcome);
        break;
      case 'dequeued':
        upstreams.get(event.upstream).queueWait.observe(event.waited);
        break;
      case 'reported':
        upstreams.get(event.upstream).reports.count(event.status);
        break;
      case 'throttled':
        upstreams.get(event.upstream).throttledFor(event.reason);
        break;
      case 'retry':
        upstreams.get(event.upstream).retried(event.reason, event.source, event.delay);
        break;
      case 'retry-end':
        upstreams.get(event.upstream).retryEnds.count(event.outcome);
        break;
      case 'key':
      case 'reader-cut':
        upstreams.get(event.upstream).note(event);
        break;
      case 'cut':
        upstreams.get(event.upstream).cut(event.cause, event.limit);
        break;
      case 'client-cut':
        clients.cut();
        break;
      case 'client-state':
        clients.changed(event.from, event.to);
        break;
      case 'client-evicted':
        clients.evictions.count(event.cause);
        break;
      case 'upgraded':
        routes.get(event.route).changedProtocol();
        break;
      case 'endpoint-ejected':
        endpoints.ejected(event.upstream, event.endpoint);
        break;
      case 'overload':
        if (event.began) overloads.value += 1;
        break;
      case 'poll':
        polls.get(event.route).polls.count(event.outcome);
        break;
      case 'poll-wait':
        polls.get(event.route).changed(event.waited);
        break;
      case 'poll-slowed':
        polls.get(event.route).slowed.value += 1;
        break;
      case 'store-request':
      case 'store-degraded':
        store?.count(event);
        break;
      case 'endpoint-returned':
      case 'reload':
      case 'limit-state':
      case 'store-deaf':
      case 'operator':
        // States are gauges: read when somebody scrapes.
        break;
      default:
        event satisfies never;
    }
  };
}

/**
 * Remembers a reading until the current turn ends. prom-client 15.1.3 asks all metrics within one turn of a scrape,
 * so that all of them tell of the same moment and the gate is read once.
 */
function oncePerTurn<T>(read: () => T): () => T {
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
