/* oxlint-disable eslint/no-template-curly-in-string -- configurations have ${…} of their own */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { readFile } from '../../../src/cli/read-file.ts';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import { configJsonSchema } from '../../../src/config/schema/json-schema.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { PROVIDERS } from '../../../src/config/presets/providers.ts';
import type { UpstreamConfig } from '../../../src/config/schema/config-schema.ts';
import { resolveServeSettings } from '../../../src/config/load/serve-settings.ts';
import { withPresets } from '../../support/proxy/presets.ts';

const env = { RATE: '9/s', WHO: 'stripe', WRONG: 'strype' };

function load(text: string, read = readFile) {
  return loadConfig(text, 'f.yaml', { env, readFile: read });
}

function mistakesOf(text: string, read = readFile): string[] {
  const loaded = load(text, read);
  return loaded.kind === 'ok'
    ? formatWarnings(loaded.warnings).split('\n')
    : formatMistakes(loaded.mistakes).split('\n');
}

function upstream(settings: string): UpstreamConfig | undefined {
  const loaded = load(`upstreams: {pay: {${settings}}}`);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded.config.upstreams['pay'];
}

/** Returns a preset of this text for every provider. */
function presetOf(text: string): (path: string) => string {
  return (path) => {
    expect(path).toMatch(/\/config\/providers\/stripe\.yaml$/);
    return text;
  };
}

describe('a provider preset', () => {
  test('applies to settings that are not written, including the url', () => {
    expect(upstream('provider: stripe')).toMatchObject({
      provider: 'stripe',
      url: 'https://api.stripe.com',
      rateLimit: { initialRate: 100, scope: 'upstream' },
      retry: { retryOn: ['5xx', 429, 'connect-failure', 'reset', 'timeout', 'lock'], attempts: 4 },
      timeout: 10_000,
    });
  });

  test('does not replace settings that are written', () => {
    expect(
      upstream(
        'provider: stripe, url: http://mock:1, rateLimit: {initialRate: 50/s, scope: client}, retry: {retryOn: [reset]}',
      ),
    ).toMatchObject({
      url: 'http://mock:1',
      rateLimit: { initialRate: 50, scope: 'client' },
      retry: { retryOn: ['reset'] },
    });
    const several = upstream('provider: stripe, urls: [http://a, http://b]');
    expect(several).toMatchObject({ urls: ['http://a', 'http://b'] });
    expect(several).not.toHaveProperty('url');
  });

  test('has no initial rate above a written maximum', () => {
    expect(upstream('provider: stripe, rateLimit: {maxRate: "${RATE}"}')?.rateLimit).not.toHaveProperty('initialRate');
  });

  test('does not replace flags and variables', () => {
    const settings = resolveServeSettings(
      { config: 'f.yaml' },
      {
        env: { TIDEGATE_UPSTREAM: 'http://127.0.0.1:9' },
        readFile: withPresets(() => 'upstreams: {pay: {provider: stripe}}'),
      },
    );
    expect(settings.kind === 'ok' && settings.config.upstreams['pay']).toMatchObject({
      url: 'http://127.0.0.1:9',
      rateLimit: { initialRate: 100 },
    });
  });

  test('applies to the upstream that names it, and to no other', () => {
    const loaded = load(
      'upstreams: {a: &x {provider: stripe, timeout: 3s}, b: *x, c: {url: http://c}}\nroutes: [{path: /, upstream: a}]',
    );
    expect(loaded.kind === 'ok' && Object.values(loaded.config.upstreams)).toMatchObject([
      { timeout: 3000, rateLimit: { initialRate: 100 } },
      { timeout: 3000, rateLimit: { initialRate: 100 } },
      { rateLimit: {} },
    ]);
    expect(loaded.kind === 'ok' && loaded.config.upstreams['c']?.rateLimit).not.toHaveProperty('initialRate');
  });

  test('may be named by a variable', () => {
    expect(upstream('provider: "${WHO}"')?.rateLimit.initialRate).toBe(100);
  });

  test('is printed with the settings in effect', () => {
    const loaded = load('upstreams: {pay: {provider: "${WHO}", retry: {attempts: 2}}}');
    if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
    expect(parse(formatEffectiveConfig(loaded.config, loaded.substituted))).toMatchObject({
      upstreams: {
        pay: {
          provider: '${WHO}',
          url: 'https://api.stripe.com',
          rateLimit: { initialRate: '100/s' },
          retry: { attempts: 2, retryOn: ['5xx', '429', 'connect-failure', 'reset', 'timeout', 'lock'] },
        },
      },
    });
  });

  test('causes no warning, because its settings are not written', () => {
    const preset = 'perTryTimeout: 30s\nqueue: {maxWait: 5s}\ntls: {minVersion: TLSv1.3}\ndnsRefresh: 5s\n';
    expect(
      mistakesOf('upstreams: {pay: {provider: stripe, url: "http://127.0.0.1:1", timeout: 4s}}', presetOf(preset)),
    ).toEqual(['']);
  });
});

