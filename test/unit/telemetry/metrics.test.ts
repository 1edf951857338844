import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics/metrics.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type { SharedStoreResult } from '../../../src/core/events/store-events.ts';
import {
  EMPTY_GATE,
  EVERY_EVENT,
  NO_CLIENTS,
  requestDone,
  limitOf,
  metricsOf,
  emitEvents,
} from '../../support/admin/metric-builders.ts';
import { heldBytes } from '../../support/heap.ts';

/** The sample lines of one metric, without its name; zeros are omitted by default. */
async function samples({ registry }: Metrics, name: string, zeros: 'with zeros' | 'non-zero' = 'non-zero') {
  const text = await registry.metrics();
  const lines = text.split('\n').filter((line) => new RegExp(`^tidegate_${name}[ {]`).test(line));
  return lines
    .map((line) => line.slice(`tidegate_${name}`.length))
    .filter((line) => zeros === 'with zeros' || !line.endsWith(' 0'));
}

/** The exemplars of a histogram in OpenMetrics: the text after the `#`. */
async function exemplars({ registry }: Metrics, name: string): Promise<string[]> {
  const lines = (await registry.metrics('openmetrics')).split('\n');
  return lines
    .filter((line) => line.startsWith(`tidegate_${name}_bucket{`))
    .flatMap((line) => line.split(' # ').slice(1));
}

describe('upgraded connections', () => {
  test('are open until their request ends, when their bytes are counted', async () => {
    const metrics = metricsOf();
    emitEvents(metrics, { type: 'upgraded', route: '/' }, { type: 'upgraded', route: '/' });
    expect(await samples(metrics, 'upgraded_connections')).toEqual(['{route="/"} 2']);
    expect(await samples(metrics, 'upgraded_bytes_total')).toEqual([]);
    emitEvents(metrics, requestDone({ status: 101, upgradeBytes: { toUpstream: 5, toClient: 7 } }), requestDone());
    expect(await samples(metrics, 'upgraded_connections')).toEqual(['{route="/"} 1']);
    expect(await samples(metrics, 'upgraded_bytes_total')).toEqual([
      '{route="/",direction="to_upstream"} 5',
      '{route="/",direction="to_client"} 7',
    ]);
  });
});

describe('deliveries', () => {
  test('have series from the start for each route that delivers, so that the first dead one is an increase', async () => {
    const metrics = metricsOf();
    const events = ['accepted', 'duplicate', 'delivered', 'dead', 'canceled', 'unknown'];
    expect(await samples(metrics, 'deliveries_total', 'with zeros')).toEqual(
      events.map((event) => `{route="/hooks",event="${event}"} 0`),
    );
    emitEvents(metrics, { type: 'delivery', route: '/hooks', event: 'dead', age: 1000 });
    expect(await samples(metrics, 'deliveries_total')).toEqual(['{route="/hooks",event="dead"} 1']);
  });

  test('are counted by event, their attempts by result, and the age of those delivered is measured', async () => {
    const metrics = metricsOf();
    emitEvents(metrics, ...EVERY_EVENT);
    expect(await samples(metrics, 'deliveries_total')).toEqual([
      '{route="/hooks",event="accepted"} 1',
      '{route="/hooks",event="delivered"} 1',
    ]);
    expect(await samples(metrics, 'delivery_attempts_total')).toEqual([
      '{route="/hooks",result="acknowledged"} 1',
      '{route="/hooks",result="status_503"} 1',
    ]);
    expect(await samples(metrics, 'delivery_age_seconds_sum')).toEqual(['{route="/hooks"} 10.5']);
  });
});

test('an attempt of a delivery is in flight on its route, and no request of a client', async () => {
  const metrics = metricsOf();
  const attempt = { clientName: 'shop', status: 503, outcome: 'refused', retryAfterFrom: 'upstream' } as const;
  emitEvents(metrics, { type: 'arrived', route: '/' });
  expect(await samples(metrics, 'requests_in_flight')).toEqual(['{route="/"} 1']);
  emitEvents(metrics, requestDone({ ...attempt, delivery: '01a2' }));
  for (const name of ['requests_in_flight', 'requests_total', 'request_outcomes_total', 'responses_total']) {
    expect([name, await samples(metrics, name)]).toEqual([name, []]);
  }
  for (const name of ['retry_after_total', 'request_duration_seconds_count', 'client_requests_total']) {
    expect([name, await samples(metrics, name)]).toEqual([name, []]);
  }
  expect(metrics.counts()).toMatchObject({ serverErrors: 0 });
});

