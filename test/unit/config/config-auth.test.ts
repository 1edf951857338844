/** The settings of `clients.auth`: what is refused, and what is warned of. */
import { describe, expect, test } from 'vitest';
import { createApiKey, hashApiKey } from '../../../src/config/auth/api-key.ts';
import { formatKeyLine } from '../../../src/config/auth/key-file.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { makePem } from '../../support/certificates.ts';

const { id, text } = createApiKey();
const LINE = formatKeyLine({ id, hash: hashApiKey(text), createdAt: '2026-11-30T10:00:00Z', client: 'shop' });

const FILES: Readonly<Record<string, string>> = {
  keys: `# comment\n\n${LINE}`,
  'bad-keys': `${LINE}a line\n`,
  jwks: '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA","kid":"1"}]}',
  'bad-jwks': '{"keys":[]}',
  pem: makePem(),
};

function load(yaml: string) {
  return loadConfig(yaml, 'f', {
    env: {},
    readFile: (path) => {
      const found = FILES[path];
      if (found === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
      return found;
    },
  });
}

/** The mistakes and warnings, one a line, without positions. */
function findings(clients: string, more = ''): string[] {
  const loaded = load(`upstreams: {api: {url: "https://a"}}\nclients: ${clients}\n${more}`);
  const lines = loaded.kind === 'ok' ? formatWarnings(loaded.warnings) : formatMistakes(loaded.mistakes);
  return lines === '' ? [] : lines.split('\n').map((line) => line.replace(/^f:\d+:\d+ /, ''));
}

const JWT = 'issuer: "https://i", audience: [api], jwks: jwks';

describe('clients.auth', () => {
  test('has defaults that need no thought', () => {
    const loaded = load(
      `upstreams: {api: {url: "https://a"}}\nclients: {auth: {apiKeys: {file: keys}, jwt: {${JWT}}}}`,
    );
    expect(loaded.kind === 'ok' && loaded.config.clients.auth).toEqual({
      apiKeys: { file: 'keys', header: 'Tidegate-Key' },
      jwt: {
        issuer: 'https://i',
        audience: ['api'],
        jwks: 'jwks',
        algorithms: ['RS256', 'ES256', 'EdDSA'],
        header: 'Authorization',
        nameClaim: 'sub',
        clockTolerance: 30_000,
      },
      forward: false,
    });
  });

  test.each([
    ['{auth: {}}', 'clients.auth: needs apiKeys, jwt or certificate: with none, no client could be accepted'],
    ['{auth: {apiKeys: {file: none}}}', 'clients.auth.apiKeys.file: cannot be read: no such file'],
    [
      '{auth: {apiKeys: {file: bad-keys}}}',
      'clients.auth.apiKeys.file: line 2: expected the id, sha256:HASH, the time and the client of a key',
    ],
    [
      '{auth: {jwt: {issuer: i, audience: [a], jwks: bad-jwks}}}',
      'clients.auth.jwt.jwks: not a JWKS: expected a list keys with at least one key',
    ],
    [
      '{auth: {jwt: {issuer: i, audience: [a], jwks: "http://idp.example.com/keys"}}}',
      'clients.auth.jwt.jwks: expected https: whoever can change the keys on their way can issue tokens',
    ],
    [
      '{auth: {jwt: {issuer: i, audience: [a], jwks: jwks, algorithms: [HS256]}}}',
      'clients.auth.jwt.algorithms[0]: expected one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA (did you mean RS256?)',
    ],
    [
      `{auth: {apiKeys: {file: keys, header: X-Token}, jwt: {${JWT}, header: x-token}}}`,
      'clients.auth.jwt.header: the header of apiKeys: only Authorization can have both',
    ],
    [`{auth: {jwt: {${JWT}, ca: pem}}}`, 'warning: clients.auth.jwt.ca: has no effect: jwks is a file'],
    [
      '{classes: {a: {match: {key: [x]}, allow: {methods: [GET]}}}}',
      'clients.classes.a.allow: needs clients.auth: without it, any client can claim any name',
    ],
    [
      '{auth: {apiKeys: {file: keys}}, classes: {a: {match: {key: [x]}, allow: {}}}}',
      'clients.classes.a.allow: needs routes or methods: with neither, it would restrict nothing',
    ],
    [
      '{auth: {apiKeys: {file: keys}}, classes: {a: {match: {key: [x]}, allow: {routes: [/v]}}}}',
      'clients.classes.a.allow.routes[0]: no route has this name (did you mean /?)',
    ],
    [
      '{auth: {apiKeys: {file: keys}}, classes: {a: {match: {key: [x]}, allow: {methods: [GET]}}, b: {match: {header: {x-plan: gold}}}}}',
      'clients.classes.b.match.header: a client could leave a class with allow by sending or omitting this header: match by key, the name of the client',
    ],
  ])('%s', (clients, message) => {
    expect(findings(clients)).toEqual([message]);
  });

  test('refuses a limit by a credential that the upstream does not get', () => {
    const yaml = (forward: boolean): string =>
      `upstreams: {api: {url: "https://a", rateLimit: {scope: credential}}}\nclients: {auth: {jwt: {${JWT}}, forward: ${forward}}}`;
    const loaded = load(yaml(false));
    expect(loaded.kind === 'mistakes' && loaded.mistakes.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'upstreams.api.rateLimit.scope: Authorization is removed by clients.auth: use scope client, for a limit of each authenticated client, or read the credential from another header',
    ]);
    expect(load(yaml(true)).kind).toBe('ok');
  });

  test('refuses routes that send later, unless they need no credential', () => {
    const routes = (route: string): string =>
      `state: {store: sqlite, file: /tmp/x}\nsecret: "0123456789abcdef"\nroutes: [{upstream: api, ${route}}]`;
    const auth = '{auth: {apiKeys: {file: keys}}}';
    expect(findings(auth, routes('deliver: {}'))[0]).toMatch(
      /^routes\[0\]\.deliver: deliver does not support clients\.auth/,
    );
    expect(findings(auth, routes('deliver: {}, auth: none')).filter((line) => line.includes('clients.auth'))).toEqual(
      [],
    );
  });
});

