/**
 * Traffic on a real Tidegate, and the answers of a real Prometheus. Each statement is PromQL without the prefix
 * `tidegate_` and without the job, and is true at one scrape at least.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startTraffic } from '../../../src/simulator/practice/traffic-generator.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { refusingUrl, startHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { pause } from '../../support/pause.ts';
import { type Prometheus, startPrometheus } from '../../support/programs/prometheus.ts';
import { startRedis } from '../../support/redis/redis-server.ts';
import type { Received, Sent } from '../../support/clients/send.ts';
import { begin, send, sendAndLeave } from '../../support/clients/send.ts';
import { startSwitchableUpstream } from '../../support/upstreams/switchable-upstream.ts';
import { startTidegate, startUpstream } from '../../support/proxy/tidegate.ts';
import { startWebSocketUpstream } from '../../support/upstreams/websocket-upstream.ts';
import { startWorkers } from '../../support/proxy/workers.ts';

const FAST = 'backOff: {strategy: fixed, baseInterval: 1ms}';

/** One for each test. */
const JOBS = [
  'requests',
  'attempts',
  'limits',
  'learned',
  'clients',
  'process',
  'checks',
  'polls',
  'store',
  'workers',
  'reloads',
  'certificates',
  'state',
  'deliveries',
];

let prometheus: Prometheus;
beforeAll(async () => {
  prometheus = await startPrometheus(JOBS);
});
afterAll(() => prometheus.close());

/** Sends requests with a script for the practice upstream. */
function scripted(url: string) {
  let id = 0;
  return (script: string, sent: Sent = {}, path = '/'): Promise<Received> => {
    id += 1;
    const headers = ['X-Practice-Id', `i${id}`, 'X-Practice-Script', script, ...(sent.headers ?? [])];
    return send(url, path, { ...sent, headers });
  };
}

/** Leaves a request in flight until the test ends. */
function leaveOpen(url: string, script: string, sent: Sent = {}): void {
  const request = begin(url, '/', { ...sent, headers: ['X-Practice-Script', script] });
  request.end(sent.body);
  onTestFinished(() => void request.destroy());
}

const REQUESTS = [
  'requests_total{route="/",method="GET",code="200",outcome="forwarded"} >= 1',
  'request_outcomes_total{route="/",outcome="unknown"} == 1',
  'responses_total{route="/",code_class="2xx"} >= 5',
  'requests_total{method="HEAD"} == 1',
  'requests_total{method="POST",code="500",outcome="unknown"} == 1',
  'requests_total{method="PUT",code="404"} == 1',
  'requests_total{method="PATCH",code="302"} == 1',
  'requests_total{method="DELETE"} == 1',
  'requests_total{method="OPTIONS"} == 1',
  'requests_total{method="other",code="200"} == 1',
  'requests_total{method="GET",code="200",outcome="recovered"} == 1',
  'requests_total{method="GET",code="502",outcome="upstream_error"} == 1',
  'requests_total{method="GET",code="other",outcome="client_gone"} == 1',
  'requests_total{route="/moving",code="429",outcome="queue_timeout"} == 1',
  'retry_after_total{route="/moving",code="429",from="tidegate"} == 1',
  'requests_total{route="(none)",code="404",outcome="refused"} == 1',
  'request_duration_seconds_count{route="/",code_class="2xx"} >= 5',
  'request_duration_seconds_bucket{route="/",code_class="3xx",le="+Inf"} == 1',
  'request_duration_seconds_count{code_class="4xx",route="/"} == 1',
  'request_duration_seconds_count{code_class="5xx",route="/"} >= 2',
  'request_duration_seconds_sum{code_class="other"} > 0.04',
  'requests_in_flight{route="/"} == 2',
  'replay_buffer_bytes == 1000',
  'story_bytes > 1000',
];

test('counts requests by outcome', async () => {
  const upstream = await startUpstream();
  // The second response reports a nearly spent quota: from then on, one request in ten seconds.
  const moving = await startHttpUpstream((n, response) => {
    const quota = ['RateLimit-Policy', '"api";q=100;w=1000', 'RateLimit', `"api";r=${n === 2 ? 1 : 99};t=10`];
    response.writeHead(200, quota).end();
  });
  const gate = await startTidegate(`
upstreams:
  api: {url: "${upstream.url}", timeout: 60s, perTryTimeout: 60s, retry: {attempts: 2, ${FAST}}}
  moving: {url: "${moving.url}", rateLimit: {initialRate: 5/s}, queue: {maxWait: 600ms}}
routes: [{path: /, upstream: api, host: 127.0.0.1}, {path: /moving, upstream: moving, host: 127.0.0.1}]
clients: {key: [header:x-api-key]}
`);
  prometheus.watch('requests', gate.adminUrl);
  const ask = scripted(gate.url);
  for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'PROPFIND']) await ask('200', { method });
  await ask('404', { method: 'PUT' });
  await ask('302', { method: 'PATCH' });
  await ask('503, 200');
  await ask('500', { method: 'POST' });
  await ask('reset');
  const { received } = upstream.stats();
  await sendAndLeave(gate.url, '/', { headers: ['X-Practice-Script', 'hang'] }, async () => {
    if (upstream.stats().received === received) return false;
    await pause(50); // its duration is measured
    return true;
  });
  await Promise.all([1, 2, 3].map(() => send(gate.url, '/moving', { headers: ['X-Api-Key', 'a'] })));
  await send(gate.url, '/', { headers: ['Host', 'elsewhere.example'] });
  leaveOpen(gate.url, 'hang');
  leaveOpen(gate.url, 'hang', { method: 'PUT', body: 'x'.repeat(1000) });
  expect(await prometheus.unmet('requests', atRoute(REQUESTS, gate.requests()[0]?.['route']))).toEqual([]);
});

