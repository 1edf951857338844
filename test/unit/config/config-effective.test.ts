import { expect, test } from 'vitest';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';
import { makePem } from '../../support/certificates.ts';

const PEM = makePem();

function load(text: string): Config {
  const loaded = loadConfig(text, 'f', { env: {}, readFile: () => PEM });
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded.mistakes));
  return loaded.config;
}

test('prints the defaults too, in readable units', () => {
  expect(
    formatEffectiveConfig(
      load('upstreams: {api: {url: https://api.example.com, retry: {backOff: {maxInterval: 1500ms}}}}'),
    ),
  ).toBe(
    `listen: 127.0.0.1:8080
admin:
  listen: 127.0.0.1:9901
mode: enforce
workers: 1
limits:
  replayMemory: 64MiB
  headers: 10s
  bodyIdle: 30s
  bodyRate: 500B/s
  readRate: 500B/s
  connections: 20000
  requests: 20000
  keptResponses: 100000
  deliveries: 1000000
  deliveryBytes: 1GiB
  deliveryAge: 30d
  overload:
    eventLoopDelay: 500ms
    heapUsed: 0.75
drain:
  delay: 5s
  timeout: 25s
forwarded: false
log:
  level: info
  format: auto
  buffer: 16MiB
  successes: 1
clients:
  key: [ip]
  trustedProxies: []
  maxTracked: 100000
  classes: {}
  names: {}
upstreams:
  api:
    url: https://api.example.com
    tls:
      minVersion: TLSv1.2
      insecure: false
    http2: false
    preserveHost: false
    timeout: 10s
    perTryTimeout: 5s
    connectTimeout: 5s
    streamIdle: 5m
    connections: 256
    dnsRefresh: 10s
    outlierDetection:
      consecutiveGatewayErrors: 5
      baseEjectionTime: 10s
      maxEjectionTime: 5m
      maxEjectionPercent: 50
    retry:
      retryOn: [5xx, "429", connect-failure, reset, timeout]
      attempts: 4
      backOff:
        strategy: full-jitter
        baseInterval: 100ms
        multiplier: 2
        maxInterval: 1500ms
      backOffFor: {}
      budget:
        ratio: 0.2
        burst: 10
      maxRetryAfter: 1m
      replayLimit: 64KiB
      unkeyedWrites: never
      onClientGone: cancel
      notProcessed: [501, 503, 505, 529]
      minAttemptTime: 250ms
      safePaths: []
      neverPaths: []
    rateLimit:
      scope: upstream
      credentialHeader: Authorization
      minRate: 0.1/s
      cooldown: 1s
      maxProbeDelay: 30s
      learnFromLatency: false
    limits: []
    quotas: []
    queue:
      maxWait: 1s
      maxDepth: 10000
    idempotency:
      header: Idempotency-Key
      account: [header:Stripe-Account, header:Stripe-Context, header:X-Razorpay-Account, jwt:PayPal-Auth-Assertion:payer_id|email]
      replayedHeader: Idempotent-Replayed
      sharesKeys: false
      generate: false
      concurrent: wait
      onStoreLost: refuse
routes:
  - path: /
    upstream: api
state:
  store: memory
`,
  );
});

test('prints a configuration with the same meaning', () => {
  const config = load(`listen: {address: "[::]:8443", tls: {cert: a.pem, key: a.pem, minVersion: TLSv1.3}, http2: true}
admin: false
telemetry: unix:/run/telemetry.sock
forwarded: true
limits: {replayMemory: 1000B, headers: 1500ms}
upstreams:
  a:
    url: https://a.example:8443
    tls: {ca: ca.pem, serverName: b.example, minVersion: TLSv1.3}
    http2: true
    retry: {retryOn: ["409", gateway-error, lock], backOffFor: {"429": {strategy: table, table: [1, 5], slot: 0.5s}}}
    rateLimit: {scope: client, maxRate: 5000/h, initialRate: 20/m}
  b: {url: practice}
  c: {urls: [http://c1.example, "http://[::1]:8080"], dnsRefresh: 2s, outlierDetection: {maxEjectionPercent: 100}}
  d: {url: "unix:/run/d.sock"}
routes:
  - {path: /a, upstream: a, host: a.example, methods: [GET, PURGE], retry: {attempts: 1, backOff: {jitter: 0.1, strategy: grpc}}}
  - {path: /b, upstream: b, rewritePrefix: /, timeout: 90s}
clients:
  key: [header:X-Api-Key, bearer, "path:2", ip]
  trustedProxies: [10.0.0.0/8, fd00::1]
  classes: {c: {match: {header: {x-tier: gold*}}, weight: 2.5, backOff: {maxInterval: 100ms}, quota: [10/day, {limit: 5, per: month, timezone: Europe/Berlin}]}}
practice: {limit: {kind: sliding-window, limit: 5, window: 10s}, latency: 0, hints: ratelimit}
state: {store: redis, url: "valkeys+sentinel://a,[::1]:7/main/3", timeout: 50ms, tls: {ca: ca.pem}, username: u, password: p}
`);
  const again = load(formatEffectiveConfig(config));
  const { backOff } = again.upstreams['a']!.retry;
  // Printing fills in the defaults of the strategy.
  expect(backOff).toEqual({ strategy: 'full-jitter', baseInterval: 100, multiplier: 2, maxInterval: 20_000 });
  expect({
    ...again,
    upstreams: Object.fromEntries(
      Object.entries(again.upstreams).map(([name, upstream]) => [
        name,
        { ...upstream, retry: { ...upstream.retry, backOff: config.upstreams[name]!.retry.backOff } },
      ]),
    ),
  }).toEqual({ ...config, state: { ...config.state, password: '***' } });
  expect(formatEffectiveConfig(again)).toBe(formatEffectiveConfig(config));
});