describe('requests', () => {
  test('are counted by route, method, code and outcome', async () => {
    const metrics = metricsOf();
    emitEvents(metrics, requestDone(), requestDone(), requestDone({ method: 'POST', status: 429, outcome: 'refused' }));
    expect(await samples(metrics, 'requests_total')).toEqual([
      '{route="/",method="GET",code="200",outcome="forwarded"} 2',
      '{route="/",method="POST",code="429",outcome="refused"} 1',
    ]);
  });

  test('are counted by the source of their Retry-After, if they have one', async () => {
    const metrics = metricsOf();
    const refused = requestDone({ status: 429, outcome: 'refused', retryAfterSeconds: 2, retryAfterFrom: 'tidegate' });
    emitEvents(metrics, requestDone(), refused, refused, requestDone({ status: 503, retryAfterFrom: 'upstream' }));
    expect(await samples(metrics, 'retry_after_total')).toEqual([
      '{route="/",code="429",from="tidegate"} 2',
      '{route="/",code="503",from="upstream"} 1',
    ]);
  });

  test('are counted separately for every status and outcome', async () => {
    const outcomes = [
      'forwarded',
      'recovered',
      'refused',
      'queue_timeout',
      'upstream_error',
      'unknown',
      'client_gone',
    ] as const;
    const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 100, max: 599 }),
        fc.constantFrom(...methods),
        fc.constantFrom(...outcomes),
        async (status, method, outcome) => {
          const metrics = metricsOf();
          emitEvents(metrics, requestDone({ status, method, outcome }));
          const expected = [`{route="/",method="${method}",code="${status}",outcome="${outcome}"} 1`];
          expect(await samples(metrics, 'requests_total')).toEqual(expected);
        },
      ),
      { numRuns: 20 },
    );
  });

  test('with an unusual method or no status are labelled other', async () => {
    const metrics = metricsOf();
    emitEvents(
      metrics,
      requestDone({ method: 'PURGE' }),
      requestDone({ method: 'BREW' }),
      requestDone({ status: 0, outcome: 'client_gone' }),
      requestDone({ status: 999 }),
    );
    expect(await samples(metrics, 'requests_total')).toEqual([
      '{route="/",method="other",code="200",outcome="forwarded"} 2',
      '{route="/",method="GET",code="other",outcome="client_gone"} 1',
      '{route="/",method="GET",code="other",outcome="forwarded"} 1',
    ]);
  });

  test('are in flight from their arrival to their end', async () => {
    const metrics = metricsOf();
    emitEvents(metrics, { type: 'arrived', route: '/' }, { type: 'arrived', route: '/' });
    expect(await samples(metrics, 'requests_in_flight')).toEqual(['{route="/"} 2']);
    emitEvents(metrics, requestDone());
    expect(await samples(metrics, 'requests_in_flight')).toEqual(['{route="/"} 1']);
  });

  test('are timed to the end of the response, in seconds and cumulative buckets', async () => {
    const metrics = metricsOf();
    emitEvents(
      metrics,
      requestDone({ took: 1 }),
      requestDone({ took: 30, timeToHead: 1 }),
      requestDone({ took: 250 }),
      requestDone({ took: 61_000 }),
    );
    const bucket = (le: string, count: number) => `{route="/",code_class="2xx",le="${le}"} ${count}`;
    expect(await samples(metrics, 'request_duration_seconds_bucket')).toEqual([
      bucket('0.001', 1),
      bucket('0.0025', 1),
      bucket('0.005', 1),
      bucket('0.01', 1),
      bucket('0.025', 1),
      bucket('0.05', 2),
      bucket('0.1', 2),
      bucket('0.25', 3),
      bucket('0.5', 3),
      bucket('1', 3),
      bucket('2.5', 3),
      bucket('5', 3),
      bucket('10', 3),
      bucket('30', 3),
      bucket('60', 3),
      bucket('+Inf', 4),
    ]);
    expect(await samples(metrics, 'request_duration_seconds_sum')).toEqual(['{route="/",code_class="2xx"} 61.281']);
    expect(await samples(metrics, 'request_duration_seconds_count')).toEqual(['{route="/",code_class="2xx"} 4']);
  });

  test('are timed by class of status code', async () => {
    const metrics = metricsOf();
    emitEvents(metrics, ...[503, 0, 404, 101, 301, 200].map((status) => requestDone({ status })));
    expect(await samples(metrics, 'request_duration_seconds_count')).toEqual(
      ['other', '1xx', '2xx', '3xx', '4xx', '5xx'].map((codeClass) => `{route="/",code_class="${codeClass}"} 1`),
    );
  });
});

