import { limitOwner } from '../../../src/config/schema/upstream-schema.ts';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { configJsonSchema } from '../../../src/config/schema/json-schema.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { withPresets } from '../../support/proxy/presets.ts';
import { resolveServeSettings } from '../../../src/config/load/serve-settings.ts';

function load(upstream: string) {
  return loadConfig(`upstreams: {api: {${upstream}}}`, 'f.yaml', { env: {}, readFile: String });
}

/** Mistakes, without file, line and column. */
function mistakes(upstream: string): string[] {
  const loaded = load(upstream);
  return loaded.kind === 'ok' ? [] : strip(formatMistakes(loaded.mistakes));
}

function warnings(upstream: string): string[] {
  const loaded = load(upstream);
  return loaded.kind === 'ok' ? strip(formatWarnings(loaded.warnings)) : ['not sound'];
}

function strip(lines: string): string[] {
  return lines === '' ? [] : lines.split('\n').map((line) => line.replace(/^f\.yaml:\d+:\d+ /, ''));
}

describe('the endpoints of an upstream', () => {
  test('are one url, or several urls', () => {
    expect(mistakes('url: http://a')).toEqual([]);
    const loaded = load('urls: [HTTP://A, "http://b:80/", "http://[::1]:8080"]');
    expect(loaded.kind === 'ok' && loaded.config.upstreams['api']?.urls).toEqual([
      'http://a',
      'http://b',
      'http://[::1]:8080',
    ]);
  });

  test('require either url or urls, and at least one valid URL', () => {
    expect(mistakes('timeout: 1s')).toEqual(['upstreams.api.url: missing']);
    expect(mistakes('url: http://a, urls: [http://b]')).toEqual([
      'upstreams.api.urls: url and urls exclude each other: keep one',
    ]);
    expect(mistakes('url: nowhere')).toEqual([
      'upstreams.api.url: expected an http or https URL such as https://api.example.com',
    ]);
    expect(mistakes('urls: []')).toEqual(['upstreams.api.urls: must not be empty']);
    expect(mistakes('urls: http://a')).toEqual(['upstreams.api.urls: expected a list, got text']);
  });

  test('require either url or urls in the JSON Schema too', () => {
    const validate = new Ajv2020({ allErrors: true }).compile(configJsonSchema());
    const isValid = (upstream: object) => validate({ upstreams: { api: upstream } });
    expect(isValid({ url: 'http://a' })).toBe(true);
    expect(isValid({ urls: ['http://a', 'http://b'] })).toBe(true);
    expect(isValid({ url: 'http://a', urls: ['http://b'] })).toBe(false);
    expect(isValid({ timeout: '1s' })).toBe(false);
    expect(isValid({ urls: [] })).toBe(false);
  });

  test('are distinct origins with one scheme', () => {
    expect(mistakes('urls: [https://a, http://b, https://c/v1]')).toEqual([
      'upstreams.api.urls[2]: only an origin, without path, query or fragment (for a path, set rewritePrefix of the route) (did you mean https://c?)',
    ]);
    expect(mistakes('urls: [https://a, http://b, https://a/, practice]')).toEqual([
      'upstreams.api.urls[1]: http, where urls[0] is https: all urls need the same scheme',
      'upstreams.api.urls[2]: the same as urls[0]',
      'upstreams.api.urls[3]: practice cannot be one of several endpoints: write url: practice',
    ]);
  });

  test('may be replaced by a flag', () => {
    const readFile = () => 'upstreams: {api: {urls: [http://a, http://b], timeout: 3s}}';
    const settings = resolveServeSettings({ config: 'f.yaml', upstream: 'http://c' }, { env: {}, readFile });
    expect(settings.kind === 'ok' && settings.config.upstreams['api']).toMatchObject({
      url: 'http://c',
      timeout: 3000,
    });
    expect(settings.kind === 'ok' && settings.config.upstreams['api']).not.toHaveProperty('urls');
  });
});