/** Routes are selected by host as well. */
function atRoute(statements: readonly string[], route: unknown): string[] {
  const host = String(route).replace(/\/$/, '');
  return statements.map((statement) => statement.replace('route="/', `route="${host}/`));
}

const ATTEMPTS = [
  ...['1', '2', '3', '4+'].map(
    (attempt) => `upstream_attempts_total{upstream="api",attempt="${attempt}",code="503"} >= 1`,
  ),
  'upstream_attempts_total{upstream="api",attempt="2",code="200"} >= 1',
  ...['reset', 'timeout', 'aborted'].map((code) => `upstream_attempts_total{upstream="api",code="${code}"} >= 1`),
  'upstream_attempts_total{upstream="nobody",code="connect"} >= 1',
  'upstream_connect_failures_total{upstream="nobody",cause="refused"} >= 1',
  'upstream_connect_failures_total{upstream="api",cause="certificate_expired"} == 0',
  ...['2xx', '5xx', 'error'].map(
    (codes) => `upstream_attempt_duration_seconds_count{upstream="api",code_class="${codes}"} >= 1`,
  ),
  'upstream_attempt_duration_seconds_count{upstream="limited",code_class="4xx"} >= 1',
  'upstream_throttled_total{upstream="limited",reason="unspecified"} == 1',
  'upstream_throttled_total{upstream="named",reason="global-rate"} == 1',
  ...['status_5xx', 'reset', 'timeout'].map((reason) => `retries_total{upstream="api",reason="${reason}"} >= 1`),
  'retries_total{upstream="locks",reason="lock"} == 1',
  'retries_total{upstream="nobody",reason="connect"} >= 1',
  'retries_total{upstream="limited",reason="status_429"} == 1',
  ...['success', 'attempts_exhausted', 'not_idempotent', 'body_too_large', 'upstream_veto', 'client_gone'].map(
    (outcome) => `retry_outcomes_total{upstream="api",outcome="${outcome}"} >= 1`,
  ),
  'retry_outcomes_total{upstream="poor",outcome="budget_exhausted"} == 1',
  'retry_outcomes_total{upstream="hasty",outcome="deadline"} == 1',
  'retry_outcomes_total{upstream="named",outcome="retry_after_too_long"} == 1',
  'slow_readers_total{upstream="keys",cause="slow_reader"} == 0',
  'idempotency_keys_total{upstream="keys",event="minted"} == 1',
  'idempotency_keys_total{upstream="keys",event="key_in_use"} == 1',
  'idempotency_keys_total{upstream="keys",event="key_expired"} == 0',
  'idempotency_keys_total{upstream="keys",event="key_reused"} == 0',
  'idempotency_keys_total{upstream="keys",event="key_ambiguous"} == 0',
  'idempotency_keys_total{upstream="keys",event="key_overused"} == 0',
  'idempotency_keys_total{upstream="keys",event="replayed"} == 0',
  'retry_backoff_seconds_count{upstream="api",source="backoff"} >= 4',
  'retry_backoff_seconds_sum{upstream="limited",source="hint"} >= 1',
  'retry_budget_available_ratio{upstream="poor"} == 0',
];