describe('attempts', () => {
  test('are counted by number and by status or error', async () => {
    const metrics = metricsOf();
    const codes = [503, 'connect', 'reset', 'timeout', 'aborted', 'too_many_files', 599, 100, 42] as const;
    for (const [index, code] of codes.entries()) {
      emitEvents(metrics, { type: 'attempt', upstream: 'payments', attempt: index + 1, code, took: 5 });
    }
    expect(await samples(metrics, 'upstream_attempts_total')).toEqual([
      '{upstream="payments",attempt="1",code="503"} 1',
      '{upstream="payments",attempt="2",code="connect"} 1',
      '{upstream="payments",attempt="3",code="reset"} 1',
      '{upstream="payments",attempt="4+",code="timeout"} 1',
      '{upstream="payments",attempt="4+",code="aborted"} 1',
      '{upstream="payments",attempt="4+",code="too_many_files"} 1',
      '{upstream="payments",attempt="4+",code="599"} 1',
      '{upstream="payments",attempt="4+",code="100"} 1',
      '{upstream="payments",attempt="4+",code="other"} 1',
    ]);
  });

  test('are timed by class of status code, errors apart', async () => {
    const metrics = metricsOf();
    emitEvents(
      metrics,
      { type: 'attempt', upstream: 'payments', attempt: 1, code: 'timeout', took: 5000 },
      { type: 'attempt', upstream: 'payments', attempt: 2, code: 201, took: 250 },
    );
    expect(await samples(metrics, 'upstream_attempt_duration_seconds_sum')).toEqual([
      '{upstream="payments",code_class="2xx"} 0.25',
      '{upstream="payments",code_class="error"} 5',
    ]);
  });

  test("that are throttled are counted by the upstream's reason, limited to the first 32", async () => {
    const metrics = metricsOf();
    for (let n = 1; n <= 40; n += 1) {
      emitEvents(metrics, { type: 'throttled', upstream: 'payments', reason: `reason ${n}`, status: 429 });
    }
    emitEvents(metrics, { type: 'throttled', upstream: 'payments', reason: 'reason 7', status: 429 });
    const lines = await samples(metrics, 'upstream_throttled_total');
    // 32 reasons, and `other`.
    expect(lines).toHaveLength(33);
    expect(lines).toContain('{upstream="payments",reason="reason 7"} 2');
    expect(lines).toContain('{upstream="payments",reason="other"} 8');
  });

  test("have the upstream's text escaped", async () => {
    const metrics = metricsOf();
    emitEvents(metrics, { type: 'throttled', upstream: 'payments', reason: 'a"b\\c', status: 429 });
    expect(await samples(metrics, 'upstream_throttled_total')).toEqual(['{upstream="payments",reason="a\\"b\\\\c"} 1']);
  });
});

describe('retries', () => {
  test('are counted by reason, their delays by source', async () => {
    const metrics = metricsOf();
    emitEvents(
      metrics,
      { type: 'retry', upstream: 'payments', reason: 'status_5xx', delay: 100, source: 'backoff' },
      { type: 'retry', upstream: 'payments', reason: 'lock', delay: 200, source: 'backoff' },
      { type: 'retry', upstream: 'payments', reason: 'status_429', delay: 2000, source: 'hint' },
    );
    expect(await samples(metrics, 'retries_total')).toEqual([
      '{upstream="payments",reason="status_5xx"} 1',
      '{upstream="payments",reason="status_429"} 1',
      '{upstream="payments",reason="lock"} 1',
    ]);
    expect(await samples(metrics, 'retry_backoff_seconds_sum')).toEqual([
      '{upstream="payments",source="backoff"} 0.3',
      '{upstream="payments",source="hint"} 2',
    ]);
  });

  test('end in one outcome, of which all exist from the start', async () => {
    const metrics = metricsOf();
    emitEvents(metrics, { type: 'retry-end', upstream: 'payments', outcome: 'budget_exhausted' });
    expect(await samples(metrics, 'retry_outcomes_total', 'with zeros')).toEqual([
      '{upstream="payments",outcome="success"} 0',
      '{upstream="payments",outcome="attempts_exhausted"} 0',
      '{upstream="payments",outcome="budget_exhausted"} 1',
      '{upstream="payments",outcome="deadline"} 0',
      '{upstream="payments",outcome="not_idempotent"} 0',
      '{upstream="payments",outcome="key_expired"} 0',
      '{upstream="payments",outcome="body_too_large"} 0',
      '{upstream="payments",outcome="retry_after_too_long"} 0',
      '{upstream="payments",outcome="upstream_veto"} 0',
      '{upstream="payments",outcome="client_gone"} 0',
    ]);
  });

  test('have a budget read from the gate', async () => {
    const metrics = metricsOf({ budgets: new Map([['payments', 0.75]]) });
    expect(await samples(metrics, 'retry_budget_available_ratio')).toEqual(['{upstream="payments"} 0.75']);
  });
});

