import { describe, expect, test } from 'vitest';
import { describeAccounts } from '../../../src/cli/check/describe-accounts.ts';
import { compileAccounts } from '../../../src/config/compile/compile-accounts.ts';
import { compileKeyOwners } from '../../../src/config/compile/compile-clients.ts';
import { compileIdempotency } from '../../../src/config/compile/compile-idempotency.ts';
import { effectiveConfigData } from '../../../src/config/load/effective-config.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { changesWriteIdentity } from '../../../src/config/load/write-identity-changes.ts';
import { withPresets } from '../../support/proxy/presets.ts';
import type { Config } from '../../../src/config/schema/config-schema.ts';

const SECRET = 'planted-secret';
const ENVIRONMENT = { env: { TOKEN: SECRET }, readFile: () => SECRET };

function load(upstream: string, more = ''): ReturnType<typeof loadConfig> {
  return loadConfig(`upstreams: {api: {url: "http://127.0.0.1:1", ${upstream}}}\n${more}`, 'test.yaml', ENVIRONMENT);
}

function valid(upstream: string): Config {
  const loaded = load(upstream);
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded.mistakes));
  return loaded.config;
}

const ONE = 'accounts: [{name: main, value: "Bearer x"}]';

test('fills in the header, and the defaults of a quarantine', () => {
  const { accounts = [] } = valid(ONE).upstreams['api'] ?? {};
  expect(accounts).toEqual([{ name: 'main', header: 'Authorization', value: 'Bearer x' }]);
  expect(compileAccounts({ accounts, accountQuarantine: undefined })?.quarantine).toEqual({
    statuses: new Set([401]),
    after: 3,
    interval: 30_000,
    maxInterval: 600_000,
  });
});

test.each([
  ['accounts: []', '', 'accounts'],
  ['accounts: [{name: "a b", value: x}]', '', 'a name starts with a letter'],
  ['accounts: [{name: a, value: x}, {name: a, value: y}]', '', 'accounts[0] already has this name'],
  ['accounts: [{name: a, value: "x\\r\\nHost: other"}]', '', 'not the value of a header'],
  ['accounts: [{name: a, value: ""}]', '', 'not the value of a header'],
  ['accounts: [{name: a, header: Host, value: x}]', '', 'Tidegate writes this header itself'],
  ['accounts: [{name: a, header: idempotency_key, value: x}]', '', 'is the header of idempotency keys'],
  [`${ONE}, rateLimit: {scope: client}`, '', 'the upstream counts the requests of each account'],
  [`${ONE}, rateLimit: {of: endpoint}`, '', 'the upstream counts the requests of each account'],
  [`${ONE}, rateLimit: {learnFromLatency: true}`, '', 'not with accounts'],
  [ONE, 'check: {path: /check}\nroutes: [{upstream: api}]', 'an ingress that checks a request sends it itself'],
  [ONE, 'check: {path: /check}', 'an ingress that checks a request sends it itself'],
])('rejects %s %s', (upstream, more, message) => {
  const loaded = load(upstream, more);
  expect(loaded.kind).toBe('mistakes');
  expect(JSON.stringify(loaded)).toContain(message);
});

test('accepts accounts beside a check API that has no route to them', () => {
  const routes = 'routes: [{upstream: api, check: never}, {path: /x, upstream: other}]';
  const text = `upstreams: {api: {url: "http://127.0.0.1:1", ${ONE}}, other: {url: "http://127.0.0.1:2"}}`;
  const check = 'check: {path: /check}\nclients: {trustedProxies: [127.0.0.1]}';
  expect(loadConfig(`${text}\n${check}\n${routes}`, 'test.yaml', ENVIRONMENT).kind).not.toBe('mistakes');
});

test.each([
  ['accountQuarantine: {after: 2}', '', 'has no effect without accounts'],
  ['timeout: 5s', 'routes: [{upstream: api, stickyAccount: true}]', 'its upstream has no accounts'],
  [ONE, 'routes: [{upstream: api, stickyAccount: true}]', 'without secret, another replica'],
])('warns of %s %s', (upstream, more, message) => {
  const loaded = load(upstream, more);
  expect(loaded.kind).not.toBe('mistakes');
  expect(JSON.stringify(loaded)).toContain(message);
});

test('does not warn of sticky accounts whose choice outlives the process', () => {
  const sticky = 'routes: [{upstream: api, stickyAccount: true}]';
  expect(JSON.stringify(load(ONE, `${sticky}\nsecret: "0123456789abcdef"`))).not.toContain('without secret');
  expect(JSON.stringify(load(ONE, `${sticky}\nstate: {store: sqlite, file: /tmp/x.db}`))).not.toContain(
    'without secret',
  );
});