test('counts attempts, retries and the reasons for which retries end', async () => {
  const upstream = await startUpstream();
  const { url } = upstream;
  const gate = await startTidegate(`
upstreams:
  api: {url: "${url}", perTryTimeout: 200ms, retry: {replayLimit: 1KiB, budget: {burst: 100}, ${FAST}}}
  nobody: {url: "${await refusingUrl()}", retry: {attempts: 2, ${FAST}}}
  limited: {url: "${url}"}
  named: {url: "${url}"}
  locks: {url: "${url}", retry: {retryOn: [lock], ${FAST}}}
  poor: {url: "${url}", retry: {budget: {ratio: 0, burst: 1}, ${FAST}}}
  hasty: {url: "${url}", timeout: 300ms, retry: {backOff: {strategy: fixed, baseInterval: 1s}}}
  keys: {url: "${url}", idempotency: {generate: true, concurrent: refuse}}
routes:
  - {path: /, upstream: api}
  - {path: /nobody, upstream: nobody}
  - {path: /limited, upstream: limited}
  - {path: /named, upstream: named}
  - {path: /locks, upstream: locks}
  - {path: /poor, upstream: poor}
  - {path: /hasty, upstream: hasty}
  - {path: /keys, upstream: keys}
`);
  prometheus.watch('attempts', gate.adminUrl);
  const ask = scripted(gate.url);
  // Successes between the failures keep the upstream from being blocked.
  const scripts = ['503, 200', '503', 'reset, 200', 'hang, 200', '503; header=Stripe-Should-Retry:false'];
  for (const script of scripts) {
    await ask(script);
    for (let i = 0; i < 4; i += 1) await ask('200');
  }
  await ask('500', { method: 'POST', body: 'amount=1' });
  await ask('503', { method: 'PUT', body: Buffer.alloc(1025) });
  await Promise.all([
    ask('429; retry-after=1, 200', {}, '/limited'),
    ask('429; retry-after=100; header=Stripe-Rate-Limited-Reason:global-rate', {}, '/named'),
    ask('409, 200', { method: 'POST', headers: ['Idempotency-Key', 'k'], body: 'amount=1' }, '/locks'),
    ask('503', {}, '/poor'),
    ask('503', {}, '/hasty'),
    ask('200', { method: 'POST', body: 'amount=1' }, '/keys'),
    ask('delay=300; 200', { method: 'POST', headers: ['Idempotency-Key', 'k'] }, '/keys'),
    ask('delay=300; 200', { method: 'POST', headers: ['Idempotency-Key', 'k'] }, '/keys'),
    send(gate.url, '/nobody'),
    // Once during its backoff after a failure, and once while it is at the upstream.
    sendAndLeave(
      gate.url,
      '/',
      { headers: ['X-Practice-Id', 'g', 'X-Practice-Script', '503, hang'] },
      () => upstream.attempts('g') === 2,
    ),
  ]);
  expect(await prometheus.unmet('attempts', ATTEMPTS)).toEqual([]);
});

const LIMITS = [
  'ratelimit_decisions_total{upstream="api",decision="passed"} >= 1',
  'ratelimit_decisions_total{upstream="told",decision="queued"} >= 1',
  'ratelimit_decisions_total{upstream="told",decision="refused"} >= 1',
  'client_quota_refusals_total{upstream="told"} == 0',
  'ratelimit_rate_requests_per_second{upstream="api",scope="upstream"} == +Inf',
  'ratelimit_ceiling_requests_per_second{upstream="api",scope="upstream"} == +Inf',
  'ratelimit_rate_requests_per_second{upstream="told",scope="upstream"} >= 2',
  'ratelimit_ceiling_requests_per_second{upstream="told",scope="upstream"} == 2',
  'ratelimit_rate_requests_per_second{upstream="each",scope="client"} == 3',
  'ratelimit_rate_requests_per_second{upstream="credited",scope="credential"} == 4',
  'ratelimit_steered{upstream="api",how="pinned"} == 0',
  'ratelimit_blocks{upstream="api",cause="errors",part="upstream"} == 0',
  'ratelimit_state{upstream="api",state="open"} == 1',
  'ratelimit_state{upstream="api",state="blocked"} == 0',
  'ratelimit_state{upstream="told",state="restoring"} == 1',
  'ratelimit_state{upstream="cut",state="backoff"} == 1',
  'ratelimit_state{upstream="cooling",state="cooldown"} == 1',
  'ratelimit_state{upstream="down",state="blocked"} == 1',
  'ratelimit_cuts_total{upstream="cut",cause="first"} == 1',
  'ratelimit_cuts_total{upstream="down",cause="errors"} == 1',
  'ratelimit_cuts_total{upstream="shut",cause="blocked"} == 1',
  'upstream_blocked_until_timestamp_seconds{upstream="down"} > 1e9',
  'upstream_blocked_until_timestamp_seconds{upstream="api"} == 0',
  'upstream_quota_remaining_ratio{upstream="quota"} == 0.25',
  'quota_limit{upstream="counted",quota="month"} == 1000',
  'quota_remaining{upstream="counted",quota="month"} == 999',
  'quota_exhausted_at_timestamp_seconds{upstream="counted",quota="even"} == +Inf',
  'queue_depth{upstream="waiting"} == 2',
  'queue_wait_seconds_count{upstream="told"} >= 1',
  'queue_wait_seconds_bucket{upstream="told",le="+Inf"} >= 1',
  'queue_wait_seconds_sum{upstream="told"} > 0.1',
];

