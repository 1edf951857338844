/** The presets that are shipped. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { readFile } from '../../../src/cli/read-file.ts';
import { isMapping, valueAt } from '../../../src/config/values/plain-object.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { readPreset } from '../../../src/config/presets/preset.ts';
import type { Provider } from '../../../src/config/presets/providers.ts';
import { PROVIDERS } from '../../../src/config/presets/providers.ts';
import { PRACTICE_URL } from '../../../src/config/values/upstream-url.ts';
import { withPresets } from '../../support/proxy/presets.ts';

const ROOT = join(import.meta.dirname, '../../..');

function read(provider: Provider) {
  const preset = readPreset(provider, readFile);
  if ('problem' in preset) throw new Error(preset.problem);
  return preset;
}

/** Their limits are checked before a request takes effect. */
const REFUSE_FIRST: ReadonlySet<Provider> = new Set(['anthropic', 'openai', 'shopify']);

function textOf(provider: Provider): string {
  const url = 'url' in read(provider).settings ? '' : ', url: https://api.example.com';
  return `upstreams: {api: {provider: ${provider}${url}}}`;
}

function effective(provider: Provider) {
  const loaded = loadConfig(textOf(provider), 'f.yaml', { env: {}, readFile });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  const upstream = loaded.config.upstreams['api'];
  if (upstream === undefined) throw new Error('there is no upstream');
  return { upstream, warnings: formatWarnings(loaded.warnings) };
}

test('there is a preset for each documented provider, and no other', () => {
  const files = readdirSync(join(ROOT, 'config/providers')).toSorted();
  expect(files).toEqual(PROVIDERS.map((provider) => `${provider}.yaml`));
});

describe.each(PROVIDERS)('%s', (provider) => {
  test('has neither mistakes nor warnings, and check reports what it leaves open', () => {
    expect(effective(provider).warnings).toBe('');
    const { text, exitCode } = runCheck(
      'f.yaml',
      { full: false },
      { env: {}, readFile: withPresets(() => textOf(provider)) },
    );
    expect(exitCode).toBe(0);
    const { uncertain, careful } = read(provider);
    expect(uncertain.length).toBeGreaterThan(0);
    for (const sentence of [...uncertain.map(({ because }) => because), ...careful]) {
      expect(sentence).toMatch(/^[A-Z\d].*\.$/);
      expect(text).toContain(`: ${sentence}`);
    }
  });

  test('marks only existing settings as uncertain', () => {
    const { upstream } = effective(provider);
    const missing = read(provider).uncertain.filter(({ about }) => !isSet(upstream, about.split('.')));
    expect(missing.map(({ about }) => about).filter((about) => !UNKNOWN.includes(about))).toEqual([]);
  });

  test('sets nothing that depends on the account, and restricts no more than needed', () => {
    const { settings } = read(provider);
    // A bound of the rate could not be removed, and TLS settings would conflict with an http url.
    expect(JSON.stringify(settings)).not.toMatch(/maxRate|minRate|"tls"|http2|"urls"/);
    const { unkeyedWrites } = effective(provider).upstream.retry;
    expect(unkeyedWrites).toBe(REFUSE_FIRST.has(provider) ? 'on429' : 'never');
  });

  test('does not recognise a refusal by text that a client can choose', () => {
    const { codeField = [], answers = [] } = effective(provider).upstream.throttle ?? {};
    const readsMessages = [codeField].flat().some((field) => field.endsWith('message'));
    const anywhere = answers.flatMap(({ code = [] }) => [code].flat()).filter((glob) => glob.startsWith('*'));
    expect(readsMessages ? anywhere : []).toEqual([]);
  });

  test('appears in the documentation unchanged', () => {
    const docs = readFileSync(join(ROOT, 'docs/providers.md'), 'utf8');
    const row = docs.split('\n').find((line) => line.startsWith(`| \`${provider}\``)) ?? '';
    const facts = [...factsOf(read(provider).settings), ...read(provider).uncertain.map(({ about }) => about)];
    expect(facts.length).toBeGreaterThan(1);
    for (const fact of facts) expect(row).toContain(`\`${fact}\``);
  });
});