describe('the limiter', () => {
  test('counts decisions, cuts and time in the queue', async () => {
    const metrics = metricsOf();
    emitEvents(
      metrics,
      { type: 'decision', upstream: 'payments', decision: 'passed', why: undefined },
      { type: 'decision', upstream: 'payments', decision: 'refused', why: 'over_share' },
      { type: 'decision', upstream: 'payments', decision: 'refused', why: 'blocked' },
      { type: 'dequeued', upstream: 'payments', waited: 40, admitted: true },
      { type: 'dequeued', upstream: 'payments', waited: 1000, admitted: false },
      { type: 'cut', upstream: 'payments', scope: 'client', cause: 'heavy', from: 10, to: 5 },
    );
    expect(await samples(metrics, 'ratelimit_decisions_total', 'with zeros')).toEqual([
      '{upstream="payments",decision="passed"} 1',
      '{upstream="payments",decision="queued"} 0',
      '{upstream="payments",decision="refused"} 2',
    ]);
    expect(await samples(metrics, 'queue_wait_seconds_sum')).toEqual(['{upstream="payments"} 1.04']);
    expect(await samples(metrics, 'queue_wait_seconds_count')).toEqual(['{upstream="payments"} 2']);
    expect(await samples(metrics, 'ratelimit_cuts_total')).toEqual(['{upstream="payments",cause="heavy"} 1']);
  });

  test('counts requests that were refused for a quota of their client, and no others', async () => {
    const metrics = metricsOf();
    emitEvents(
      metrics,
      requestDone({ outcome: 'refused', status: 429, reason: 'client_quota_exceeded' }),
      requestDone({ outcome: 'refused', status: 429, reason: 'quota_exceeded' }),
    );
    expect(await samples(metrics, 'client_quota_refusals_total')).toEqual(['{upstream="payments"} 1']);
  });

  test('shows an open limit as +Inf', async () => {
    const metrics = metricsOf({ limits: [limitOf({})] });
    const expected = ['{upstream="payments",scope="upstream"} +Inf'];
    expect(await samples(metrics, 'ratelimit_rate_requests_per_second')).toEqual(expected);
    expect(await samples(metrics, 'ratelimit_ceiling_requests_per_second')).toEqual(expected);
    expect(await samples(metrics, 'ratelimit_state', 'with zeros')).toEqual([
      '{upstream="payments",state="open"} 1',
      '{upstream="payments",state="backoff"} 0',
      '{upstream="payments",state="cooldown"} 0',
      '{upstream="payments",state="restoring"} 0',
      '{upstream="payments",state="blocked"} 0',
    ]);
  });

  test('shows how many requests may be in flight, if that is limited', async () => {
    const limits = [
      limitOf({ state: 'restoring', rate: 190, ceiling: 200, concurrencyLimit: 19 }),
      limitOf({ scope: 'client' }),
    ];
    expect(await samples(metricsOf({ limits }), 'ratelimit_places')).toEqual([
      '{upstream="payments",scope="upstream"} 19',
    ]);
    expect(await samples(metricsOf({ limits: [limitOf({})] }), 'ratelimit_places')).toEqual([]);
  });

  test('shows the tightest of many limits, and the sum of their states and queues', async () => {
    const metrics = metricsOf({
      limits: [
        limitOf({ nested: '', scope: 'client', key: 'a', queued: 1 }),
        limitOf({
          nested: '',
          scope: 'client',
          key: 'b',
          state: 'restoring',
          rate: 4,
          ceiling: 9,
          queued: 2,
          quotaLeft: 0.5,
        }),
        limitOf({ nested: '', scope: 'client', key: 'c', state: 'restoring', rate: 6, ceiling: 7, quotaLeft: 0.25 }),
        limitOf({ scope: 'upstream', state: 'cooldown', rate: 80, ceiling: 90 }),
      ],
    });
    expect(await samples(metrics, 'ratelimit_rate_requests_per_second')).toEqual([
      '{upstream="payments",scope="client"} 4',
      '{upstream="payments",scope="upstream"} 80',
    ]);
    expect(await samples(metrics, 'ratelimit_ceiling_requests_per_second')).toEqual([
      '{upstream="payments",scope="client"} 9',
      '{upstream="payments",scope="upstream"} 90',
    ]);
    expect(await samples(metrics, 'ratelimit_state')).toEqual([
      '{upstream="payments",state="open"} 1',
      '{upstream="payments",state="cooldown"} 1',
      '{upstream="payments",state="restoring"} 1',
    ]);
    expect(await samples(metrics, 'queue_depth')).toEqual(['{upstream="payments"} 3']);
    expect(await samples(metrics, 'upstream_quota_remaining_ratio')).toEqual(['{upstream="payments"} 0.25']);
  });

  test('shows the end of a block as a Unix time, 0 while it does not block', async () => {
    expect(
      await samples(metricsOf({ limits: [limitOf({})] }), 'upstream_blocked_until_timestamp_seconds', 'with zeros'),
    ).toEqual(['{upstream="payments"} 0']);
    const limits = [
      limitOf({ state: 'blocked', blockedUntil: 7_500 }),
      limitOf({ state: 'blocked', blockedUntil: 6_000 }),
    ];
    expect(await samples(metricsOf({ limits }), 'upstream_blocked_until_timestamp_seconds')).toEqual([
      '{upstream="payments"} 1700000002.5',
    ]);
  });

  test('shows what is left of configured quotas, and when each is used up', async () => {
    const quota = { upstream: 'payments', limit: 1000, reserve: 100, resetAt: 1_700_086_400_000 };
    const metrics = metricsOf({
      quotas: [
        { ...quota, name: 'day', remaining: 250, exhaustedAt: 1_700_003_600_000 },
        { ...quota, name: 'month', remaining: 900, exhaustedAt: Infinity },
      ],
    });
    expect(await samples(metrics, 'quota_limit')).toEqual([
      '{upstream="payments",quota="day"} 1000',
      '{upstream="payments",quota="month"} 1000',
    ]);
    expect(await samples(metrics, 'quota_remaining')).toEqual([
      '{upstream="payments",quota="day"} 250',
      '{upstream="payments",quota="month"} 900',
    ]);
    expect(await samples(metrics, 'quota_exhausted_at_timestamp_seconds')).toEqual([
      '{upstream="payments",quota="day"} 1700003600',
      '{upstream="payments",quota="month"} +Inf',
    ]);
  });

  test('has no sample of an unknown quota', async () => {
    expect(await samples(metricsOf({ limits: [limitOf({})] }), 'upstream_quota_remaining_ratio', 'with zeros')).toEqual(
      [],
    );
  });
});