test('exports decisions, rates, states and causes of cuts for each limit', async () => {
  const { url } = await startUpstream();
  const names = ['told', 'each', 'credited', 'cut', 'cooling', 'down', 'shut', 'quota', 'counted', 'waiting'];
  const gate = await startTidegate(`
upstreams:
  api: {url: "${url}"}
  told: {url: "${url}", rateLimit: {initialRate: 2/s}, queue: {maxWait: 900ms}}
  each: {url: "${url}", rateLimit: {initialRate: 3/s, scope: client}}
  credited: {url: "${url}", rateLimit: {initialRate: 4/s, scope: credential}}
  cut: {url: "${url}", retry: {attempts: 1}}
  cooling: {url: "${url}", rateLimit: {cooldown: 60s}, retry: {attempts: 1}}
  down: {url: "${await refusingUrl()}", retry: {attempts: 1}}
  shut: {url: "${url}", retry: {attempts: 1}}
  quota: {url: "${url}"}
  counted: {url: "${url}", quotas: [{limit: 1000, per: month}, {name: even, limit: 1000000, per: month, pace: even}]}
  waiting: {url: "${url}", timeout: 60s, rateLimit: {initialRate: 0.1/s}, queue: {maxWait: 60s}}
routes:
  - {path: /, upstream: api}
${names.map((name) => `  - {path: /${name}, upstream: ${name}}`).join('\n')}
`);
  prometheus.watch('limits', gate.adminUrl);
  const ask = scripted(gate.url);
  await Promise.all(['/', '/each', '/credited', '/counted'].map((path) => ask('200', {}, path)));
  await Promise.all(Array.from({ length: 4 }, () => ask('200', {}, '/told')));
  await ask('200', {}, '/cut');
  await ask('429', {}, '/cut');
  await ask('200', {}, '/cooling');
  await ask('429', {}, '/cooling');
  await pause(300);
  await ask('200', {}, '/cooling');
  for (let i = 0; i < 8; i += 1) await ask('200', {}, '/down');
  await ask('200', {}, '/shut');
  for (let i = 0; i < 5; i += 1) await ask('429', {}, '/shut');
  const quota = ['RateLimit-Policy:"q";q=100;w=60', 'RateLimit:"q";r=25;t=60'];
  await ask(`200; ${quota.map((field) => `header="${field.replaceAll('"', '\\"')}"`).join('; ')}`, {}, '/quota');
  for (let i = 0; i < 3; i += 1) {
    const request = begin(gate.url, '/waiting', {});
    request.end();
    onTestFinished(() => void request.destroy());
  }
  expect(await prometheus.unmet('limits', LIMITS)).toEqual([]);
});

/** A dozen rejections with recovery between them are needed: 15 s on a quiet machine. */
const LEARNING = 100_000;

const LEARNED = [
  ...['first', 'small', 'places'].map((cause) => `ratelimit_cuts_total{upstream="counting",cause="${cause}"} >= 1`),
  'ratelimit_places{upstream="counting",scope="upstream"} >= 3',
  'ratelimit_cuts_total{upstream="falling",cause="heavy"} >= 1',
];

test('exports a limit that dropped sharply, and one of requests in flight', async () => {
  const counting = await startUpstream({
    limit: { kind: 'concurrency', limit: 8 },
    latency: { kind: 'lognormal', mean: 50, sigma: 0.5 },
  });
  const falling = await startUpstream({ limit: { kind: 'token-bucket', rate: 200, burst: 20 } });
  const gate = await startTidegate(`
upstreams:
  counting: {url: "${counting.url}", retry: {attempts: 1}, queue: {maxWait: 300ms}}
  falling: {url: "${falling.url}", rateLimit: {initialRate: 100/s}, retry: {attempts: 1}}
routes: [{path: /, upstream: counting}, {path: /falling, upstream: falling}]
clients: {key: [header:x-api-key]}
`);
  prometheus.watch('learned', gate.adminUrl);
  const clients = ['a', 'b', 'c', 'd'].map((name) => ({ name, rate: 75 }));
  const request = () => ({ method: 'GET', path: '/falling' }) as const;
  const traffic = startTraffic({ target: gate.url, clients: [...clients, { name: 'e', rate: 90, request }] });
  onTestFinished(async () => {
    await traffic.stop(0);
  });
  await pause(1500);
  // To less than half, but not so low that many rejections in a row cause a block.
  falling.configure({ limit: { kind: 'token-bucket', rate: 40, burst: 1 } });
  expect(await prometheus.unmet('learned', LEARNED, LEARNING)).toEqual([]);
}, 120_000);

/** While one of the clients exceeds its share by far. */
const GREEDY = [
  ...['normal', 'backoff'].map((state) => `clients_by_state{state="${state}"} >= 1`),
  'client_allowance_ratio{stat="min"} < 1',
  'client_allowance_ratio{stat="mean"} < 1',
  'client_cuts_total >= 1',
  'client_evictions_total{cause="calm"} >= 1',
  'client_evictions_total{cause="troubled"} == 0',
  'auth_rejected_total{reason="missing"} == 0',
  'client_requests_total{client="shop",outcome="forwarded"} >= 1',
  'client_requests_total{client="shop",outcome="refused"} >= 1',
];
/** Once it has stopped. */
const CLIENTS = [
  'clients_tracked == 3',
  'clients_by_state{state="cooldown"} >= 0',
  ...['held', 'restoring'].map((state) => `clients_by_state{state="${state}"} >= 1`),
  'client_transitions_total{from="normal",to="held"} == 1',
  ...['backoff', 'cooldown', 'restoring'].map((state) => `client_transitions_total{to="${state}"} >= 1`),
];