test('the presets in the documentation are valid', () => {
  const docs = readFileSync(join(ROOT, 'docs/providers.md'), 'utf8');
  const shown = [...docs.matchAll(/```yaml\n(upstreams:[^`]*)```/g)].map(([, yaml = '']) => yaml);
  expect(shown.length).toBeGreaterThan(1);
  for (const yaml of shown) {
    const loaded = loadConfig(yaml, 'f.yaml', { env: {}, readFile });
    expect(loaded.kind === 'ok' ? formatWarnings(loaded.warnings) : formatMistakes(loaded.mistakes)).toBe('');
  }
});

/** Settings that are absent where nothing is known. */
const UNKNOWN = ['rateLimit.initialRate', 'throttle', 'idempotency.ttl'];

/** Items of a list are found by their names. */
function isSet(settings: unknown, [first = '', ...rest]: readonly string[]): boolean {
  const inner: unknown = Array.isArray(settings)
    ? settings.find((item) => valueAt(item, ['name']) === first)
    : valueAt(settings, [first]);
  return inner !== undefined && (rest.length === 0 || isSet(inner, rest));
}

/** Keys whose values the documentation has to show. */
const DOCUMENTED = [
  'url',
  'initialRate',
  'name',
  'reasonHeader',
  'verdictHeader',
  'codeField',
  'code',
  'ttl',
  'jsonField',
  'credentialHeader',
  'limitHeader',
];

/** Values in their written form. */
function factsOf(settings: unknown, key = ''): string[] {
  if (Array.isArray(settings)) {
    return key === 'retryOn' ? [`[${settings.join(', ')}]`] : settings.flatMap((item) => factsOf(item, key));
  }
  if (isMapping(settings)) return Object.entries(settings).flatMap(([name, value]) => factsOf(value, name));
  if (key === 'header') return typeof settings === 'string' && !/reset/i.test(settings) ? [settings] : [];
  return DOCUMENTED.includes(key) ? [String(settings)] : [];
}

test('the facts are the published ones', () => {
  const facts = PROVIDERS.map((provider) => {
    const { url, rateLimit, idempotency } = effective(provider).upstream;
    const origin = url === 'https://api.example.com' ? undefined : url;
    expect(url).not.toBe(PRACTICE_URL);
    return [provider, rateLimit.initialRate, idempotency.header, origin];
  });
  expect(facts).toEqual([
    ['adyen', undefined, 'Idempotency-Key', undefined],
    ['anthropic', undefined, false, 'https://api.anthropic.com'],
    ['braintree', undefined, false, undefined],
    ['checkout.com', undefined, 'Cko-Idempotency-Key', undefined],
    ['coinbase', 10_000 / 3600, false, undefined],
    ['github', undefined, false, 'https://api.github.com'],
    ['mollie', undefined, 'Idempotency-Key', 'https://api.mollie.com'],
    ['openai', undefined, false, 'https://api.openai.com'],
    ['paypal', undefined, 'PayPal-Request-Id', undefined],
    ['plaid', undefined, false, undefined],
    ['razorpay', undefined, 'X-Payout-Idempotency', 'https://api.razorpay.com'],
    ['shopify', undefined, false, undefined],
    ['square', undefined, false, undefined],
    ['stripe', 100, 'Idempotency-Key', 'https://api.stripe.com'],
  ]);
});

test('the credential is in the header that the provider documents for its API key', () => {
  const headers = PROVIDERS.map((provider) => [provider, effective(provider).upstream.rateLimit.credentialHeader]);
  expect(headers.filter(([, header]) => header !== 'Authorization')).toEqual([
    ['adyen', 'X-API-Key'],
    ['anthropic', 'x-api-key'],
    ['plaid', 'PLAID-CLIENT-ID'],
    ['shopify', 'X-Shopify-Access-Token'],
  ]);
  const text = 'upstreams: {api: {provider: anthropic, rateLimit: {maxRate: 5/s, credentialHeader: Authorization}}}';
  const loaded = loadConfig(text, 'f.yaml', { env: {}, readFile });
  expect(loaded).toMatchObject({
    config: { upstreams: { api: { rateLimit: { credentialHeader: 'Authorization' } } } },
  });
  const check = runCheck('f.yaml', { full: true }, { env: {}, readFile: withPresets(() => textOf('anthropic')) });
  expect(check.text).toContain('credentialHeader: x-api-key');
});

describe('the costs of a preset', () => {
  test('github: bounds the cost of a query, whose field a client may name by itself', () => {
    const limit = effective('github').upstream.limits.find(({ name }) => name === 'graphql');
    expect(limit?.cost).toMatchObject({ min: 1, max: 100 });
  });

  test('github: requests to one resource wait in its own queue, not in that of the points', () => {
    expect(effective('github').upstream.limits[0]?.name).toBe('points');
  });

  test.each([
    ['openai', 'tokens'],
    ['anthropic', 'input-tokens'],
    ['anthropic', 'output-tokens'],
  ] as const)('%s: counts %s only where they are used', (provider, name) => {
    const limit = effective(provider).upstream.limits.find((each) => each.name === name);
    expect(limit?.match.method).toEqual('POST');
    expect([limit?.match.path].flat()).not.toContain(undefined);
  });
});
