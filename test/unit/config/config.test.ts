/* oxlint-disable eslint/no-template-curly-in-string -- configurations have ${…} of their own */
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { SettingOverride } from '../../../src/config/load/setting-overrides.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { mergeBackOff, mergeRetry } from '../../../src/config/schema/retry-overrides.ts';
import type { BackOffConfig, Config, PracticeConfig } from '../../../src/config/schema/config-schema.ts';
import type { BackOffSpec } from '../../../src/core/backoff/strategies.ts';
import type { LimitModelSpec } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import { withPresets } from '../../support/proxy/presets.ts';

const FILES: Readonly<Record<string, string>> = { '/run/secrets/hash': 'a secret of a file\n', '/two': 'a\nb\n\n' };
const ENV = { URL: 'https://api.example.com', ATTEMPTS: '3', RATIO: '0.5', ON: 'true', HOST: 'api', EMPTY: '' };

function load(text: string, given: readonly SettingOverride[] = []): Config {
  const loaded = loadConfig(text, 'tidegate.yaml', { env: ENV, readFile }, given);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded.config;
}

function warningsOf(text: string): string {
  const loaded = loadConfig(text, 'tidegate.yaml', { env: ENV, readFile: withPresets(readFile) });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return formatWarnings(loaded.warnings);
}

function readFile(path: string): string {
  const content = FILES[path];
  if (content === undefined) throw Object.assign(new Error('no'), { code: 'ENOENT' });
  return content;
}

const MINIMAL = 'upstreams: {api: {url: "https://api.example.com"}}';

describe('defaults', () => {
  test('apply to a configuration of one upstream', () => {
    expect(load(MINIMAL)).toEqual({
      listen: {
        address: { kind: 'tcp', host: '127.0.0.1', port: 8080 },
        tls: undefined,
        http2: false,
        permissions: undefined,
      },
      admin: { listen: { kind: 'tcp', host: '127.0.0.1', port: 9901 }, token: undefined },
      mode: 'enforce',
      workers: 1,
      limits: {
        replayMemory: 64 * 1024 * 1024,
        headers: 10_000,
        bodyIdle: 30_000,
        bodyRate: 500,
        readRate: 500,
        connections: 20_000,
        requests: 20_000,
        keptResponses: 100_000,
        deliveries: 1_000_000,
        deliveryBytes: 1024 ** 3,
        deliveryAge: 30 * 24 * 3_600_000,
        overload: { eventLoopDelay: 500, heapUsed: 0.75 },
      },
      drain: { delay: 5000, timeout: 25_000 },
      forwarded: false,
      log: { level: 'info', format: 'auto', buffer: 16 * 1024 * 1024, successes: 1 },
      clients: { key: [{ kind: 'ip' }], trustedProxies: [], maxTracked: 100_000, classes: {}, names: {} },
      upstreams: {
        api: {
          url: 'https://api.example.com',
          tls: { minVersion: 'TLSv1.2', insecure: false },
          preserveHost: false,
          timeout: 10_000,
          perTryTimeout: 5000,
          http2: false,
          connectTimeout: 5000,
          streamIdle: 300_000,
          connections: 256,
          dnsRefresh: 10_000,
          outlierDetection: {
            consecutiveGatewayErrors: 5,
            baseEjectionTime: 10_000,
            maxEjectionTime: 300_000,
            maxEjectionPercent: 50,
          },
          retry: {
            retryOn: ['5xx', 429, 'connect-failure', 'reset', 'timeout'],
            attempts: 4,
            backOff: { strategy: 'full-jitter' },
            backOffFor: {},
            budget: { ratio: 0.2, burst: 10 },
            maxRetryAfter: 60_000,
            replayLimit: 64 * 1024,
            unkeyedWrites: 'never',
            onClientGone: 'cancel',
            notProcessed: [501, 503, 505, 529],
            minAttemptTime: 250,
            safePaths: [],
            neverPaths: [],
          },
          rateLimit: {
            scope: 'upstream',
            credentialHeader: 'Authorization',
            minRate: 0.1,
            cooldown: 1000,
            learnFromLatency: false,
            maxProbeDelay: 30_000,
          },
          limits: [],
          quotas: [],
          queue: { maxWait: 1000, maxDepth: 10_000 },
          idempotency: {
            header: 'Idempotency-Key',
            account: [
              { kind: 'header', header: 'Stripe-Account' },
              { kind: 'header', header: 'Stripe-Context' },
              { kind: 'header', header: 'X-Razorpay-Account' },
              { kind: 'jwt', header: 'PayPal-Auth-Assertion', claims: ['payer_id', 'email'] },
            ],
            replayedHeader: 'Idempotent-Replayed',
            sharesKeys: false,
            generate: false,
            concurrent: 'wait',
            onStoreLost: 'refuse',
          },
        },
      },
      routes: [{ path: '/', upstream: 'api' }],
      state: { store: 'memory' },
    });
  });

  test('send every request to the only upstream, unless routes are configured', () => {
    expect(load(`${MINIMAL}\nroutes: []`).routes).toEqual([{ path: '/', upstream: 'api' }]);
    expect(load(`${MINIMAL}\nroutes: [{path: /v1, upstream: api}]`).routes).toEqual([{ path: '/v1', upstream: 'api' }]);
  });
});