test('exports clients by state, evicted clients and named clients', async () => {
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams:
  api: {url: "${upstream.url}", rateLimit: {initialRate: 20/s}, queue: {maxWait: 200ms}}
  other: {url: "${upstream.url}", retry: {attempts: 1}}
routes: [{path: /, upstream: api}, {path: /other, upstream: other}]
clients: {key: ["header:x-api-key"], maxTracked: 3, names: {shop: [greedy-*]}}
`);
  prometheus.watch('clients', gate.adminUrl);
  const ask = scripted(gate.url);
  const by = (key: string) => ({ headers: ['X-Api-Key', key] });
  for (const key of ['one', 'two', 'three', 'four', 'five']) await ask('200', by(key));
  const traffic = startTraffic({
    target: gate.url,
    clients: [
      { name: 'greedy-1', rate: 300 },
      { name: 'modest', rate: 5 },
    ],
  });
  expect(await prometheus.unmet('clients', GREEDY)).toEqual([]);
  await traffic.stop(0);
  await ask('429; retry-after=60', by('held'), '/other');
  expect(await prometheus.unmet('clients', CLIENTS)).toEqual([]);
});

const PROCESS = [
  'build_info{version="test"} == 1',
  'mode{mode="enforce"} == 1',
  'mode{mode="observe"} == 0',
  'upstream_observed{upstream="api"} == 0',
  'config_last_reload_successful == 1',
  'config_last_reload_success_timestamp_seconds > 1.7e9',
  'upstream_tls_insecure{upstream="careless"} == 1',
  'upstream_tls_insecure{upstream="api"} == 0',
  'endpoint_healthy{upstream="api"} == 0',
  'endpoint_healthy{upstream="api"} == 1',
  'upstream_fallbacks_total{upstream="careless",reason="connect"} == 1',
  'settled_costs_total{upstream="costly",limit=""} == 1',
  'settled_cost_units_total{upstream="costly",limit=""} == 4',
  'charged_cost_units_total{upstream="costly",limit=""} == 7',
  'unread_costs_total{upstream="costly",reason="not_found"} == 1',
  'endpoint_ejections_total{upstream="api"} >= 1',
  'endpoint_checks_total{upstream="api",result="passed"} >= 1',
  'endpoint_checks_total{upstream="api",result="failed"} >= 1',
  'account_requests_total{upstream="api",account="main",result="accepted"} >= 1',
  'account_requests_total{upstream="api",account="main",result="throttled"} == 0',
  'account_requests_total{upstream="api",account="main",result="rejected"} == 0',
  'account_requests_total{upstream="api",account="main",result="failed"} >= 1',
  'account_quarantined{upstream="api",account="main"} == 0',
  'account_rate_requests_per_second{upstream="api",account="main"} > 0',
  'upgraded_connections{route="/chat"} == 1',
  'writes_interrupted_total{route="/chat"} == 0',
  'signatures_total{route="/hooks",result="missing"} == 1',
  'signatures_total{route="/hooks",result="valid"} == 0',
  'upgraded_bytes_total{route="/chat",direction="to_upstream"} > 5',
  'upgraded_bytes_total{route="/chat",direction="to_client"} > 5',
  'request_duration_seconds_count{route="/chat",code_class="1xx"} == 1',
  'bound_used_ratio{bound="connections"} > 0',
  'bound_used_ratio{bound="heap"} > 0',
  'bound_reached_total{bound="event_loop"} >= 0',
  'overload_shed_ratio > 0',
  'overload_episodes_total == 1',
];

test('exports endpoints, upgrades, bounds and overload of the process', async () => {
  const [up, down] = [await startSwitchableUpstream(), await startSwitchableUpstream()];
  const chat = await startWebSocketUpstream();
  const costly = await startSwitchableUpstream();
  const gate = await startTidegate(`
limits: {overload: {eventLoopDelay: 200ms}}
upstreams:
  api: {urls: ["${up.url}", "${down.url}"], outlierDetection: {consecutiveGatewayErrors: 1, baseEjectionTime: 60s}, healthCheck: {path: /, interval: 50ms}, retry: {${FAST}}, accounts: [{name: main, value: token}]}
  chat: {url: "${chat.url}"}
  costly: {url: "${costly.url}", rateLimit: {cost: {response: {header: Content-Length}, expected: 7, max: 9000}}, limits: [{name: x, cost: {response: {header: X-None}, expected: 1, max: 9}}]}
  careless: {url: "https://127.0.0.1:1", tls: {insecure: true}, fallback: api, retry: {attempts: 1}}
routes:
  - {path: /, upstream: api}
  - {path: /chat, upstream: chat}
  - {path: /careless, upstream: careless}
  - {path: /costly, upstream: costly}
  - {path: /hooks, upstream: api, verify: {scheme: github, secrets: [secret]}}
`);
  prometheus.watch('process', gate.adminUrl);
  await send(gate.url, '/hooks', { method: 'POST' });
  await down.stop();
  for (let i = 0; i < 6; i += 1) await send(gate.url, '/');
  await send(gate.url, '/careless');
  await send(gate.url, '/costly');
  const open = async (): Promise<WebSocket> => {
    const socket = new WebSocket(`${gate.url.replace('http', 'ws')}/chat`);
    onTestFinished(() => socket.close());
    await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
    return socket;
  };
  const ended = await open();
  ended.send('over and out');
  await new Promise((resolve) => ended.addEventListener('message', resolve, { once: true }));
  ended.close();
  await open();
  const share = () => gate.metric('tidegate_overload_shed_ratio');
  while ((await share()) < 0.5) {
    const until = performance.now() + 500;
    while (performance.now() < until); // blocks the event loop
    await pause(5);
  }
  expect(await prometheus.unmet('process', PROCESS)).toEqual([]);
});

const POLLS = [
  ...['not_ready', 'ready', 'failed', 'client_gone'].map(
    (outcome) => `polls_total{route="/",outcome="${outcome}"} >= 1`,
  ),
  'polls_total{route="/held",outcome="refused"} == 1',
  'polls_waiting{route="/"} == 1',
  'polls_waiting{route="/held"} == 0',
  'poll_wait_seconds_count{route="/"} >= 3',
  'poll_wait_seconds_bucket{route="/",le="+Inf"} >= 3',
  'poll_wait_seconds_sum{route="/"} > 0.5',
  'polls_slowed_total{route="/"} >= 2',
  'bound_used_ratio{bound="polls_waiting"} > 0',
  'bound_used_ratio{bound="polled_resources"} > 0',
];

const CHECKED = [
  'requests_total{route="/",outcome="checked"} == 2',
  'upstream_reports_total{upstream="api",code="429"} == 1',
  'upstream_reports_total{upstream="api",code="200"} == 1',
];

test('counts checks by result, and their reports', async () => {
  const upstream = await startUpstream();
  const token = '0123456789abcdef';
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}"}}
clients: {trustedProxies: [127.0.0.1]}
check: {token: ${token}}
`);
  prometheus.watch('checks', gate.adminUrl);
  for (const status of [200, 429]) {
    const { headers } = await fetch(`${gate.url}/check`);
    const body = JSON.stringify({ permit: headers.get('Tidegate-Permit'), status });
    const reply = await fetch(`${gate.url}/report`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body,
    });
    expect(reply.status).toBe(204);
  }
  expect(await prometheus.unmet('checks', CHECKED)).toEqual([]);
});