test('never prints a value: it prints the reference, or a mask', () => {
  const written = valid(`accounts: [{name: main, value: "Bearer ${SECRET}"}]`);
  expect(JSON.stringify(effectiveConfigData(written))).not.toContain(SECRET);
  const loaded = load(`accounts: [{name: main, value: "Bearer $\{TOKEN}"}, {name: a, value: "$\{file:/run/secret}"}]`);
  if (loaded.kind === 'mistakes') throw new Error('invalid');
  const shown = JSON.stringify(effectiveConfigData(loaded.config, loaded.substituted));
  expect(shown).not.toContain(SECRET);
  expect(shown).toContain(`Bearer $\{TOKEN}`);
  const mistakes = load(`accounts: [{name: main, value: "$\{TOKEN}", typo: 1}, {name: main, value: " $\{TOKEN}"}]`);
  expect(mistakes.kind).toBe('mistakes');
  expect(JSON.stringify(mistakes)).not.toContain(SECRET);
});

test('reports that another set of names changes what identifies a write, and another value does not', () => {
  const path = ['upstreams', 'api', 'accounts', 0, 'value'];
  const rotated = valid('accounts: [{name: main, value: "Bearer y"}]');
  const added = valid('accounts: [{name: main, value: "Bearer x"}, {name: spare, value: "Bearer x"}]');
  expect(changesWriteIdentity(path, valid(ONE), rotated)).toBe(false);
  expect(changesWriteIdentity(path, valid(ONE), added)).toBe(true);
  expect(changesWriteIdentity(path, valid('timeout: 5s'), added)).toBe(true);
});

const NAMED = 'clients: {key: ["header:X-Client", ip]}';
const SHARED = `${ONE}, idempotency: {keyScope: shared}`;

function scopeOf(upstream: string, more: string): string {
  const loaded = load(upstream, more);
  const { config } = loaded.kind === 'mistakes' ? { config: undefined } : loaded;
  const api = config?.upstreams['api'];
  if (api === undefined || config === undefined) throw new Error(JSON.stringify(loaded));
  return compileIdempotency(api, config, 1).keyScope;
}

test.each([
  ['shared', ONE, ''],
  ['shared', ONE, 'clients: {key: [bearer, ip]}'],
  ['shared', ONE, 'clients: {key: ["header:Authorization", ip]}'],
  [
    'shared',
    ONE,
    'clients: {key: ["header:Proxy-Authorization", "header:Cookie", "header:X-Forwarded-For", "header:Forwarded"]}',
  ],
  ['shared', `${ONE}, rateLimit: {credentialHeader: X-Client}`, NAMED],
  ['client', ONE, NAMED],
  ['client', ONE, 'clients: {key: ["path:2"]}'],
  ['client', `${ONE}, idempotency: {generate: true}`, NAMED],
  ['shared', SHARED, NAMED],
  ['shared', `${ONE}, idempotency: {header: false}`, NAMED],
  ['shared', 'timeout: 5s', NAMED],
])('the scope of keys is %s with %s %s', (scope, upstream, more) => {
  expect(scopeOf(upstream, more)).toBe(scope);
});

test.each([
  [`${ONE}, idempotency: {jsonField: key}`, NAMED, 'must be shared with jsonField'],
  [`${ONE}, idempotency: {keyScope: client, jsonField: key}`, NAMED, 'must be shared with jsonField'],
  [`${ONE}, idempotency: {keyScope: client}`, '', 'needs clients that have names'],
  [`${ONE}, idempotency: {keyScope: client}`, 'clients: {key: [bearer]}', 'needs clients that have names'],
])('rejects the scope of keys of %s %s', (upstream, more, message) => {
  const loaded = load(upstream, more);
  expect(loaded).toMatchObject({ kind: 'mistakes', mistakes: { length: 1 } });
  expect(JSON.stringify(loaded)).toContain(message);
});

describe('with the preset of a provider', () => {
  const withPreset = (provider: string, more = '') => {
    const upstream = `{url: "https://provider.example", provider: ${provider}, accounts: [{name: main, value: "x"}]${more}}`;
    const environment = { env: {}, readFile: withPresets(() => '') };
    return loadConfig(`${NAMED}\nupstreams: {api: ${upstream}}`, 'test.yaml', environment);
  };

  test('Square, whose keys are in bodies, needs shared keys', () => {
    const refused = withPreset('square');
    expect(refused.kind === 'mistakes' && refused.mistakes).toMatchObject([
      { file: 'test.yaml', line: 2, path: 'upstreams.api.idempotency.keyScope' },
    ]);
    expect(JSON.stringify(refused)).toContain('must be shared with jsonField');
    expect(withPreset('square', ', idempotency: {keyScope: shared}').kind).not.toBe('mistakes');
  });

  test.each(['adyen', 'stripe', 'paypal'])('%s gets keys of each client', (provider) => {
    const loaded = withPreset(provider);
    if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded));
    const api = loaded.config.upstreams['api'];
    expect(api && compileIdempotency(api, loaded.config, 1).keyScope).toBe('client');
  });
});

test('accepts keys in bodies that clients separate themselves', () => {
  expect(scopeOf(`${ONE}, idempotency: {jsonField: key, keyScope: shared}`, NAMED)).toBe('shared');
});

