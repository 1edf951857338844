import type { ByName } from './bounded-name-map.ts';
import type { ClientSeries } from './client-metrics.ts';
import type { Family } from './exposition/metric-family.ts';
import type { RouteSeries } from './route-metrics.ts';
import type { UpstreamSeries } from './upstream-metrics.ts';

export interface Counted {
  readonly routes: ByName<RouteSeries>;
  readonly upstreams: ByName<UpstreamSeries>;
  readonly clients: ClientSeries;
}

/** The metrics that events feed. */
export function describeCounted({ routes, upstreams, clients }: Counted): Family[] {
  return [
    {
      name: 'tidegate_requests_total',
      help: "Requests that ended, by what the client was told: code is the status, or 'other' where the client had gone before a response; outcome 'unknown' is a write that may have happened.",
      type: 'counter',
      samples: () => routes.gather((route) => route.requests()),
    },
    {
      name: 'tidegate_retry_after_total',
      help: 'Answers with a Retry-After, by status and by who has written it: tidegate, or the upstream (of its answers, 429 and 503 are counted).',
      type: 'counter',
      samples: () => routes.gather((route) => route.retryAfter()),
    },
    histogram(
      'tidegate_request_duration_seconds',
      "From the arrival of a request to the end of its response, waits and retries included; code_class 'other' where the client had gone before a response.",
      (name) => routes.gather((route) => route.durationSamples(name)),
    ),
    {
      name: 'tidegate_requests_in_flight',
      help: 'Requests that have arrived and not ended: queued, at the upstream, asleep before a retry or a poll, or being answered.',
      type: 'gauge',
      samples: () => routes.gather((route) => [route.inFlight]),
    },
    {
      name: 'tidegate_upgraded_connections',
      help: 'Connections open now that have changed to WebSocket; their requests count as in flight.',
      type: 'gauge',
      samples: () => routes.gather((route) => [route.upgraded]),
    },
    {
      name: 'tidegate_upgraded_bytes_total',
      help: 'Bytes of connections that had changed to WebSocket, counted when they end.',
      type: 'counter',
      samples: () => routes.gather((route) => [route.toUpstream, route.toClient]),
    },
    {
      name: 'tidegate_upstream_attempts_total',
      help: 'Sends to the upstream, by their number within the request, or its poll, and by status or error: connect, reset, timeout, aborted (the client went away).',
      type: 'counter',
      samples: () => upstreams.gather((upstream) => upstream.attempts.values()),
    },
    histogram(
      'tidegate_upstream_attempt_duration_seconds',
      "From sending to the response head, or to the error (code_class 'error').",
      (name) => upstreams.gather((upstream) => upstream.attemptDurationSamples(name)),
    ),
    {
      name: 'tidegate_upstream_reports_total',
      help: 'Answers of the upstream to requests that were checked here and sent by others, as these have reported them, by status.',
      type: 'counter',
      samples: () => upstreams.gather((upstream) => upstream.reports.values()),
    },
    {
      name: 'tidegate_upstream_throttled_total',
      help: "Answers that throttled us, by the reason the upstream gives; 'unspecified' where it gives none, 'other' for all reasons after the first 32.",
      type: 'counter',
      samples: () => upstreams.gather((upstream) => upstream.throttled.values()),
    },
    {
      name: 'tidegate_retries_total',
      help: 'Retries begun (in observe mode: that would have been), by what made the attempt before fail.',
      type: 'counter',
      samples: () => upstreams.gather((upstream) => upstream.retries.values()),
    },
    {
      name: 'tidegate_retry_outcomes_total',
      help: 'Requests that wished to be retried, by how that ended.',
      type: 'counter',
      samples: () => upstreams.gather((upstream) => upstream.retryEnds.values()),
    },
    {
      name: 'tidegate_slow_readers_total',
      help: 'Answers that were broken off because their clients left them unread: slow_reader (more slowly than limits.readRate), gave_way (others waited for the connection).',
      type: 'counter',
      samples: () => upstreams.gather((upstream) => upstream.readerCuts.values()),
    },
    {
      name: 'tidegate_idempotency_keys_total',
      help: 'What became of idempotency keys: minted here, awaited (another request with it was under way), key_in_use and key_expired (refused with 409).',
      type: 'counter',
      samples: () => upstreams.gather((upstream) => upstream.keys.values()),
    },
    histogram(
      'tidegate_retry_backoff_seconds',
      "Delays before retries, by what set them: our backoff, or the upstream's hint.",
      (name) => upstreams.gather((upstream) => upstream.backoffSamples(name)),
    ),
    {
      name: 'tidegate_ratelimit_decisions_total',
      help: 'Answers of the limiter to requests and retries: passed at once, queued, or refused; in observe mode all are forwarded at once, and this is what would have been.',
      type: 'counter',
      samples: () => upstreams.gather((upstream) => upstream.decisions.values()),
    },
    {
      name: 'tidegate_ratelimit_cuts_total',
      help: 'Times the rate of a limit was cut, by cause.',
      type: 'counter',
      samples: () => upstreams.gather((upstream) => upstream.cuts.values()),
    },
    histogram(
      'tidegate_queue_wait_seconds',
      'Time in the queue of requests that left it, admitted or not; in observe mode it would have been that long.',
      (name) => upstreams.gather((upstream) => upstream.queueWait.samples(name)),
    ),
    {
      name: 'tidegate_client_requests_total',
      help: 'Requests that ended, of clients that the configuration names (clients.names); none are told of others.',
      type: 'counter',
      samples: () => clients.ofNamed(),
    },
    {
      name: 'tidegate_client_cuts_total',
      help: "Times a client's allowance was cut.",
      type: 'counter',
      samples: () => [clients.cuts],
    },
    {
      name: 'tidegate_client_transitions_total',
      help: 'Changes of state of clients.',
      type: 'counter',
      samples: () => clients.transitions(),
    },
    {
      name: 'tidegate_client_evictions_total',
      help: 'Clients forgotten to make room: calm ones lose nothing by it, troubled ones their backoff.',
      type: 'counter',
      samples: () => clients.evictions.values(),
    },
  ];
}

function histogram(name: string, help: string, samples: (name: string) => ReturnType<Family['samples']>): Family {
  return { name, help, type: 'histogram', samples: () => samples(name) };
}