test('counts polls by result, and waiting clients', async () => {
  // The last path segment lists the statuses to answer with, in order.
  const asked = new Map<string, number>();
  const upstream = await startHttpUpstream((_n, response, { target }) => {
    const n = asked.get(target) ?? 0;
    asked.set(target, n + 1);
    const answers = target.slice(target.lastIndexOf('/') + 1).split(',');
    const answer = answers[Math.min(n, answers.length - 1)];
    if (answer !== 'hang') response.writeHead(Number(answer), answer === '429' ? ['Retry-After', '60'] : []).end();
  });
  const poll = 'poll: {backOff: {strategy: fixed, baseInterval: 200ms}}';
  const gate = await startTidegate(`
upstreams:
  api: {url: "${upstream.url}", retry: {attempts: 1}}
  held: {url: "${upstream.url}", retry: {attempts: 1}}
routes: [{path: /, upstream: api, ${poll}}, {path: /held, upstream: held, ${poll}}]
`);
  prometheus.watch('polls', gate.adminUrl);
  const waits = { headers: ['Prefer', 'wait=30'] };
  await send(gate.url, '/202,202,200', waits);
  await send(gate.url, '/202,410', waits);
  await sendAndLeave(gate.url, '/202,hang', waits, () => asked.get('/202,hang') === 2);
  for (let i = 0; i < 2; i += 1) await send(gate.url, '/202');
  // The client's hold exceeds its wait.
  const held = send(gate.url, '/held/202', waits);
  await send(gate.url, '/held/429');
  expect((await held).status).toBe(429);
  const waiting = begin(gate.url, '/202', waits);
  waiting.end();
  onTestFinished(() => void waiting.destroy());
  expect(await prometheus.unmet('polls', POLLS)).toEqual([]);
});

const STORE = [
  ...['lease', 'report', 'hold'].map((op) => `store_requests_total{store="redis",op="${op}",result="ok"} >= 1`),
  'store_duration_seconds_count{store="redis",op="lease",result="ok"} >= 1',
  'store_duration_seconds_bucket{store="redis",op="lease",result="ok",le="+Inf"} >= 1',
  'store_degraded{store="redis"} == 0',
  'store_keys{store="redis",upstream="api",state="answered"} == 1',
  'store_keys{store="redis",upstream="api",state="unresolved"} == 0',
];
const STORE_LOST = [
  'store_degraded{store="redis"} == 1',
  'store_requests_total{store="redis",op="lease",result="timeout"} >= 1',
  'store_requests_total{store="redis",op="report",result="error"} >= 1',
  'idempotency_keys_total{upstream="api",event="decided_locally"} >= 1',
];

