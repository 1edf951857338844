/* oxlint-disable eslint/no-template-curly-in-string -- configurations have ${…} of their own */
import { describe, expect, test } from 'vitest';
import { diffConfigs } from '../../../src/config/load/config-diff.ts';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { compileVerify } from '../../../src/config/compile/compile-verify.ts';

const STANDARD = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const FILE_SECRET = 'secret-from-the-file';

function load(verify: string, more = '') {
  const text = `upstreams: {shop: {url: "https://a.example"}}\nroutes: [{path: /hook, upstream: shop, verify: ${verify}${more}`;
  const routes = more.includes(']') ? text : `${text}}]`;
  return loadConfig(routes, 'f.yaml', { env: {}, readFile: () => `${FILE_SECRET}\n` });
}

function findingsOf(verify: string, more = ''): string[] {
  const loaded = load(verify, more);
  const text = loaded.kind === 'ok' ? formatWarnings(loaded.warnings) : formatMistakes(loaded.mistakes);
  if (text === '') return [];
  return text.split('\n').map((line) => line.replace(/^f\.yaml:\d+:\d+ /, '').replace('routes[0].verify', ''));
}

function configOf(verify: string) {
  const loaded = load(verify);
  if (loaded.kind !== 'ok') throw new Error(formatMistakes(loaded.mistakes));
  return loaded;
}