describe('clients', () => {
  test('are counted as they change', async () => {
    const metrics = metricsOf();
    emitEvents(
      metrics,
      { type: 'client-cut', upstream: 'payments', client: 'c0ffee', allowance: 0.5 },
      { type: 'client-state', upstream: 'payments', client: 'c0ffee', from: 'normal', to: 'held' },
      { type: 'client-state', upstream: 'payments', client: 'c0ffee', from: 'restoring', to: 'normal' },
      { type: 'client-state', upstream: 'payments', client: 'decade', from: 'normal', to: 'held' },
      { type: 'client-evicted', cause: 'troubled' },
    );
    expect(await samples(metrics, 'client_cuts_total')).toEqual([' 1']);
    expect(await samples(metrics, 'client_transitions_total')).toEqual([
      '{from="normal",to="held"} 2',
      '{from="restoring",to="normal"} 1',
    ]);
    expect(await samples(metrics, 'client_evictions_total', 'with zeros')).toEqual([
      '{cause="calm"} 0',
      '{cause="troubled"} 1',
    ]);
  });

  test('have their own series only where the configuration names them', async () => {
    const metrics = metricsOf();
    emitEvents(
      metrics,
      requestDone(),
      requestDone({ clientName: 'shop' }),
      requestDone({ clientName: 'shop', outcome: 'queue_timeout' }),
    );
    expect(await samples(metrics, 'client_requests_total', 'with zeros')).toEqual([
      '{client="shop",outcome="forwarded"} 1',
      '{client="shop",outcome="refused"} 0',
      '{client="shop",outcome="queue_timeout"} 1',
    ]);
  });

  test('share a series after a hundred proven names', async () => {
    const metrics = metricsOf();
    for (let i = 0; i < 102; i += 1) emitEvents(metrics, requestDone({ clientName: `app-${i}` }));
    const seen = await samples(metrics, 'client_requests_total');
    expect(seen).toHaveLength(101);
    expect(seen.at(-1)).toBe('{client="other",outcome="forwarded"} 2');
  });

  test('that are rejected are counted by reason, from zero', async () => {
    const metrics = metricsOf();
    emitEvents(metrics, { type: 'auth-rejected', why: 'missing' });
    const seen = await samples(metrics, 'auth_rejected_total', 'with zeros');
    expect(seen).toHaveLength(13);
    expect(seen.slice(0, 2)).toEqual(['{reason="missing"} 1', '{reason="malformed"} 0']);
  });

  test('are read from the gate', async () => {
    const metrics = metricsOf({
      clients: {
        tracked: 10,
        byState: { normal: 6, held: 1, backoff: 1, cooldown: 0, restoring: 2 },
        allowance: { min: 0.25, mean: 0.9 },
      },
    });
    expect(await samples(metrics, 'clients_tracked')).toEqual([' 10']);
    expect(await samples(metrics, 'clients_by_state', 'with zeros')).toEqual([
      '{state="normal"} 6',
      '{state="held"} 1',
      '{state="backoff"} 1',
      '{state="cooldown"} 0',
      '{state="restoring"} 2',
    ]);
    expect(await samples(metrics, 'client_allowance_ratio')).toEqual(['{stat="min"} 0.25', '{stat="mean"} 0.9']);
  });

  test('are never labels', async () => {
    const metrics = metricsOf({
      limits: [limitOf({ nested: '', scope: 'client', key: 'c0ffee', state: 'backoff', rate: 1, queued: 1 })],
    });
    emitEvents(metrics, ...EVERY_EVENT);
    expect(await metrics.registry.metrics()).not.toContain('c0ffee');
  });
});