test('exports the state of the shared store, and its loss', async () => {
  const redis = await startRedis();
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams:
  api: {url: "${upstream.url}", rateLimit: {initialRate: 50/s}, retry: {attempts: 1}, idempotency: {onStoreLost: local}}
  unused: {url: "${upstream.url}", rateLimit: {scope: client, initialRate: 5/s}}
routes: [{path: /, upstream: api}, {path: /unused, upstream: unused}]
state: {store: redis, url: "${redis.url}", timeout: 240ms}
`);
  prometheus.watch('store', gate.adminUrl);
  const traffic = startTraffic({ target: gate.url, clients: [{ name: 'c', rate: 40 }] });
  onTestFinished(async () => {
    await traffic.stop(0);
  });
  await scripted(gate.url)('200', { method: 'POST', headers: ['Idempotency-Key', 'order'] });
  await scripted(gate.url)('429; retry-after=1');
  expect(await prometheus.unmet('store', STORE)).toEqual([]);
  redis.freeze();
  // Once a report has had no response, a limit requests no tokens: only the first use of another limit certainly does.
  await scripted(gate.url)('200', {}, '/unused');
  await redis.kill();
  await scripted(gate.url)('200', { method: 'POST', headers: ['Idempotency-Key', 'another'] });
  expect(await prometheus.unmet('store', STORE_LOST)).toEqual([]);
});

const WORKERS = [
  'workers == 2',
  'worker_restarts_total == 1',
  'requests_total{code="200"} == 20',
  'ratelimit_state{upstream="api",state="open"} == 1',
];

test('exports the same for several workers as for one process', async () => {
  const { url } = await startUpstream();
  const gate = await startWorkers(`workers: 2\nupstreams: {api: {url: "${url}"}}\n`);
  prometheus.watch('workers', gate.adminUrl);
  for (let i = 0; i < 20; i += 1) expect((await send(gate.url, '/')).status).toBe(200);
  expect(await prometheus.unmet('workers', WORKERS.slice(2))).toEqual([]);
  const [first] = gate.pids();
  if (first === undefined) throw new Error('nobody serves');
  process.kill(first, 'SIGKILL');
  expect(await prometheus.unmet('workers', WORKERS)).toEqual([]);
});

const RELOADED = ['config_last_reload_successful == 1', 'config_last_reload_success_timestamp_seconds > 1.7e9'];
const NOT_RELOADED = ['config_last_reload_successful == 0'];

test('counts accepted and rejected configurations', async () => {
  const { url } = await startUpstream();
  const upstreams = `upstreams: {api: {url: "${url}"}}\n`;
  const gate = await startTidegate(upstreams);
  prometheus.watch('reloads', gate.adminUrl);
  expect((await gate.rewrite(`${upstreams}workers: 2\n`)).kind).toBe('refused');
  expect(await prometheus.unmet('reloads', NOT_RELOADED)).toEqual([]);
  expect((await gate.rewrite(`${upstreams}log: {level: warn}\n`)).kind).toBe('applied');
  expect(await prometheus.unmet('reloads', RELOADED)).toEqual([]);
});

const CERTIFICATES = ['certificate_expiry_timestamp_seconds{setting="listen.tls.cert"} > 1700000000'];

test('shows when certificates expire', async () => {
  const certificates = makeCertificates();
  onTestFinished(() => certificates.remove());
  certificates.selfSign('own');
  const gate = await startTidegate(`
listen: {address: 127.0.0.1:0, tls: {cert: ${certificates.path('own.crt')}, key: ${certificates.path('own.key')}}}
upstreams: {api: {url: "http://127.0.0.1:1"}}
`);
  prometheus.watch('certificates', gate.adminUrl);
  expect(await prometheus.unmet('certificates', CERTIFICATES)).toEqual([]);
});

const STATE = [
  'state_writes{state="answered"} == 1',
  'state_writes{state="unresolved"} == 1',
  'state_commit_duration_seconds_count >= 3',
  'state_commit_duration_seconds_bucket{le="+Inf"} >= 3',
  'state_commit_failures_total == 0',
];

test('exports the database with the keys of writes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-state-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const upstream = await startUpstream();
  const gate = await startTidegate(`
upstreams: {api: {url: "${upstream.url}", retry: {attempts: 1}}}
state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}
`);
  prometheus.watch('state', gate.adminUrl);
  const ask = scripted(gate.url);
  await ask('200', { method: 'POST', headers: ['Idempotency-Key', 'paid'] });
  await ask('500', { method: 'POST', headers: ['Idempotency-Key', 'lost'] });
  expect(await prometheus.unmet('state', STATE)).toEqual([]);
});

const DELIVERIES = [
  'requests_total{route="/hooks",method="POST",code="202",outcome="accepted"} == 3',
  'responses_total{route="/hooks",code_class="2xx"} == 3',
  'responses_total{route="/hooks",code_class="5xx"} == 0',
  'upstream_attempts_total{upstream="shop",attempt="1",code="503"} == 1',
  'deliveries_total{route="/hooks",event="accepted"} == 2',
  'deliveries_total{route="/hooks",event="duplicate"} == 1',
  'deliveries_total{route="/hooks",event="delivered"} == 1',
  'deliveries_total{route="/hooks",event="dead"} == 1',
  'deliveries_total{route="/hooks",event="canceled"} == 0',
  'deliveries_total{route="/down",event="accepted"} == 1',
  'deliveries_total{route="/quiet",event="dead"} == 0',
  'delivery_attempts_total{route="/hooks",result="status_503"} == 1',
  'delivery_attempts_total{route="/hooks",result="status_400"} == 2',
  'delivery_attempts_total{route="/hooks",result="acknowledged"} == 1',
  'delivery_attempts_total{route="/down",result="connect"} >= 1',
  'delivery_age_seconds_count{route="/hooks"} == 1',
  'delivery_age_seconds_sum{route="/hooks"} >= 1',
  'delivery_age_seconds_bucket{route="/hooks",le="+Inf"} == 1',
  'deliveries{state="waiting"} == 1',
  'deliveries{state="delivered"} == 1',
  'deliveries{state="dead"} == 1',
  ...['sending', 'canceled', 'unknown'].map((state) => `deliveries{state="${state}"} == 0`),
  'deliveries_bytes > 100',
  'delivery_oldest_age_seconds > 0.5',
  'bound_used_ratio{bound="deliveries"} == 0.5',
  'bound_used_ratio{bound="delivery_bytes"} > 0',
  'bound_used_ratio{bound="delivery_events"} > 0',
  'bound_reached_total{bound="deliveries"} == 0',
];

test('exports deliveries, their attempts, and the oldest that waits', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-state-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const upstream = await startUpstream();
  const gate = await startTidegate(`
secret: a-secret-of-the-tests-0123456789abcdef
state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}
limits: {deliveries: 4}
upstreams:
  shop: {url: "${upstream.url}", retry: {attempts: 1}}
  nobody: {url: "${await refusingUrl()}", retry: {attempts: 1}}