describe('verify', () => {
  test.each<[string, string[]]>([
    [
      '{scheme: strip, secrets: [s]}',
      ['.scheme: expected one of stripe, standard-webhooks, github, hmac (did you mean stripe?)'],
    ],
    ['{secrets: [s]}', ['.scheme: missing']],
    ['{scheme: stripe}', ['.secrets: missing']],
    ['{scheme: stripe, secret: [s]}', ['.secret: unknown key (did you mean secrets?)', '.secrets: missing']],
    ['{scheme: stripe, secrets: s}', ['.secrets: expected a list, got text']],
    ['{scheme: stripe, secrets: []}', ['.secrets: must not be empty']],
    ['{scheme: stripe, secrets: [""]}', ['.secrets[0]: must not be empty']],
    ['{scheme: stripe, secrets: [a, b, c, d, e]}', ['.secrets: must be at most 4 items']],
    ['{scheme: github, secrets: ["s\\n"]}', ['.secrets[0]: begins or ends with white space']],
    ['{scheme: github, secrets: [s, s]}', ['.secrets: the same secret twice']],
    [
      '{scheme: github, secrets: [s], tolerance: 1m}',
      ['.tolerance: allowed only with scheme: stripe or standard-webhooks or hmac'],
    ],
    ['{scheme: stripe, secrets: [s], tolerance: 500ms}', ['.tolerance: must be from 1s to 24h']],
    ['{scheme: stripe, secrets: [s], tolerance: 48h}', ['.tolerance: must be from 1s to 24h']],
    ['{scheme: standard-webhooks, secrets: [s]}', ['.secrets[0]: expected whsec_, followed by base64']],
    ['{scheme: standard-webhooks, secrets: [whsec_]}', ['.secrets[0]: not base64 after whsec_']],
    [`{scheme: standard-webhooks, secrets: ["${STANDARD}=="]}`, ['.secrets[0]: not base64 after whsec_']],
    ['{scheme: standard-webhooks, secrets: [whsec_a-b_]}', ['.secrets[0]: not base64 after whsec_']],
    [
      `{scheme: standard-webhooks, secrets: [${STANDARD.slice(0, -1)}]}`,
      ['.secrets[0]: shorter than 24 bytes: a part of the secret is missing'],
    ],
    [
      '{scheme: standard-webhooks, secrets: [whpk_AAAA]}',
      ['.secrets[0]: a key of asymmetric signatures (v1a), which are not supported'],
    ],
    ['{scheme: hmac, secrets: [s]}', ['.header: missing']],
    ['{scheme: hmac, secrets: [s], header: "x y"}', ['.header: not a header name']],
    [
      '{scheme: hmac, secrets: [s], header: x, encoding: hax}',
      ['.encoding: expected one of hex, base64, base64url (did you mean hex?)'],
    ],
    [
      '{scheme: hmac, secrets: [s], header: x, prefix: "a b"}',
      ['.prefix: expected 1 to 64 printable ASCII characters, without spaces'],
    ],
    [
      '{scheme: hmac, secrets: [s], header: x, signed: "{bdy}"}',
      ['.signed: the only parts in braces are {body} and {timestamp}'],
    ],
    ['{scheme: hmac, secrets: [s], header: x, signed: "{body}{body}"}', ['.signed: needs {body}, once']],
    [
      '{scheme: hmac, secrets: [s], header: x, signed: "{timestamp}{body}"}',
      ['.signed: {timestamp} needs timestampHeader, which contains it'],
    ],
    [
      '{scheme: hmac, secrets: [s], header: x, timestampHeader: t}',
      [
        '.timestampHeader: anybody can change a time that is not signed: add {timestamp} to signed (did you mean {timestamp}.{body}?)',
      ],
    ],
    [
      '{scheme: hmac, secrets: [s], header: x, tolerance: 1m, timestampUnit: ms}',
      [
        'warning: .tolerance: has no effect without timestampHeader',
        'warning: .timestampUnit: has no effect without timestampHeader',
      ],
    ],
  ])('reports a mistake with its path: %s', (verify, findings) => {
    expect(findingsOf(verify).toSorted()).toEqual(findings.toSorted());
  });

  test.each([
    '{scheme: stripe, secrets: [whsec_a, b]}',
    `{scheme: standard-webhooks, secrets: ["${STANDARD}", "${STANDARD.slice(0, -1)}wAA"]}`,
    '{scheme: github, secrets: ["It\'s a Secret to Everybody"]}',
    '{scheme: hmac, secrets: [s], header: X-Signature, algorithm: sha512, encoding: base64, prefix: v0=, timestampHeader: X-Time, timestampUnit: ms, tolerance: 1m, signed: "v0:{timestamp}:{body}"}',
  ])('accepts %s', (verify) => {
    expect(findingsOf(verify)).toEqual([]);
  });

  test('warns of another route to the same upstream for other hosts or methods', () => {
    const verify = '{scheme: github, secrets: [s]}';
    const warning =
      'warning: : routes[1] forwards what this route does not match, unverified, to the same upstream: an upstream that ignores the host, or the method, handles it as a request of this one';
    expect(findingsOf(verify, ', methods: [POST]}, {path: /, upstream: shop}]')).toEqual([warning]);
    expect(findingsOf(verify, ', host: a.example}, {path: /, upstream: shop}]')).toEqual([warning]);
    expect(findingsOf(verify, ', methods: [POST]}, {path: /, upstream: shop, methods: [GET, POST]}]')).toEqual([]);
    expect(findingsOf(verify, '}, {path: /, upstream: shop}]')).toEqual([]);
  });

  test('is not for routes that answer checks, which have no body', () => {
    const verify = '{scheme: github, secrets: [s]}';
    const rest = 'check: {}\nclients: {trustedProxies: [10.0.0.1]}';
    expect(findingsOf(verify, `}, {path: /, upstream: shop}]\n${rest}`)).toEqual([
      ': a check has no body, so its signature cannot be verified: add check: never to this route, and let requests of this path pass through Tidegate',
    ]);
    expect(findingsOf(verify, `, check: never}, {path: /, upstream: shop}]\n${rest}`)).toEqual([]);
  });

  test('prints secrets of files as references, and those of the configuration masked', () => {
    const { config, substituted } = configOf('{scheme: stripe, secrets: ["${file:/run/secrets/a}", plain-secret]}');
    expect(config.routes[0]?.verify?.secrets).toEqual([FILE_SECRET, 'plain-secret']);
    const printed = formatEffectiveConfig(config, substituted);
    expect(printed).toContain('secrets: ["${file:/run/secrets/a}", "***"]');
    expect(printed).toContain('tolerance: 5m');
    expect(printed).not.toMatch(/plain-secret|secret-from/);
  });

  test('shows a changed secret as changed, without its value', () => {
    const changes = diffConfigs(
      configOf('{scheme: github, secrets: [first-one]}'),
      configOf('{scheme: github, secrets: [second-one]}'),
    );
    expect(changes).toMatchObject([
      { path: 'routes["/hook"].verify.secrets', from: '[***]', to: '[***] (a different value)', needsRestart: false },
    ]);
  });

  test('compiles to the scheme that is written', () => {
    const schemeOf = (verify: string) => compileVerify(configOf(verify).config.routes[0]?.verify);
    expect(schemeOf('{scheme: stripe, secrets: [whsec_a]}')).toMatchObject({
      header: 'Stripe-Signature',
      secrets: [Buffer.from('whsec_a')],
    });
    const standard = schemeOf(`{scheme: standard-webhooks, secrets: [${STANDARD}]}`);
    expect(standard?.secrets.map(({ length }) => length)).toEqual([24]);
    const hmac = schemeOf('{scheme: hmac, secrets: [s], header: X-Sig, algorithm: sha1}');
    expect(hmac).toMatchObject({ header: 'X-Sig', algorithm: 'sha1' });
    expect(compileVerify(undefined)).toBeUndefined();
  });
});