describe('the settings of endpoints', () => {
  test('are reported if they have no effect: with one endpoint, without a host name, or without TLS', () => {
    const one = 'outlierDetection: {consecutiveGatewayErrors: 3}, dnsRefresh: 2s';
    expect(warnings(`url: http://a, ${one}`)).toEqual([
      'warning: upstreams.api.outlierDetection: has no effect: there is only one endpoint',
    ]);
    expect(warnings(`urls: ["http://127.0.0.1:1", "http://[::1]"], ${one}`)).toEqual([
      'warning: upstreams.api.dnsRefresh: has no effect: no endpoint has a host name to look up',
    ]);
    expect(warnings(`urls: [http://a, http://b], ${one}`)).toEqual([]);
    expect(warnings('urls: [http://a, http://b], tls: {insecure: false}')).toEqual([
      'warning: upstreams.api.tls: has no effect: the url is not https',
    ]);
  });

  test('are rejected if ejection times contradict each other or a value is out of range', () => {
    expect(mistakes('urls: [http://a, http://b], outlierDetection: {maxEjectionTime: 5s}')).toEqual([
      'upstreams.api.outlierDetection.maxEjectionTime: maxEjectionTime is below baseEjectionTime',
    ]);
    expect(mistakes('urls: [http://a, http://b], outlierDetection: {baseEjectionTime: 6m}')).toEqual([
      'upstreams.api.outlierDetection.baseEjectionTime: maxEjectionTime is below baseEjectionTime',
    ]);
    expect(mistakes('urls: [http://a, http://b], outlierDetection: {maxEjectionPercent: 101, ejections: 1}')).toEqual([
      'upstreams.api.outlierDetection.maxEjectionPercent: must be at most 100',
      'upstreams.api.outlierDetection.ejections: unknown key',
    ]);
  });

  test('are rejected if a health check has no valid path or status', () => {
    const check = (settings: string) => mistakes(`urls: [http://a, http://b], healthCheck: {${settings}}`);
    expect(check('')).toEqual(['upstreams.api.healthCheck.path: missing']);
    expect(check('path: healthz')).toEqual([
      'upstreams.api.healthCheck.path: must begin with / and contain no spaces: /healthz',
    ]);
    expect(check('path: /, status: 2xy')).toEqual([
      'upstreams.api.healthCheck.status: must be a status from 200 to 599, or 2xx, 3xx, 4xx or 5xx, or a list of these',
    ]);
    expect(check('path: /, intervall: 1s')).toEqual([
      'upstreams.api.healthCheck.intervall: unknown key (did you mean interval?)',
    ]);
    expect(warnings('url: http://a, healthCheck: {path: /}')).toEqual([
      'warning: upstreams.api.healthCheck: affects no request: there is only one endpoint',
    ]);
    expect(warnings('urls: [http://a, http://b], healthCheck: {path: /, status: [204, 3xx]}')).toEqual([]);
  });

  test('say whose limit it is: of the account, or of each endpoint', () => {
    const urls = 'urls: [http://a, http://b]';
    expect(warnings('url: http://a, rateLimit: {of: endpoint}')).toEqual([
      'warning: upstreams.api.rateLimit.of: has no effect: there is only one endpoint',
    ]);
    expect(mistakes(`${urls}, rateLimit: {of: endpoint, scope: client}`)).toEqual([
      'upstreams.api.rateLimit.of: a limit of each client says nothing about an endpoint: write of: account, or scope: upstream',
    ]);
    expect(mistakes(`${urls}, rateLimit: {of: endpoint}, limits: [{name: a, match: {path: /a}}]`)).toEqual([
      'upstreams.api.rateLimit.of: limits concern parts of the requests, not an endpoint: write of: account, or remove limits',
    ]);
    expect(warnings(`${urls}, rateLimit: {of: account}, limits: [{name: a, match: {path: /a}}]`)).toEqual([]);
  });

  test.each([
    ['endpoint', {}],
    ['account', { provider: 'stripe' }],
    ['account', { rateLimit: { scope: 'client' } }],
    ['account', { limits: [{}] }],
    ['account', { accounts: [{}] }],
    ['endpoint', { provider: 'stripe', rateLimit: { scope: 'upstream', of: 'endpoint' } }],
    ['account', { rateLimit: { scope: 'upstream', of: 'account' } }],
  ] as const)('make it a limit of the %s by %j', (owner, settings) => {
    expect(limitOwner({ rateLimit: { scope: 'upstream' }, limits: [], ...settings })).toBe(owner);
  });
});