describe('endpoints', () => {
  test('have their own series, with their ejections and whether they receive requests', async () => {
    const metrics = metricsOf();
    expect(await samples(metrics, 'endpoint_ejections_total', 'with zeros')).toHaveLength(2);
    emitEvents(metrics, ...EVERY_EVENT, ...EVERY_EVENT);
    expect(await samples(metrics, 'endpoint_healthy', 'with zeros')).toEqual([
      '{upstream="payments",endpoint="a:443"} 1',
      '{upstream="payments",endpoint="b:443"} 0',
    ]);
    expect(await samples(metrics, 'endpoint_ejections_total')).toEqual(['{upstream="payments",endpoint="b:443"} 2']);
    expect(await samples(metrics, 'endpoint_checks_total', 'with zeros')).toEqual([
      '{upstream="payments",endpoint="a:443",result="passed"} 2',
      '{upstream="payments",endpoint="a:443",result="failed"} 0',
    ]);
  });
});

test('requests that went to the fallback are counted by the reason', async () => {
  const metrics = metricsOf();
  expect(await samples(metrics, 'upstream_fallbacks_total', 'with zeros')).toEqual([]);
  emitEvents(metrics, ...EVERY_EVENT, ...EVERY_EVENT);
  expect(await samples(metrics, 'upstream_fallbacks_total', 'with zeros')).toHaveLength(7);
  expect(await samples(metrics, 'upstream_fallbacks_total')).toEqual(['{upstream="payments",reason="blocked"} 2']);
});

describe('the store that replicas share', () => {
  test('is counted by operation and result', async () => {
    const metrics = metricsOf();
    expect(await samples(metrics, 'store_requests_total', 'with zeros')).toHaveLength(18);
    expect(await samples(metrics, 'store_degraded', 'with zeros')).toEqual(['{store="redis"} 0']);
    const storeCall = (result: SharedStoreResult, duration: number): ProxyEvent => ({
      type: 'store-request',
      store: 'redis',
      op: 'report',
      result,
      duration,
    });
    emitEvents(
      metrics,
      storeCall('ok', 0.1),
      storeCall('ok', 0.2),
      storeCall('error', 4),
      storeCall('timeout', 240),
      storeCall('timeout', 300),
    );
    expect(await samples(metrics, 'store_requests_total')).toEqual([
      '{store="redis",op="report",result="ok"} 2',
      '{store="redis",op="report",result="error"} 1',
      '{store="redis",op="report",result="timeout"} 2',
    ]);
    const buckets = (await samples(metrics, 'store_duration_seconds_bucket', 'with zeros')).filter((line) =>
      line.includes('op="report"'),
    );
    expect(buckets.filter((line) => line.includes('"ok"')).slice(0, 2)).toEqual([
      '{store="redis",op="report",result="ok",le="0.0001"} 1',
      '{store="redis",op="report",result="ok",le="0.00025"} 2',
    ]);
    expect(buckets.filter((line) => line.includes('"timeout"')).slice(-3)).toEqual([
      '{store="redis",op="report",result="timeout",le="0.175"} 0',
      '{store="redis",op="report",result="timeout",le="0.25"} 1',
      '{store="redis",op="report",result="timeout",le="+Inf"} 2',
    ]);
    emitEvents(metrics, { type: 'store-degraded', store: 'redis', isDegraded: true });
    expect(await samples(metrics, 'store_degraded')).toEqual(['{store="redis"} 1']);
    emitEvents(metrics, { type: 'store-degraded', store: 'redis', isDegraded: false });
    expect(await samples(metrics, 'store_degraded', 'with zeros')).toEqual(['{store="redis"} 0']);
  });

  test('has no series without such a store', async () => {
    const metrics = metricsOf({}, 'memory');
    emitEvents(metrics, ...EVERY_EVENT);
    expect(await metrics.registry.metrics()).not.toContain('tidegate_store');
  });
});