describe('the loader', () => {
  test('reads addresses of hosts, IPv6 and Unix sockets', () => {
    const listen = (text: string): unknown => load(`${MINIMAL}\nlisten: ${text}`).listen.address;
    expect(listen('0.0.0.0:80')).toEqual({ kind: 'tcp', host: '0.0.0.0', port: 80 });
    expect(listen('localhost:0')).toEqual({ kind: 'tcp', host: 'localhost', port: 0 });
    expect(listen('"[::]:8080"')).toEqual({ kind: 'tcp', host: '::', port: 8080 });
    expect(listen('unix:/run/tidegate.sock')).toEqual({ kind: 'unix', path: '/run/tidegate.sock' });
  });

  test('reads an admin port as an address, with or without a token, or as none', () => {
    const admin = (text: string): unknown => load(`${MINIMAL}\nadmin: ${text}`).admin;
    expect(admin('false')).toBe(false);
    expect(admin('"[::1]:1"')).toEqual({ listen: { kind: 'tcp', host: '::1', port: 1 }, token: undefined });
    expect(admin('{listen: 0.0.0.0:1, token: 0123456789abcdef}')).toEqual({
      listen: { kind: 'tcp', host: '0.0.0.0', port: 1 },
      token: '0123456789abcdef',
    });
  });

  test('reads statuses to retry as numbers, quoted or not', () => {
    const { retry } = load('upstreams: {api: {url: http://a, retry: {retryOn: [429, "409", 5xx, lock]}}}').upstreams[
      'api'
    ]!;
    expect(retry.retryOn).toEqual([429, 409, '5xx', 'lock']);
  });

  test('reads client keys in the order written', () => {
    expect(load(`${MINIMAL}\nclients: {key: ["header:X-Api-Key", bearer, "path:2", ip]}`).clients.key).toEqual([
      { kind: 'header', name: 'X-Api-Key' },
      { kind: 'bearer' },
      { kind: 'path', segment: 2 },
      { kind: 'ip' },
    ]);
  });

  test('reduces the URL of an upstream to its origin', () => {
    const url = (text: string): unknown => load(`upstreams: {api: {url: "${text}"}}`).upstreams['api']!.url;
    expect(url('HTTPS://API.example.com:443/')).toBe('https://api.example.com');
    expect(url('http://[::1]:3000')).toBe('http://[::1]:3000');
  });

  test('accepts an upstream with the name of a property of every object', () => {
    expect(
      load('upstreams: {constructor: {url: http://a}, toString: {url: http://b}}\nroutes: [{upstream: toString}]')
        .routes,
    ).toEqual([{ path: '/', upstream: 'toString' }]);
  });

  test('accepts an anchor that is used twice', () => {
    const { upstreams } = load(
      'upstreams: {a: {url: http://a, queue: &q {maxWait: 2s}}, b: {url: http://b, queue: *q}}\nroutes: [{upstream: a}]',
    );
    expect(upstreams['b']!.queue).toEqual({ maxWait: 2000, maxDepth: 10_000 });
  });

  test('returns settings of the types that their consumers expect', () => {
    expectTypeOf<BackOffConfig>().toExtend<BackOffSpec>();
    expectTypeOf<PracticeConfig['limit']>().toExtend<LimitModelSpec>();
    expectTypeOf<Config['upstreams'][string]['timeout']>().toEqualTypeOf<number>();
  });
});