routes:
  - {path: /hooks, upstream: shop, deliver: {schedule: {delays: [1s]}, eventId: {json: id}}}
  - {path: /down, upstream: nobody, deliver: {schedule: {delays: [1h]}}}
  - {path: /quiet, upstream: shop, deliver: {}}
`);
  prometheus.watch('deliveries', gate.adminUrl);
  const ask = scripted(gate.url);
  const notify = (script: string, id: string, path = '/hooks') =>
    ask(script, { method: 'POST', body: JSON.stringify({ id }) }, path);
  for (const script of ['503, 200', '200']) expect((await notify(script, 'evt_1')).status).toBe(202);
  expect((await notify('400, 400', 'evt_2')).status).toBe(202);
  expect((await notify('200', 'evt_3', '/down')).status).toBe(202);
  expect(await prometheus.unmet('deliveries', DELIVERIES)).toEqual([]);
});

const table = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8');

test('covers every exported metric here and in the table of docs/metrics.md', async () => {
  const redis = await startRedis();
  const folder = mkdtempSync(join(tmpdir(), 'tidegate-state-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const upstream = await startUpstream();
  const upstreams = `upstreams: {api: {url: "${upstream.url}"}}\n`;
  const single = await startTidegate(`${upstreams}state: {store: redis, url: "${redis.url}"}\n`);
  const cluster = await startWorkers(
    `workers: 2\n${upstreams}state: {store: sqlite, file: ${join(folder, 'state.db')}, durability: normal}\n`,
  );
  await send(single.url, '/');
  const texts = await Promise.all(
    [single.adminUrl, cluster.adminUrl].map(async (url) => (await fetch(`${url}/metrics`)).text()),
  );
  const text = texts.join('\n');
  const exported = new Map(
    Array.from(text.matchAll(/^# TYPE tidegate_(\w+) (\w+)$/gm), ([, name = '', type = '']) => [name, type]),
  );

  const said = [
    REQUESTS,
    ATTEMPTS,
    LIMITS,
    LEARNED,
    GREEDY,
    CLIENTS,
    PROCESS,
    CHECKED,
    POLLS,
    STORE,
    STATE,
    DELIVERIES,
    WORKERS,
    RELOADED,
    CERTIFICATES,
  ].flat();
  const missing = [...exported.keys()].filter(
    (name) => !said.some((each) => new RegExp(`^${name}(_count|_sum|_bucket)?[ {]`).test(each)),
  );
  expect(missing).toEqual([]);

  const written = Array.from(table.matchAll(/^\| `(\w+)` \| (counter|gauge|histogram) \| ([\w, –]+) \|/gm));
  expect(new Map(written.map(([, name = '', type = '']) => [name, type]))).toEqual(exported);
  for (const [, name = '', , labels] of written) {
    // A metric that has had no samples appears by name only.
    const [, found] = new RegExp(`^tidegate_${name}(?:_count)?(?:\\{(.*)\\})? `, 'm').exec(text) ?? [];
    if (found === undefined) continue;
    const names = Array.from(found.matchAll(/(\w+)="[^"]*"/g), ([, label]) => label);
    expect(`${name}: ${names.join(', ')}`).toBe(`${name}: ${labels}`);
  }
});