describe('the scheme of a url', () => {
  const ONLY_HTTPS = 'the API of stripe accepts only https';
  test.each([
    ['url: http://api.stripe.com', `upstreams.api.url: ${ONLY_HTTPS} (did you mean https://api.stripe.com?)`],
    [
      'url: http://API.Stripe.com:8080, provider: stripe',
      `upstreams.api.url: ${ONLY_HTTPS} (did you mean https://api.stripe.com?)`,
    ],
    [
      'urls: [http://api.example.com, http://files.stripe.com]',
      `upstreams.api.urls[1]: ${ONLY_HTTPS} (did you mean https://files.stripe.com?)`,
    ],
    [
      'url: http://shop-1.myshopify.com',
      'upstreams.api.url: the API of shopify accepts only https (did you mean https://shop-1.myshopify.com?)',
    ],
  ])('is a mistake if it is http for the API of a provider: %s', (upstream, message) => {
    expect(reportsOf(upstream)).toEqual([message]);
  });

  test.each([
    [
      'url: http://egress.example.com, provider: stripe',
      'the API of stripe accepts only https, and http sends its keys in plain text (did you mean https://egress.example.com?)',
    ],
    [
      'url: http://api.example.com:443',
      'port 443 is the port of https: plain http probably fails there (did you mean https://api.example.com?)',
    ],
    [
      'url: https://api.example.com:80',
      'port 80 is the port of plain http: TLS probably fails there (did you mean http://api.example.com?)',
    ],
  ])('causes a warning if it is probably wrong: %s', (upstream, message) => {
    expect(reportsOf(upstream)).toEqual([`warning: upstreams.api.url: ${message}`]);
  });

  test.each([
    'url: http://127.0.0.1:3000, provider: stripe',
    'url: http://stripe-mock:12111, provider: stripe',
    'url: http://mock.local, provider: stripe',
    'url: http://not-stripe.com',
    'url: https://api.example.com:443, provider: stripe',
    'url: http://api.example.com:80',
  ])('is accepted without a warning: %s', (upstream) => {
    expect(reportsOf(upstream)).toEqual([]);
  });

  function reportsOf(upstream: string): string[] {
    const environment = { env: {}, readFile: withPresets(String) };
    const loaded = loadConfig(`upstreams: {api: {${upstream}}}`, 'f.yaml', environment);
    return strip(loaded.kind === 'ok' ? formatWarnings(loaded.warnings) : formatMistakes(loaded.mistakes));
  }
});

describe('check reports', () => {
  const summaryOf = (upstream: string): string => {
    const { text, exitCode } = runCheck(
      'f.yaml',
      { full: true },
      { env: {}, readFile: withPresets(() => `upstreams: {api: {${upstream}}}`) },
    );
    expect(exitCode).toBe(0);
    return text;
  };

  test('the number of endpoints, and when one is ejected', () => {
    const text = summaryOf('urls: [http://a, http://b, http://c], connections: 20');
    expect(text).toContain('urls: [http://a, http://b, http://c]');
    expect(text).toContain('api: 3 endpoints, up to 20 connections to each');
    expect(text).toContain('an endpoint is ejected after 5 failures in a row, for 10s up to 5m; at most 2 at a time');
    expect(text).toContain('a 429 or 503 with Retry-After concerns its endpoint');
    expect(summaryOf('urls: [http://a, http://b], healthCheck: {path: /ok}')).toContain(
      'each process checks each endpoint every 10s (GET /ok); no requests after 3 failed checks',
    );
    expect(summaryOf('urls: [http://a, http://b], provider: mollie')).toContain(
      'a 429 with Retry-After concerns the account',
    );
    expect(summaryOf('urls: [http://a, http://b], outlierDetection: {consecutiveGatewayErrors: 0}')).toContain(
      'no endpoint is ever ejected',
    );
    expect(summaryOf('url: http://a')).not.toContain('endpoints');
  });
});