describe('variables and files', () => {
  test('may appear anywhere within text, more than once', () => {
    const { upstreams, secret } = load(
      'secret: ${file:/run/secrets/hash}\nupstreams: {api: {url: "http://${HOST}.${HOST}"}}',
    );
    expect(secret).toBe('a secret of a file');
    expect(upstreams['api']!.url).toBe('http://api.api');
  });

  test('drop only the last line break of a file', () => {
    expect(
      load(`${MINIMAL}\nclients: {classes: {c: {match: {key: ["\${file:/two}"]}}}}`).clients.classes['c']!.match.key,
    ).toEqual(['a\nb\n']);
  });

  test('are escaped by a doubled dollar', () => {
    const { clients } = load(
      `${MINIMAL}\nclients: {classes: {c: {match: {key: ["$\${HOST}-\${HOST}", "$5", "$HOST"]}}}}`,
    );
    expect(clients.classes['c']!.match.key).toEqual(['${HOST}-api', '$5', '$HOST']);
  });

  test('become numbers or booleans if those are expected, and text elsewhere', () => {
    const { upstreams } = load(
      'upstreams: {api: {url: "${URL}", preserveHost: "${ON}", retry: {attempts: "${ATTEMPTS}", budget: {ratio: "${RATIO}"}}, tls: {serverName: "${ATTEMPTS}"}}}',
    );
    const { preserveHost, retry, tls } = upstreams['api']!;
    expect({ preserveHost, attempts: retry.attempts, ratio: retry.budget.ratio, serverName: tls.serverName }).toEqual({
      preserveHost: true,
      attempts: 3,
      ratio: 0.5,
      serverName: '3',
    });
  });

  test('add no structure, and are not expanded again', () => {
    const env = { LIST: '[ip, bearer]', AGAIN: '${SECRET}', SECRET: 'never seen' };
    const classes = 'clients: {classes: {c: {match: {key: ["${LIST}", "${AGAIN}"]}}}}';
    const loaded = loadConfig(`${MINIMAL}\n${classes}`, 'f', { env, readFile });
    expect(loaded).toMatchObject({
      config: { clients: { classes: { c: { match: { key: ['[ip, bearer]', '${SECRET}'] } } } } },
    });
  });
});

describe('overrides', () => {
  const base: BackOffConfig = { strategy: 'full-jitter', baseInterval: 50, maxInterval: 1000 };

  test('of the same strategy are merged option by option', () => {
    expect(mergeBackOff(base, { maxInterval: 200 })).toEqual({
      strategy: 'full-jitter',
      baseInterval: 50,
      maxInterval: 200,
    });
    expect(mergeBackOff(base, undefined)).toEqual(base);
  });

  test('by another strategy start from its own defaults', () => {
    expect(mergeBackOff(base, { strategy: 'sip', maxInterval: 2000 })).toEqual({
      strategy: 'sip',
      maxInterval: 2000,
    });
  });

  test('of a route are merged key by key', () => {
    const { upstreams, routes } = load(
      `upstreams: {api: {url: http://a, retry: {attempts: 7, maxRetryAfter: 5s, backOff: {baseInterval: 1s}, backOffFor: {reset: {baseInterval: 2s}}}}}
routes: [{upstream: api, retry: {attempts: 2, backOff: {maxInterval: 3s}, backOffFor: {timeout: {baseInterval: 1s}}}}]`,
    );
    const { retry } = upstreams['api']!;
    expect(mergeRetry(retry, routes[0]!.retry)).toEqual({
      ...retry,
      attempts: 2,
      backOff: { strategy: 'full-jitter', baseInterval: 1000, maxInterval: 3000 },
      backOffFor: { reset: { baseInterval: 2000 }, timeout: { baseInterval: 1000 } },
    });
    expect(mergeRetry(retry, undefined)).toBe(retry);
  });
});

