import type { BoundedNameMap } from './bounded-name-map.ts';
import type { ClientMetrics } from './client-metrics.ts';
import type { MetricFamily } from './exposition/metric-family.ts';
import type { RouteMetrics } from './route-metrics.ts';
import type { UpstreamMetrics } from './upstreams/upstream-metrics.ts';

export interface EventMetricSources {
  readonly routes: BoundedNameMap<RouteMetrics>;
  readonly upstreams: BoundedNameMap<UpstreamMetrics>;
  readonly clients: ClientMetrics;
}

/** The metrics that count events. */
export function defineEventMetrics({ routes, upstreams, clients }: EventMetricSources): MetricFamily[] {
  return [
    {
      name: 'tidegate_requests_total',
      help: "Requests that ended, by what the client received: code is the status, or 'other' where the client disconnected before a response; outcome 'unknown' is a write that may have taken effect.",
      type: 'counter',
      samples: () => routes.flatMap((route) => route.requests()),
    },
    {
      name: 'tidegate_request_outcomes_total',
      help: 'Requests that ended, by outcome alone. The series of each route exist from the start, at 0: alert on these.',
      type: 'counter',
      samples: () => routes.flatMap((route) => route.outcomeSamples()),
    },
    {
      name: 'tidegate_responses_total',
      help: "Requests that ended, by the class of the status that the client received; 'other' where it disconnected before a response. The series of each route exist from the start, at 0: alert on these.",
      type: 'counter',
      samples: () => routes.flatMap((route) => route.codeClassSamples()),
    },
    {
      name: 'tidegate_retry_after_total',
      help: 'Responses with a Retry-After, by status and by who wrote it: tidegate or the upstream (of its responses, 429 and 503 are counted).',
      type: 'counter',
      samples: () => routes.flatMap((route) => route.retryAfter()),
    },
    histogram(
      'tidegate_request_duration_seconds',
      "Time from the arrival of a request to the end of its response, waits and retries included; code_class 'other' where the client disconnected before a response.",
      (name) => routes.flatMap((route) => route.durationSamples(name)),
    ),
    {
      name: 'tidegate_requests_in_flight',
      help: 'Requests in flight: queued, at the upstream, waiting for a retry or a poll, or being answered.',
      type: 'gauge',
      samples: () => routes.flatMap((route) => [route.inFlight]),
    },
    {
      name: 'tidegate_upgraded_connections',
      help: 'Open WebSocket connections; their requests count as in flight.',
      type: 'gauge',
      samples: () => routes.flatMap((route) => [route.upgraded]),
    },
    {
      name: 'tidegate_upgraded_bytes_total',
      help: 'Bytes of WebSocket connections, counted when they end.',
      type: 'counter',
      samples: () => routes.flatMap((route) => [route.toUpstream, route.toClient]),
    },
    {
      name: 'tidegate_writes_interrupted_total',
      help: 'Writes without an idempotency key that were being sent when their process ended, with state.store sqlite.',
      type: 'counter',
      samples: () => routes.flatMap((route) => [route.interruptedWrites]),
    },
    {
      name: 'tidegate_signatures_total',
      help: 'Requests of routes with verify, by whether their signature is valid: valid, missing, malformed, mismatch, too_old, too_new.',
      type: 'counter',
      samples: () => routes.flatMap((route) => route.signatures()),
    },
    {
      name: 'tidegate_upstream_attempts_total',
      help: 'Attempts, by their number within the request or its poll, and by status or error: connect, reset, timeout, aborted (the client disconnected), too_many_files (no descriptor was free).',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.attempts.values()),
    },
    {
      name: 'tidegate_upstream_connect_failures_total',
      help: 'Attempts for which no connection could be opened, by cause. The series of each upstream exist from the start, at 0: alert on these.',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.connectFailures.values()),
    },
    histogram(
      'tidegate_upstream_attempt_duration_seconds',
      "Time from sending an attempt to its response head, or to its error (code_class 'error').",
      (name) => upstreams.flatMap((upstream) => upstream.attemptDurationSamples(name)),
    ),
    {
      name: 'tidegate_upstream_reports_total',
      help: 'Reported responses of the upstream to requests that were checked here and sent by another proxy, by status.',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.reports.values()),
    },
    {
      name: 'tidegate_upstream_throttled_total',
      help: "Throttled responses, by the reason the upstream gives; 'unspecified' where it gives none, 'other' for all reasons after the first 32.",
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.throttled.values()),
    },
    {
      name: 'tidegate_retries_total',
      help: 'Retries started (in observe mode: that would have been), by the failure of the previous attempt.',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.retries.values()),
    },
    {
      name: 'tidegate_retry_outcomes_total',
      help: 'Requests with a failure worth a retry, by how the retries ended.',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.retryEnds.values()),
    },
    {
      name: 'tidegate_slow_readers_total',
      help: 'Responses aborted because their clients did not read them: slow_reader (below limits.readRate), gave_way (another request waited for the connection or the place in flight).',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.readerCuts.values()),
    },
    {
      name: 'tidegate_idempotency_keys_total',
      help: 'Idempotency keys: minted (generated here), awaited (another request with the key was in flight), key_in_use and key_expired (rejected with 409), key_store_lost (503), key_reused (422), key_ambiguous (409), key_overused (503), replayed (answered with a kept response), decided_locally (the store was lost, and onStoreLost is local).',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.keys.values()),
    },
    histogram(
      'tidegate_retry_backoff_seconds',
      'Delays before retries, by source: the configured backoff, or a hint of the upstream.',
      (name) => upstreams.flatMap((upstream) => upstream.backoffSamples(name)),
    ),
    {
      name: 'tidegate_ratelimit_decisions_total',
      help: 'Decisions on requests and retries: passed at once, queued, or refused; in observe mode all are forwarded at once, and this is what would have been.',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.decisions.values()),
    },
    {
      name: 'tidegate_client_quota_refusals_total',
      help: 'Requests refused because their client, or its class, had used up its quota.',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => [upstream.clientQuotaRefusals]),
    },
    {
      name: 'tidegate_ratelimit_cuts_total',
      help: 'Rate cuts, by cause.',
      type: 'counter',
      samples: () => upstreams.flatMap((upstream) => upstream.decreases.values()),
    },
    histogram(
      'tidegate_queue_wait_seconds',
      'Time in the queue, of requests that left it, admitted or not; in observe mode the time it would have been.',
      (name) => upstreams.flatMap((upstream) => upstream.queueWait.samples(name)),
    ),
    {
      name: 'tidegate_client_requests_total',
      help: 'Requests that ended, of the clients in clients.names.',
      type: 'counter',
      samples: () => clients.namedRequests(),
    },
    {
      name: 'tidegate_client_cuts_total',
      help: 'Cuts of client allowances.',
      type: 'counter',
      samples: () => [clients.decreases],
    },
    {
      name: 'tidegate_client_transitions_total',
      help: 'State changes of clients.',
      type: 'counter',
      samples: () => clients.transitions(),
    },
    {
      name: 'tidegate_client_evictions_total',
      help: 'Clients evicted to make room: calm ones had no state to lose, troubled ones lose their backoff.',
      type: 'counter',
      samples: () => clients.evictions.values(),
    },
    {
      name: 'tidegate_auth_rejected_total',
      help: 'Requests rejected because their client is not known, or may not do what it asks for (clients.auth).',
      type: 'counter',
      samples: () => clients.authRejections.values(),
    },
  ];
}

function histogram(
  name: string,
  help: string,
  samples: (name: string) => ReturnType<MetricFamily['samples']>,
): MetricFamily {
  return { name, help, type: 'histogram', samples: () => samples(name) };
}