describe('bounds', () => {
  test('have series by name: the highest use of several, and the sum of their events', async () => {
    const metrics = metricsOf();
    expect(await samples(metrics, 'bound_used_ratio')).toEqual(['{bound="queue"} 0.5', '{bound="heap"} 0.1']);
    expect(await samples(metrics, 'bound_reached_total', 'with zeros')).toEqual([
      '{bound="queue"} 7',
      '{bound="heap"} 0',
    ]);
  });

  test('count an overload once for each episode', async () => {
    const metrics = metricsOf();
    const overload = { type: 'overload', cause: 'heap', delay: 3, heapUsed: 0.9, shed: 7 } as const;
    emitEvents(metrics, { ...overload, began: true }, { ...overload, began: false }, { ...overload, began: true });
    expect(await samples(metrics, 'overload_episodes_total')).toEqual([' 2']);
    expect(await samples(metrics, 'overload_shed_ratio')).toEqual([' 0.125']);
  });
});

describe('the process', () => {
  test('shows its version and the bytes it keeps', async () => {
    const metrics = metricsOf();
    expect(await samples(metrics, 'build_info')).toEqual(['{version="1.2.3"} 1']);
    expect(await samples(metrics, 'replay_buffer_bytes')).toEqual([' 4096']);
  });

  test('has the metrics of Node', async () => {
    const text = await metricsOf().registry.metrics();
    expect(text).toMatch(/^process_cpu_seconds_total \d/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m);
  });

  test('releases its registry once no proxy refers to it', async () => {
    const leave = (): WeakRef<object> => new WeakRef(metricsOf().registry);
    const left = leave();
    await new Promise((resolve) => setImmediate(resolve)); // until then, a WeakRef keeps its target
    heldBytes(); // collects
    expect(left.deref()).toBeUndefined();
  });
});

test('an upstream with an unverified certificate has its own series', async () => {
  const options = {
    routes: [],
    view: () => EMPTY_GATE,
    now: () => 0,
    wallClock: () => 0,
    replayBufferBytes: () => 0,
    build: { version: '1.2.3' },
    mode: 'enforce',
  } as const;
  const metrics = createMetrics({ ...options, upstreams: ['sound', 'open'], insecure: new Set(['open']) });
  expect(await samples(metrics, 'upstream_tls_insecure', 'with zeros')).toEqual([
    '{upstream="sound"} 0',
    '{upstream="open"} 1',
  ]);
});

