/** The admin API's status of an idle Tidegate with one upstream. */
import type {
  ClientRow,
  DeliveryRow,
  NestedLimitStatus,
  ProcessStatus,
  UpstreamStatus,
} from '../../../src/admin/page/api-types.ts';

const AT = '2026-11-22T03:00:00.000Z';

export function upstreamOf(change: Partial<UpstreamStatus> = {}): UpstreamStatus {
  return {
    name: 'payments',
    scope: 'upstream',
    state: 'open',
    until: null,
    untilWhat: null,
    blockedBy: null,
    blockedCause: null,
    rate: null,
    ceiling: null,
    places: null,
    pinned: null,
    learnedRate: null,
    sentPerSecond: 0,
    acceptedPerSecond: 0,
    throttledPerSecond: 0,
    retriesPerSecond: 0,
    failedPerSecond: 0,
    failedShare: 0,
    lastFailure: null,
    refusedPerSecond: 0,
    mostRefused: null,
    attempts: 1000,
    queued: 0,
    inFlight: 0,
    quotaLeft: null,
    budgetLeft: 1,
    budgetSpent: false,
    p50Seconds: null,
    p99Seconds: null,
    limits: 1,
    nestedLimits: [],
    quotas: [],
    accounts: [],
    endpoints: [{ endpoint: 'api.example.com:443', healthy: true, failure: null }],
    ...change,
  };
}

export function nestedOf(change: Partial<NestedLimitStatus> = {}): NestedLimitStatus {
  return {
    name: 'endpoint',
    scope: 'upstream',
    which: '',
    state: 'open',
    until: null,
    untilWhat: null,
    blockedCause: null,
    rate: null,
    ceiling: null,
    places: null,
    quotaLeft: null,
    limits: 1,
    queued: 0,
    inFlight: 0,
    ...change,
  };
}

export function statusOf(change: Partial<ProcessStatus> = {}): ProcessStatus {
  const none = {
    forwarded: 0,
    accepted: 0,
    checked: 0,
    preflight: 0,
    recovered: 0,
    coalesced: 0,
    replayed: 0,
    refused: 0,
    queue_timeout: 0,
    upstream_error: 0,
    unknown: 0,
    client_gone: 0,
  };
  return {
    at: AT,
    version: '0.1.0',
    mode: 'enforce',
    observedUpstreams: [],
    phase: 'ready',
    startedAt: '2026-11-22T02:00:00.000Z',
    workers: 1,
    config: { loadedAt: '2026-11-22T02:00:00.000Z', lastReload: null },
    store: { kind: 'memory', degraded: false, problem: null },
    deliveries: null,
    certificates: [],
    actions: { allowed: true, reason: null },
    requests: {
      perSecond: 0,
      failedPerSecond: 0,
      failed: 0,
      inFlight: 0,
      p50Seconds: null,
      p99Seconds: null,
      outcomes: none,
    },
    upstreams: [upstreamOf()],
    clients: {
      tracked: 0,
      distinct: 0,
      byState: { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
      allowance: { min: 1, mean: 1 },
    },
    ...change,
  };
}

export const NO_DELIVERIES: NonNullable<ProcessStatus['deliveries']> = {
  counts: { waiting: 0, sending: 0, delivered: 0, dead: 0, canceled: 0, unknown: 0 },
  bytes: 0,
  oldestAt: null,
};

export function deliveryOf(change: Partial<DeliveryRow> = {}): DeliveryRow {
  return {
    id: '0199f3b0-0000-7000-8000-000000000000',
    kind: 'message',
    route: '/hooks',
    upstream: 'shop',
    state: 'waiting',
    acceptedAt: AT,
    nextAttemptAt: null,
    sendingSince: null,
    endedAt: null,
    attempts: 0,
    lastAttempt: null,
    eventId: null,
    orderKey: null,
    client: '9f86d081884c7d65',
    ...change,
  };
}

export function clientOf(change: Partial<ClientRow> = {}): ClientRow {
  return {
    key: '9f86d081884c7d65',
    name: null,
    upstream: 'payments',
    state: 'normal',
    allowance: 1,
    demandPerSecond: 0,
    sharePerSecond: null,
    queued: 0,
    heldUntil: null,
    nextSlot: null,
    calmAt: null,
    lastSeen: AT,
    ...change,
  };
}