test('accepts client certificates only where Tidegate verifies them itself', () => {
  const certificate = (listen: string, auth: string, more = ''): string[] => {
    const loaded = load(
      `listen: {address: "127.0.0.1:8443", tls: {cert: pem, key: pem${listen}}}\nupstreams: {api: {url: "https://a"}}\nclients: {${auth}}\n${more}`,
    );
    const found = loaded.kind === 'ok' ? loaded.warnings : loaded.mistakes;
    return found.map(({ path, message }) => `${path}: ${message}`);
  };
  const auth = 'auth: {certificate: {}}';
  expect(certificate(', clientCa: pem', auth)).toEqual([]);
  expect(certificate('', auth)).toEqual([
    'clients.auth.certificate: needs listen.tls.clientCa: the CA certificates that issue those of clients',
  ]);
  expect(certificate(', clientCa: pem', '')).toEqual([
    'listen.tls.clientCa: has no effect without clients.auth.certificate',
  ]);
  expect(certificate(', clientCa: none', auth)).toEqual(['listen.tls.clientCa: cannot be read: no such file']);
  expect(certificate(', clientCa: pem', `${auth}, trustedProxies: [10.0.0.1]`, 'check: {}')).toContain(
    'clients.auth.certificate: not with check: the connection of a check is that of the ingress, so its certificate is not that of the client',
  );
});

test('warns of a route setting without clients.auth', () => {
  expect(findings('{}', 'routes: [{upstream: api, auth: none}]')).toEqual([
    'warning: routes[0].auth: has no effect without clients.auth',
  ]);
});

test.each([
  ['tls: {cert: pem, key: pem}', 'tls.cert'],
  ['accounts: [{name: main, value: token}]', 'accounts'],
])('warns if other machines can use a credential that Tidegate holds: %s', (held, key) => {
  const yaml = (listen: string, clients = '{}', route = '', upstream = 'api') =>
    load(
      `listen: "${listen}"\nupstreams: {api: {url: "https://a", ${held}}, other: {url: "https://b", fallback: api}}\nroutes: [{upstream: ${upstream}${route}}]\nclients: ${clients}`,
    );
  const warnings = (loaded: ReturnType<typeof load>): string[] =>
    loaded.kind === 'ok' ? loaded.warnings.map(({ path }) => path) : ['a mistake'];
  expect(warnings(yaml('0.0.0.0:8080'))).toEqual([`upstreams.api.${key}`]);
  expect(warnings(yaml('0.0.0.0:8080', '{}', '', 'other'))).toEqual([`upstreams.api.${key}`]);
  expect(warnings(yaml('127.0.0.1:8080'))).toEqual([]);
  expect(warnings(yaml('0.0.0.0:8080', '{auth: {apiKeys: {file: keys}}}'))).toEqual([]);
  expect(warnings(yaml('0.0.0.0:8080', '{}', ', verify: {scheme: github, secrets: [abc]}'))).toEqual([]);
});
