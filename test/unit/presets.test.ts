/** The presets that are shipped. A mistake in one of them is ours. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { check } from '../../src/cli/check.ts';
import { readFile } from '../../src/cli/read-file.ts';
import { isMapping } from '../../src/config/issues.ts';
import { loadConfig } from '../../src/config/load.ts';
import { formatMistakes, formatWarnings } from '../../src/config/mistakes.ts';
import { readPreset } from '../../src/config/preset.ts';
import type { Provider } from '../../src/config/providers.ts';
import { PROVIDERS } from '../../src/config/providers.ts';
import { PRACTICE_URL } from '../../src/config/upstream-schema.ts';
import { withPresets } from '../support/presets.ts';

const ROOT = join(import.meta.dirname, '../..');

function read(provider: Provider) {
  const preset = readPreset(provider, readFile);
  if ('problem' in preset) throw new Error(preset.problem);
  return preset;
}

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

test('there is one for each provider that is known, and no other', () => {
  const files = readdirSync(join(ROOT, 'config/providers')).toSorted();
  expect(files).toEqual(PROVIDERS.map((provider) => `${provider}.yaml`));
});

describe.each(PROVIDERS)('%s', (provider) => {
  test('has neither mistakes nor warnings, and check says what it leaves open', () => {
    expect(effective(provider).warnings).toBe('');
    const { text, exitCode } = check('f.yaml', { env: {}, readFile: withPresets(() => textOf(provider)) });
    expect(exitCode).toBe(0);
    const { uncertain, careful } = read(provider);
    expect(uncertain.length).toBeGreaterThan(0);
    for (const sentence of [...uncertain, ...careful]) {
      expect(sentence).toMatch(/^[A-Z\d].*\.$/);
      expect(text).toContain(`: ${sentence}`);
    }
  });

  test('says in its file what it cannot say yet', () => {
    expect(readFileSync(join(ROOT, `config/providers/${provider}.yaml`), 'utf8')).toMatch(/^# Not sayable yet: /m);
  });

  test('sets nothing that depends on who uses it, and forbids no more than it has to', () => {
    const { settings } = read(provider);
    // A bound of the rate would be for ever, and TLS would not go with a url over http.
    expect(JSON.stringify(settings)).not.toMatch(/maxRate|minRate|"tls"|http2|"urls"/);
    const { unkeyedWrites } = effective(provider).upstream.retry;
    expect(unkeyedWrites).toBe('never');
  });

  test('is in the documentation as it is', () => {
    const docs = readFileSync(join(ROOT, 'docs/providers.md'), 'utf8');
    const row = docs.split('\n').find((line) => line.startsWith(`| \`${provider}\` |`)) ?? '';
    const values = leavesOf(read(provider).settings);
    expect(values.length).toBeGreaterThan(0);
    for (const value of values) expect(row).toContain(`\`${value}\``);
  });
});

/** As they are written. */
function leavesOf(value: unknown): string[] {
  if (Array.isArray(value)) return [`[${value.join(', ')}]`];
  return isMapping(value) ? Object.values(value).flatMap(leavesOf) : [String(value)];
}

test('the facts are those that are published', () => {
  const facts = PROVIDERS.map((provider) => {
    const { url, rateLimit, idempotency } = effective(provider).upstream;
    const origin = url === 'https://api.example.com' ? undefined : url;
    expect(url).not.toBe(PRACTICE_URL);
    return [provider, rateLimit.initialRate, idempotency.header, origin];
  });
  expect(facts).toEqual([
    ['adyen', undefined, 'Idempotency-Key', undefined],
    ['braintree', undefined, false, undefined],
    ['checkout.com', 100, 'Cko-Idempotency-Key', undefined],
    ['coinbase', 10_000 / 3600, false, undefined],
    ['github', 15, false, 'https://api.github.com'],
    ['mollie', undefined, 'Idempotency-Key', 'https://api.mollie.com'],
    ['paypal', undefined, 'PayPal-Request-Id', undefined],
    ['plaid', undefined, false, undefined],
    ['razorpay', undefined, 'X-Payout-Idempotency', 'https://api.razorpay.com'],
    ['shopify', 2, false, undefined],
    ['square', undefined, false, undefined],
    ['stripe', 25, 'Idempotency-Key', 'https://api.stripe.com'],
  ]);
});