describe('warnings', () => {
  test('are reported with their positions, and reject nothing', () => {
    expect(
      warningsOf(`upstreams:
  api:
    url: http://api
    timeout: 2s
    perTryTimeout: 3s
    tls: {insecure: true}
    queue: {maxWait: 2s}
    retry: {unkeyedWrites: always, replayLimit: 65MiB, backOff: {exponent: 2}}
routes:
  - {upstream: api, perTryTimeout: 5s, retry: {backOffFor: {reset: {strategy: sip, jitter: 0.5}}}}
practice: {}
`),
    ).toBe(
      [
        'tidegate.yaml:5:20 warning: upstreams.api.perTryTimeout: longer than timeout, which ends the attempt first',
        'tidegate.yaml:6:5 warning: upstreams.api.tls: has no effect: the url is not https',
        'tidegate.yaml:6:21 warning: upstreams.api.tls.insecure: the certificate is not verified: anybody can impersonate this upstream and read what is sent',
        'tidegate.yaml:7:22 warning: upstreams.api.queue.maxWait: not shorter than timeout: a request may spend its whole deadline in the queue',
        'tidegate.yaml:8:28 warning: upstreams.api.retry.unkeyedWrites: a write without an idempotency key may take effect twice',
        'tidegate.yaml:8:49 warning: upstreams.api.retry.replayLimit: larger than limits.replayMemory: bodies of this size are never kept',
        'tidegate.yaml:8:66 warning: upstreams.api.retry.backOff.exponent: full-jitter does not use it',
        'tidegate.yaml:10:36 warning: routes[0].perTryTimeout: longer than timeout, which ends the attempt first',
        'tidegate.yaml:10:84 warning: routes[0].retry.backOffFor.reset.jitter: sip does not use it',
        'tidegate.yaml:11:1 warning: practice: has no effect: no upstream has url: practice',
      ].join('\n'),
    );
  });

  test('are not raised for a default that conflicts with a written value', () => {
    expect(warningsOf('upstreams: {api: {url: http://a, timeout: 800ms}}')).toBe('');
  });

  test('report a short queue of a provider, whose SDKs report a refusal as an error', () => {
    const text = (upstream: string) => `upstreams: {api: {${upstream}}}`;
    expect(warningsOf(text('provider: stripe, timeout: 70s, queue: {maxWait: 1s}'))).toMatch(/20s lets a burst wait/);
    expect(warningsOf(text('provider: stripe, timeout: 70s, queue: {maxWait: 5s}'))).toBe('');
    expect(warningsOf(text('provider: stripe, timeout: 70s'))).toBe('');
    expect(warningsOf(text('url: http://a, queue: {maxWait: 1s}'))).toBe('');
  });

  test('report requests without a check because no route matches, unless that is configured', () => {
    const text = (route: string, check = '{}') =>
      `${MINIMAL}\nclients: {trustedProxies: [10.0.0.1]}\nroutes: [{upstream: api${route}}]\ncheck: ${check}`;
    const passes =
      /check: requests that no route matches pass unchecked: add a route for all requests, or set check\.unrouted/;
    for (const route of [', path: /v1', ', host: a.example', ', methods: [POST]', ', check: never']) {
      expect(warningsOf(text(route)), route).toMatch(passes);
    }
    for (const sound of [text(''), text(', check: only'), text(', path: /v1', '{unrouted: pass}')]) {
      expect(warningsOf(sound)).toBe('');
    }
  });
});
