/* oxlint-disable eslint/no-template-curly-in-string -- configurations have ${…} of their own */
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCheck } from '../../../src/cli/check/check-command.ts';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import type { SettingOverride } from '../../../src/config/load/setting-overrides.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { makePem } from '../../support/certificates.ts';

const SECRET = '5ecretOfTheHouse-100';
const PEM = makePem();
const readFile = (path: string): string => (path === 'a.pem' ? PEM : `${SECRET}\n`);
const surroundings = { env: { SECRET, TOKEN: SECRET, HOST: 'api' }, readFile };

function printed(text: string, given: readonly SettingOverride[] = []): string {
  const loaded = loadConfig(text, 'tidegate.yaml', surroundings, given);
  if (loaded.kind === 'mistakes') return formatMistakes(loaded.mistakes);
  return `${formatEffectiveConfig(loaded.config, loaded.substituted)}${formatWarnings(loaded.warnings)}`;
}

/** All kinds of places, with `@` for a substituted value. Most of them are mistakes. */
const PLACES = [
  'listen: @',
  'admin: @',
  'admin: {listen: localhost:1, token: @}',
  'admin: {listen: @, token: x}',
  'secret: @',
  'forwarded: @',
  'log: {level: @}',
  'limits: {replayMemory: @, headers: @, connections: @}',
  'limits: @',
  'routes: [{path: @, upstream: @, host: @, methods: [@], timeout: @}]',
  'routes: [@]',
  'clients: {key: [@], trustedProxies: [@], maxTracked: @}',
  'clients: {classes: {c: {match: {header: {x-a: @}, key: [@]}, weight: @}}}',
  'clients: {names: {shop: [@]}}',
  'practice: {limit: {kind: @}}',
  'state: {store: redis, url: @, prefix: @, timeout: @, password: @, sentinelPassword: @, username: @, tls: {ca: @}}',
  'state: {store: redis, url: "redis://:../a"}',
  'state: {store: @, url: "redis://a"}',
  'practice: {limit: {kind: gcra, rate: @}, hints: @}',
  'routes: [{upstream: api, verify: {scheme: @, secrets: [@], tolerance: @, header: @}}]',
  'routes: [{upstream: api, verify: {scheme: stripe, secrets: [@, @], tolerance: 1s}}]',
  'routes: [{upstream: api, verify: {scheme: standard-webhooks, secrets: [@]}}]',
  'routes: [{upstream: api, verify: {scheme: hmac, secrets: [@], header: @, encoding: @, prefix: @, signed: @}}]',
  'routes: [{upstream: api, deliver: {sign: {secrets: [@, @]}}}]',
  'routes: [{upstream: api, deliver: {sign: @}}]',
];
const UPSTREAM_PLACES = [
  'url: @',
  'url: "https://a", tls: {ca: @, cert: @, key: @, serverName: @, minVersion: @}',
  'url: "https://a", retry: {retryOn: [@], attempts: @, backOff: {strategy: @, baseInterval: @, table: [@]}}',
  'url: "https://a", retry: {unkeyedWrites: @, budget: {ratio: @}, backOffFor: {reset: @}}',
  'url: "https://a", rateLimit: {scope: @, maxRate: @, credentialHeader: @}',
  'url: "https://a", idempotency: {header: @}',
  'url: "https://a", provider: @',
  'provider: stripe, rateLimit: {maxRate: @}, retry: {backOff: {baseInterval: @}}',
];

describe('a value from a variable or a file', () => {
  const places = [
    ...PLACES.map((place) => `upstreams: {api: {url: "https://a"}}\n${place}`),
    ...UPSTREAM_PLACES.map((place) => `upstreams: {api: {${place}}}`),
  ];

  test.each(places)('is never printed: %s', (place) => {
    for (const reference of [
      '"${SECRET}"',
      '"${file:/run/secrets/x}"',
      '"a-${SECRET}"',
      '"https://${SECRET}@a/"',
      '"${SECRET}/s"',
    ]) {
      const text = printed(place.replaceAll('@', reference));
      expect(text).not.toBe('');
      expect(text).not.toContain(SECRET);
      // Nor a normalised form: a lower-case host, a suggested unit.
      expect(text.toLowerCase()).not.toContain(SECRET.toLowerCase());
    }
  });

  test('is printed as its reference', () => {
    const effective: unknown = parse(
      printed(
        `secret: \${file:/run/secrets/x}
admin: {listen: "127.0.0.1:\${PORT}", token: "\${TOKEN}"}
upstreams: {api: {url: "https://\${HOST}.example.com"}}
`.replace('${PORT}', '1'),
      ),
    );
    expect(effective).toMatchObject({
      secret: '${file:/run/secrets/x}',
      admin: { listen: '127.0.0.1:1', token: '${TOKEN}' },
      upstreams: { api: { url: 'https://${HOST}.example.com' } },
    });
  });

  test('is no longer printed as a reference once a flag replaces it', () => {
    const text = printed('listen: "${HOST}:1"\nupstreams: {api: {url: "https://${HOST}"}}', [
      { setting: 'listen', source: '--listen', text: 'localhost:7' },
    ]);
    expect(parse(text)).toMatchObject({ listen: 'localhost:7', upstreams: { api: { url: 'https://${HOST}' } } });
  });

  test('is not printed by check', () => {
    const text =
      'secret: ${SECRET}\nadmin: {listen: localhost:1, token: "${TOKEN}"}\nupstreams: {api: {url: "https://${SECRET}"}}';
    const report = runCheck('tidegate.yaml', { full: true }, { ...surroundings, readFile: () => text });
    expect(report.exitCode).toBe(0);
    expect(report.text.toLowerCase()).not.toContain(SECRET.toLowerCase());
  });
});

describe('a secret written in the file', () => {
  test('is masked when it is printed', () => {
    const tls = `{cert: a.pem, key: ${JSON.stringify(PEM)}, passphrase: ${SECRET}}`;
    const text = printed(`secret: ${SECRET}
listen: {address: localhost:2, tls: ${tls}}
admin: {listen: localhost:1, token: ${SECRET}}
upstreams: {api: {url: https://a, tls: ${tls}}}
clients:
  classes: {c: {match: {header: {x-api-key: ${SECRET}, authorization: "Bearer ${SECRET}", x-tier: gold}, key: [${SECRET}, "${SECRET}-*"]}}}
  names: {shop: ["${SECRET}-*"]}
`);
    expect(text).not.toContain(SECRET);
    for (const line of PEM.split('\n')) if (line !== '') expect(text).not.toContain(line);
    expect(parse(text)).toMatchObject({
      secret: '***',
      admin: { token: '***' },
      listen: { tls: { cert: 'a.pem', key: '***', passphrase: '***' } },
      upstreams: { api: { tls: { cert: 'a.pem', key: '***', passphrase: '***' } } },
      clients: {
        classes: {
          c: { match: { header: { 'x-api-key': '***', authorization: '***', 'x-tier': 'gold' }, key: ['***', '***'] } },
        },
        names: { shop: ['***'] },
      },
    });
  });

  test('is not printed in an error, even if the YAML is invalid', () => {
    for (const line of [
      `secret: [${SECRET}]`,
      `secret: {${SECRET}`,
      `secret: "${SECRET}`,
      `secret: a: ${SECRET}`,
      `secret: @${SECRET}`,
    ]) {
      const text = printed(`upstreams: {api: {url: https://a}}\n${line}\n`);
      expect(text).toMatch(/^tidegate\.yaml:/);
      expect(text).not.toContain(SECRET);
    }
  });
});