describe('mistakes', () => {
  test('an unknown provider is reported with the known ones and a suggestion', () => {
    const known = `expected one of ${PROVIDERS.join(', ')}`;
    expect(mistakesOf('upstreams:\n  pay:\n    provider: strpe\n')).toEqual([
      `f.yaml:3:15 upstreams.pay.provider: ${known} (did you mean stripe?)`,
    ]);
    expect(mistakesOf('upstreams: {pay: {provider: Checkout, timeout: 5}}')).toEqual([
      `f.yaml:1:29 upstreams.pay.provider: ${known} (did you mean checkout.com?)`,
      'f.yaml:1:48 upstreams.pay.timeout: a duration needs a unit (did you mean 5ms or 5s?)',
    ]);
    expect(mistakesOf('upstreams: {pay: {url: http://a, provider: }}')).toEqual([
      `f.yaml:1:34 upstreams.pay.provider: ${known}`,
    ]);
    // The value of a variable is not printed.
    expect(mistakesOf('upstreams: {pay: {provider: "${WRONG}"}}')).toEqual([
      `f.yaml:1:29 upstreams.pay.provider: ${known}`,
    ]);
  });

  test('a provider without a url of its own requires a url', () => {
    expect(mistakesOf('upstreams:\n  pay:\n    provider: adyen\n')).toEqual([
      'f.yaml:2:3 upstreams.pay.url: missing: the preset of its provider has none',
    ]);
  });

  test('a mistake in a written setting is reported at that setting', () => {
    expect(
      mistakesOf('upstreams:\n  pay:\n    provider: stripe\n    rateLimit: {initialRate: 5, burst: 2}\n    retry: ~\n'),
    ).toEqual([
      'f.yaml:4:30 upstreams.pay.rateLimit.initialRate: a rate needs a unit (did you mean 5/s?)',
      'f.yaml:4:33 upstreams.pay.rateLimit.burst: unknown key',
      'f.yaml:5:5 upstreams.pay.retry: expected a mapping, got nothing',
    ]);
  });

  test('a conflict with the preset is reported at the provider', () => {
    const preset = presetOf('url: https://a\nretry: {backOff: {baseInterval: 1s, maxInterval: 8s}}');
    expect(
      mistakesOf('upstreams:\n  pay:\n    provider: stripe\n    retry: {backOff: {baseInterval: 9s}}', preset),
    ).toEqual([
      'f.yaml:3:15 upstreams.pay.retry.backOff.maxInterval: maxInterval is below baseInterval (set by the preset of its provider)',
    ]);
    // The reverse: the mistake is in the written settings.
    expect(
      mistakesOf('upstreams:\n  pay:\n    provider: stripe\n    retry: {backOff: {maxInterval: 9ms}}', preset),
    ).toEqual(['f.yaml:4:36 upstreams.pay.retry.backOff.maxInterval: maxInterval is below baseInterval']);
    // Another strategy does not use the preset's options.
    expect(
      mistakesOf('upstreams: {pay: {provider: stripe, retry: {backOff: {strategy: fixed, baseInterval: 9s}}}}', preset),
    ).toEqual(['']);
  });

  test('a missing or broken preset is reported in one line', () => {
    const missing = () => {
      throw Object.assign(new Error('no'), { code: 'ENOENT' });
    };
    const text = 'upstreams: {pay: {provider: stripe, url: http://a}}';
    expect(mistakesOf(text, missing)).toEqual([
      expect.stringMatching(
        /^f\.yaml:1:29 upstreams\.pay\.provider: its preset \/.*\/stripe\.yaml cannot be read: no such file$/,
      ),
    ]);
    for (const broken of ['a: [', '5', 'timeout: "${X}"', 'uncertain: [a]', 'careful: [5]']) {
      expect(mistakesOf(text, presetOf(broken))).toEqual([
        expect.stringMatching(/^f\.yaml:1:29 upstreams\.pay\.provider: its preset \/.*\/stripe\.yaml is invalid$/),
      ]);
    }
  });

  test('the JSON Schema accepts and rejects the same', () => {
    const validate = new Ajv2020({ allErrors: true }).compile(configJsonSchema());
    const isValid = (settings: object) => validate({ upstreams: { pay: settings } });
    expect(isValid({ provider: 'stripe' })).toBe(true);
    expect(isValid({ provider: 'stripe', url: 'http://a' })).toBe(true);
    expect(isValid({ provider: '${WHO}' })).toBe(true);
    expect(isValid({ provider: 'strpe' })).toBe(false);
    expect(isValid({ provider: 'stripe', url: 'http://a', urls: ['http://b'] })).toBe(false);
    expect(isValid({ url: 'http://a', idempotency: { header: false } })).toBe(true);
    expect(isValid({ url: 'http://a', idempotency: { header: true } })).toBe(false);
  });
});

