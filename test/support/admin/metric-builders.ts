/** Creates the proxy's metrics for a gate that the test describes. */
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics/metrics.ts';
import type { ClientsView, EndpointView, GateView, LimitView } from '../../../src/core/events/gate-views.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';

export const NO_CLIENTS: ClientsView = {
  tracked: 0,
  byState: { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 },
  allowance: { min: 1, mean: 1 },
};
export const EMPTY_GATE: GateView = { limits: [], clients: NO_CLIENTS, budgets: new Map() };

const ENDPOINTS: readonly EndpointView[] = [
  { upstream: 'payments', endpoint: 'a:443', isHealthy: true },
  { upstream: 'payments', endpoint: 'b:443', isHealthy: false },
];

export function metricsOf(view: Partial<GateView> = {}, store: 'redis' | 'memory' = 'redis'): Metrics {
  return createMetrics({
    routes: ['/', '/hooks'],
    delivering: ['/hooks'],
    upstreams: ['payments'],
    view: () => ({ ...EMPTY_GATE, ...view }),
    endpoints: () => ENDPOINTS,
    now: () => 5_000,
    wallClock: () => 1_700_000_000_000,
    replayBufferBytes: () => 4096,
    bounds: () => [
      { name: 'queue', used: 0.25, reached: 3 },
      { name: 'queue', used: 0.5, reached: 4 },
      { name: 'heap', used: 0.1, reached: 0 },
    ],
    shedShare: () => 0.125,
    clientNames: ['shop'],
    build: { version: '1.2.3' },
    mode: 'enforce',
    store: store === 'memory' ? undefined : store,
    sharedKeys: () => [{ upstream: 'payments', unresolved: 1, answered: 20 }],
  });
}

export function limitOf(fields: Partial<LimitView>): LimitView {
  return {
    upstream: 'payments',
    nested: '',
    scope: 'upstream',
    key: '',
    state: 'open',
    rate: Infinity,
    ceiling: Infinity,
    concurrencyLimit: undefined,
    blockedUntil: undefined,
    quotaLeft: undefined,
    queued: 0,
    inFlight: 0,
    ...fields,
  };
}

function recordOf(fields: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id: 'r1',
    at: 0,
    route: '/',
    upstream: 'payments',
    method: 'GET',
    path: '/v1/charges',
    client: 'c0ffee',
    status: 200,
    outcome: 'forwarded',
    reason: undefined,
    attempts: 1,
    queueTime: 0,
    sleepTime: 0,
    timeToHead: 20,
    took: 30,
    retryAfterSeconds: undefined,
    isTruncated: false,
    ...fields,
  };
}

export function requestDone(fields: Partial<RequestRecord> = {}): ProxyEvent {
  return { type: 'done', record: recordOf(fields) };
}

export function emitEvents(metrics: Metrics, ...events: readonly ProxyEvent[]): void {
  for (const event of events) metrics.listen(event);
}

/** One event of each kind, with all labels. */
export const EVERY_EVENT: readonly ProxyEvent[] = [
  { type: 'arrived', route: '/' },
  { type: 'decision', upstream: 'payments', decision: 'queued', why: undefined },
  { type: 'dequeued', upstream: 'payments', waited: 12, admitted: true },
  { type: 'attempt', upstream: 'payments', attempt: 1, code: 429, took: 3 },
  { type: 'attempt', upstream: 'payments', attempt: 2, code: 'reset', took: 3 },
  { type: 'reported', upstream: 'payments', status: 429 },
  { type: 'throttled', upstream: 'payments', reason: 'global-rate', status: 429 },
  { type: 'retry', upstream: 'payments', reason: 'status_429', delay: 100, source: 'backoff' },
  { type: 'retry', upstream: 'payments', reason: 'status_429', delay: 2000, source: 'hint' },
  { type: 'retry-end', upstream: 'payments', outcome: 'success' },
  { type: 'poll-wait', route: '/v1', waited: undefined },
  { type: 'poll', route: '/v1', outcome: 'not_ready' },
  { type: 'poll', route: '/v1', outcome: 'ready' },
  { type: 'poll-wait', route: '/v1', waited: 2500 },
  { type: 'poll-wait', route: '/v1', waited: undefined },
  { type: 'poll-slowed', route: '/v1' },
  { type: 'cut', upstream: 'payments', scope: 'upstream', cause: 'first', from: Infinity, to: 40 },
  { type: 'limit-state', upstream: 'payments', scope: 'upstream', from: 'open', to: 'backoff', rate: 20 },
  { type: 'store-request', store: 'redis', op: 'lease', result: 'ok', duration: 0.2 },
  { type: 'store-degraded', store: 'redis', isDegraded: true, cause: 'ECONNREFUSED' },
  { type: 'client-cut', upstream: 'payments', client: 'c0ffee', allowance: 0.5 },
  { type: 'client-state', upstream: 'payments', client: 'c0ffee', from: 'normal', to: 'backoff' },
  { type: 'client-evicted', cause: 'calm' },
  { type: 'auth-rejected', why: 'unknown_key' },
  { type: 'upgraded', route: '/' },
  { type: 'signature', route: '/', result: 'mismatch' },
  { type: 'delivery', route: '/hooks', event: 'accepted' },
  { type: 'delivery-attempt', route: '/hooks', reason: 'status_503', took: 20 },
  { type: 'delivery-attempt', route: '/hooks', reason: 'acknowledged', took: 20 },
  { type: 'delivery', route: '/hooks', event: 'delivered', age: 10_500 },
  { type: 'account-result', upstream: 'payments', account: 'main', result: 'rejected' },
  { type: 'account-quarantined', upstream: 'payments', account: 'main', status: 401, client: 'c', time: 30_000 },
  { type: 'account-returned', upstream: 'payments', account: 'main', after: 30_000 },
  { type: 'endpoint-ejected', upstream: 'payments', endpoint: 'b:443', cause: 'failures', time: 10_000 },
  { type: 'endpoint-returned', upstream: 'payments', endpoint: 'a:443', cause: 'trial' },
  { type: 'fallback', upstream: 'payments', to: 'other', why: 'blocked' },
  { type: 'cost-settled', upstream: 'payments', route: '/', limit: 'tokens', charged: 120, actual: 80 },
  { type: 'cost-unread', upstream: 'payments', route: '/', reason: 'too_long' },
  { type: 'endpoint-check', upstream: 'payments', endpoint: 'a:443', passed: true },
  requestDone({ outcome: 'recovered', attempts: 2 }),
  requestDone({ status: 429, outcome: 'refused', retryAfterSeconds: 2, retryAfterFrom: 'tidegate' }),
];
