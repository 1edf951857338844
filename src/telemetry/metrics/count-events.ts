import type { EventSink } from '../../core/events/proxy-events.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { AccountMetrics } from './upstreams/account-metrics.ts';
import type { BoundedNameMap } from './bounded-name-map.ts';
import type { ClientMetrics } from './client-metrics.ts';
import type { TimeSeries } from './counter-set.ts';
import type { DeliveryMetrics } from './delivery-metrics.ts';
import type { CostMetrics } from './upstreams/cost-metrics.ts';
import type { EndpointMetrics } from './upstreams/endpoint-metrics.ts';
import type { FallbackMetrics } from './upstreams/fallback-metrics.ts';
import type { PollMetrics } from './poll-metrics.ts';
import type { RouteMetrics } from './route-metrics.ts';
import type { StoreMetrics } from './store-metrics.ts';
import type { UpstreamMetrics } from './upstreams/upstream-metrics.ts';

export interface MetricCounters {
  readonly routes: BoundedNameMap<RouteMetrics>;
  readonly upstreams: BoundedNameMap<UpstreamMetrics>;
  readonly clients: ClientMetrics;
  readonly endpoints: EndpointMetrics;
  readonly fallbacks: FallbackMetrics;
  readonly accounts: AccountMetrics;
  readonly costs: CostMetrics;
  readonly overloads: TimeSeries;
  readonly polls: BoundedNameMap<PollMetrics>;
  readonly deliveries: BoundedNameMap<DeliveryMetrics>;
  readonly store: StoreMetrics | undefined;
}

/** Counts each event. The events of every request come first, because a switch over strings compares them in order. */
export function countEvents({
  routes,
  upstreams,
  clients,
  endpoints,
  fallbacks,
  accounts,
  costs,
  overloads,
  polls,
  deliveries,
  store,
}: MetricCounters): EventSink {
  return (event) => {
    switch (event.type) {
      case 'arrived':
        routes.get(event.route).countArrival();
        break;
      case 'decision':
        upstreams.get(event.upstream).decisions.count(event.decision);
        break;
      case 'attempt':
        upstreams.get(event.upstream).countAttempt(event);
        break;
      case 'done':
        routes.get(event.record.route).countRequest(event.record);
        if (event.record.delivery !== undefined) break;
        if (isRefusal(event.record)) upstreams.get(event.record.upstream).countRefusal(event.record);
        if (event.record.clientName !== undefined) clients.countRequest(event.record.clientName, event.record.outcome);
        break;
      case 'dequeued':
        upstreams.get(event.upstream).queueWait.observe(event.waited);
        break;
      case 'reported':
        upstreams.get(event.upstream).reports.count(event.status);
        break;
      case 'throttled':
        upstreams.get(event.upstream).countThrottled(event.reason, event.status);
        break;
      case 'retry':
        upstreams.get(event.upstream).countRetry(event.reason, event.source, event.delay);
        break;
      case 'retry-end':
        upstreams.get(event.upstream).retryEnds.count(event.outcome);
        break;
      case 'key':
      case 'reader-cut':
        upstreams.get(event.upstream).countKeyOrReader(event);
        break;
      case 'cut':
        upstreams.get(event.upstream).countDecrease(event.cause, event.limit);
        break;
      case 'client-cut':
        clients.countDecrease();
        break;
      case 'client-state':
        clients.countTransition(event.from, event.to);
        break;
      case 'client-evicted':
        clients.evictions.count(event.cause);
        break;
      case 'upgraded':
        routes.get(event.route).countUpgrade();
        break;
      case 'signature':
        routes.get(event.route).countSignature(event.result);
        break;
      case 'auth-rejected':
        clients.authRejections.count(event.why);
        break;
      case 'write-interrupted':
        routes.get(event.route).interruptedWrites.value += 1;
        break;
      case 'endpoint-ejected':
        endpoints.countEjection(event.upstream, event.endpoint);
        break;
      case 'fallback':
        fallbacks.count(event.upstream, event.why);
        break;
      case 'endpoint-check':
        endpoints.countCheck(event.upstream, event.endpoint, event.passed);
        break;
      case 'account-result':
        accounts.countResult(event.upstream, event.account, event.result);
        break;
      case 'cost-settled':
      case 'cost-unread':
        costs.count(event);
        break;
      case 'overload':
        if (event.began) overloads.value += 1;
        break;
      case 'poll':
        polls.get(event.route).polls.count(event.outcome);
        break;
      case 'poll-wait':
        polls.get(event.route).countWaitChange(event.waited);
        break;
      case 'poll-slowed':
        polls.get(event.route).slowed.value += 1;
        break;
      case 'delivery':
        deliveries.get(event.route).countEvent(event.event, event.age);
        break;
      case 'delivery-attempt':
        deliveries.get(event.route).attempts.count(event.reason);
        break;
      case 'store-request':
      case 'store-degraded':
        store?.count(event);
        break;
      case 'endpoint-returned':
      case 'account-quarantined':
      case 'account-returned':
      case 'http2-violated':
      case 'reload':
      case 'limit-state':
      case 'store-deaf':
      case 'operator':
      case 'operator-audit':
      case 'certificate':
      case 'auth-source':
      case 'api-key-expires':
      case 'upstream-failing':
      case 'upstream-recovered':
        // States are gauges, read at each scrape.
        break;
      default:
        event satisfies never;
    }
  };
}

/** True if Tidegate refused the request at its upstream, or the request timed out in the queue. */
function isRefusal({ outcome, upstream }: RequestRecord): boolean {
  return (outcome === 'refused' || outcome === 'queue_timeout') && upstream !== '';
}