describe('check on a provider', () => {
  const run = (text: string) => runCheck('f.yaml', { full: true }, { env, readFile: withPresets(() => text) });

  test('reports what the preset of each upstream does not cover, and what it cannot do', () => {
    const { text, exitCode } = run(
      'upstreams: {pay: {provider: stripe}, api: {url: http://a}, in: {provider: adyen, url: https://in}}\nroutes: [{path: /, upstream: api}]',
    );
    expect(exitCode).toBe(0);
    const section = text.slice(text.indexOf('# Providers:'), text.indexOf('#\nlisten:')).trimEnd().split('\n');
    expect(section.slice(0, 3)).toEqual([
      '# Providers:',
      '#   pay: unset settings come from the preset stripe',
      '#     uncertain: rateLimit.initialRate: An account may have other limits than those that Stripe publishes; a sandbox takes 25/s.',
    ]);
    expect(section).toContain('#   in: unset settings come from the preset adyen');
    expect(section).toContain(
      '#     careful: A key is not recognised in another region: urls must not name several regions.',
    );
    expect(section.filter((line) => /^# {3}\w/.test(line))).toHaveLength(2);
    expect(text.indexOf('# Worst cases:')).toBeLessThan(text.indexOf('# Providers:'));
    // The whole output is still a configuration.
    expect(parse(text)).toMatchObject({ upstreams: { pay: { provider: 'stripe' } } });
  });

  test('names and marks an uncertain setting, unless it is written', () => {
    const lines = (settings: string) => run(`upstreams: {pay: {provider: github, ${settings}}}`).text.split('\n');
    const reported = lines('timeout: 3s');
    expect(reported.filter((line) => /^ +initialRate: .* # uncertain$/.test(line))).toHaveLength(3);
    const list = reported.indexOf('      answers:');
    expect(reported[list + 1]).toBe('        # uncertain');
    expect(
      reported.find((line) =>
        line.includes('uncertain: limits.points.cost: Some requests cost other numbers of points'),
      ),
    ).toBeDefined();

    const own = lines('rateLimit: {initialRate: 9/s}, limits: [], throttle: {answers: []}');
    expect(own).toContain('      initialRate: 9/s');
    expect(own.filter((line) => line.includes('uncertain'))).toEqual([]);
    // Without known facts there is nothing to mark.
    const { text } = run('upstreams: {pay: {provider: adyen, url: https://a}}');
    expect(text).toContain('#     uncertain: rateLimit.initialRate (not set): Adyen publishes neither its limits');
  });

  test('names no provider for an upstream without one', () => {
    expect(run('upstreams: {api: {url: http://a}}').text).not.toContain('Providers');
  });

  test('reports no retries of keyed writes if the upstream has no idempotency keys', () => {
    expect(run('upstreams: {pay: {provider: stripe}}').text).toContain('its write with a key');
    expect(run('upstreams: {pay: {provider: braintree, url: https://a}}').text).not.toContain('its write with a key');
  });
});