test.each([
  [`clients: {key: [bearer, ip]}`, ONE, 'so they do not name a client'],
  [`clients: {key: ["header:Authorization"]}`, ONE, 'so they do not name a client'],
  [
    'clients: {auth: {jwt: {issuer: "https://issuer.example", audience: [pay], jwks: "https://issuer.example/keys"}}}\nroutes: [{path: /open, upstream: api, auth: none}, {upstream: api}]',
    ONE,
    'clients on this route may have no name',
  ],
  ['', `${ONE}, idempotency: {header: false, keyScope: shared}`, 'has no effect: no idempotency key is recognised'],
])('warns of clients without names that last: %s %s', (more, upstream, message) => {
  const loaded = load(upstream, more);
  expect(loaded.kind).not.toBe('mistakes');
  expect(JSON.stringify(loaded)).toContain(message);
});

test.each([
  ['clients: {key: [bearer, ip]}', SHARED],
  ['clients: {key: [bearer, "header:X-Client", ip]}', ONE],
  ['clients: {key: [ip]}', ONE],
  ['clients: {key: [bearer, ip]}', 'timeout: 5s'],
  ['clients: {key: [bearer, ip]}', `${ONE}, idempotency: {header: false}`],
  [
    'clients: {key: ["path:1"], auth: {jwt: {issuer: "https://issuer.example", audience: [pay], jwks: "https://issuer.example/keys"}}}\nroutes: [{path: /open, upstream: api, auth: none}, {upstream: api}]',
    ONE,
  ],
])('warns of no names with %s %s', (more, upstream) => {
  const text = JSON.stringify(load(upstream, more));
  expect(text).not.toContain('mistakes');
  expect(text).not.toContain('so they do not name a client');
  expect(text).not.toContain('clients on this route may have no name');
});

test.each([
  [
    'clients: {key: [bearer, "header:X-Client", "path:2"]}',
    '; clients without header:X-Client or path:2 share one set of keys',
  ],
  [
    'clients: {auth: {jwt: {issuer: "https://issuer.example", audience: [pay], jwks: "https://issuer.example/keys"}}}',
    '(keyScope: client)',
  ],
])('check states which clients have no keys of their own: %s', (clients, end) => {
  const loaded = load(ONE, clients);
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded));
  const [line] = describeAccounts(loaded.config);
  expect(line?.endsWith(end)).toBe(true);
});

test('warns of a scope of keys without accounts', () => {
  expect(JSON.stringify(load('idempotency: {keyScope: shared}'))).toContain('has no effect without accounts');
});

test('says nothing of the scope of keys while another mistake leaves it open which clients have names', () => {
  const loaded = load(`${ONE}, idempotency: {keyScope: client}`, 'clients: {auth: {}}');
  expect(loaded.kind).toBe('mistakes');
  expect(JSON.stringify(loaded)).not.toContain('needs clients that have names');
});

test.each([
  [['upstreams', 'api', 'idempotency', 'keyScope'], true, true],
  [['clients', 'key'], true, true],
  [['clients', 'auth'], true, true],
  [['clients', 'auth', 'jwt', 'nameClaim'], true, true],
  [['clients', 'auth', 'jwt', 'issuer'], true, true],
  [['clients', 'auth', 'jwt', 'audience'], false, false],
  [['clients', 'auth', 'apiKeys', 'file'], false, false],
  [['clients', 'maxTracked'], false, false],
  [['routes', '/', 'auth'], true, true],
])(
  'reports a change of %j where keys are derived: %s, and where they are shared: %s',
  (path, isReported, isReportedElse) => {
    const config = (upstream: string): Config => {
      const loaded = load(upstream, NAMED);
      if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded));
      return loaded.config;
    };
    expect(changesWriteIdentity(path, config(ONE), config(SHARED))).toBe(isReported);
    expect(changesWriteIdentity(path, config(SHARED), config(SHARED))).toBe(isReportedElse);
    const isOfKeys = path[0] === 'upstreams';
    expect(changesWriteIdentity(path, config('timeout: 5s'), config('timeout: 5s'))).toBe(isOfKeys);
  },
);

test('reports another credential header only if a header is no name any more, because it has tokens', () => {
  const path = ['upstreams', 'api', 'rateLimit', 'credentialHeader'];
  const config = (header: string): Config => {
    const loaded = load(`${SHARED}, rateLimit: {credentialHeader: ${header}}`, NAMED);
    if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded));
    return loaded.config;
  };
  expect(changesWriteIdentity(path, config('X-Token'), config('X-Client'))).toBe(true);
  expect(changesWriteIdentity(path, config('X-Token'), config('X-Other'))).toBe(false);
});

test.each([
  ['timeout: 5s', []],
  [ONE, [{ kind: 'header', name: 'X-Client' }]],
])('looks for names of clients only if an upstream has accounts: %s', (upstream, keys) => {
  const loaded = load(upstream, NAMED);
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded));
  expect(compileKeyOwners(loaded.config).keys).toEqual(keys);
});