describe('a scrape', () => {
  test('reads the gate once, and the next scrape reads it again', async () => {
    let reads = 0;
    const metrics = createMetrics({
      routes: [],
      upstreams: [],
      view: () => {
        reads += 1;
        return { ...EMPTY_GATE, clients: { ...NO_CLIENTS, tracked: reads } };
      },
      now: () => 0,
      wallClock: () => 0,
      replayBufferBytes: () => 0,
      build: { version: '0' },
      mode: 'enforce',
    });
    expect(await samples(metrics, 'clients_tracked')).toEqual([' 1']);
    expect(await samples(metrics, 'clients_tracked')).toEqual([' 2']);
    expect(reads).toBe(2);
  });

  test('shows polls by route and outcome, the waiting ones, and the time they waited', async () => {
    const metrics = metricsOf();
    expect(await samples(metrics, 'polls_total')).toEqual([]);
    emitEvents(metrics, ...EVERY_EVENT);
    expect(await samples(metrics, 'polls_total')).toEqual([
      '{route="/v1",outcome="not_ready"} 1',
      '{route="/v1",outcome="ready"} 1',
    ]);
    expect(await samples(metrics, 'polls_waiting')).toEqual(['{route="/v1"} 1']);
    expect(await samples(metrics, 'poll_wait_seconds_sum')).toEqual(['{route="/v1"} 2.5']);
    expect(await samples(metrics, 'poll_wait_seconds_count')).toEqual(['{route="/v1"} 1']);
    expect(await samples(metrics, 'polls_slowed_total')).toEqual(['{route="/v1"} 1']);
  });

  test('has no more series for a hundred thousand clients than for one', async () => {
    const limits = Array.from({ length: 100_000 }, (_, n) =>
      limitOf({ nested: '', scope: 'client', key: `k${n}`, state: 'restoring', rate: n + 1, ceiling: n + 2 }),
    );
    const many = (await metricsOf({ limits }).registry.metrics()).match(/^tidegate_/gm);
    const one = (await metricsOf({ limits: limits.slice(0, 1) }).registry.metrics()).match(/^tidegate_/gm);
    expect(many?.length).toBe(one?.length);
  });

  test('shows routes and upstreams added by a reload, up to a bound', async () => {
    const metrics = metricsOf();
    emitEvents(metrics, { type: 'arrived', route: '/new' });
    expect(await samples(metrics, 'requests_in_flight')).toEqual(['{route="/new"} 1']);
    for (let n = 0; n < 2000; n += 1) emitEvents(metrics, { type: 'arrived', route: `/r${n}` });
    const lines = await samples(metrics, 'requests_in_flight');
    expect(lines).toHaveLength(1001);
    expect(lines).toContain('{route="other"} 1001');
  });
});

describe('OpenMetrics', () => {
  test('has one request of each bucket as its exemplar, and another one after each scrape', async () => {
    const metrics = metricsOf();
    emitEvents(
      metrics,
      requestDone({ id: 'a', took: 30 }),
      requestDone({ id: 'b', took: 40 }),
      requestDone({ id: 'c', took: 3000 }),
    );
    const expectedExemplars = ['{request_id="a"} 0.03 1700000000', '{request_id="c"} 3 1700000000'];
    expect(await exemplars(metrics, 'request_duration_seconds')).toEqual(expectedExemplars);
    expect(await exemplars(metrics, 'request_duration_seconds')).toEqual(expectedExemplars);
    emitEvents(metrics, requestDone({ id: 'd', took: 45 }));
    expect(await exemplars(metrics, 'request_duration_seconds')).toEqual([
      '{request_id="d"} 0.045 1700000000',
      '{request_id="c"} 3 1700000000',
    ]);
  });

  test('has the trace of a request that is part of one', async () => {
    const metrics = metricsOf();
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    emitEvents(metrics, requestDone({ id: 'a', took: 30, traceId }));
    expect(await exemplars(metrics, 'request_duration_seconds')).toEqual([
      `{request_id="a",trace_id="${traceId}"} 0.03 1700000000`,
    ]);
  });

  test('links attempts to their request', async () => {
    const metrics = metricsOf();
    emitEvents(metrics, { type: 'attempt', upstream: 'payments', attempt: 2, code: 503, took: 7, request: 'r7' });
    emitEvents(metrics, { type: 'attempt', upstream: 'payments', attempt: 1, code: 503, took: 70 });
    expect(await exemplars(metrics, 'upstream_attempt_duration_seconds')).toEqual([
      '{request_id="r7"} 0.007 1700000000',
    ]);
  });

  test('has the same series as the text format, and does not change that', async () => {
    const metrics = metricsOf({ limits: [limitOf({})] });
    emitEvents(metrics, ...EVERY_EVENT);
    const seriesOf = (text: string): string[] =>
      Array.from(text.matchAll(/^(tidegate_[^ ]+) /gm), ([, series]) => series ?? '');
    const before = await metrics.registry.metrics();
    const open = await metrics.registry.metrics('openmetrics');
    expect(seriesOf(open)).toEqual(seriesOf(before));
    expect(open).toMatch(/^# TYPE tidegate_requests counter$/m);
    expect(open).toMatch(/^tidegate_requests_total\{/m);
    expect(open).toMatch(/\n# EOF\n$/);
    expect(seriesOf(await metrics.registry.metrics())).toEqual(seriesOf(before));
    expect(before).not.toContain('request_id');
  });
});
