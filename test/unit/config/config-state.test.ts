/* oxlint-disable eslint/no-template-curly-in-string -- configurations have ${…} of their own */
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import { configJsonSchema } from '../../../src/config/schema/json-schema.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes, formatWarnings } from '../../../src/config/load/mistakes.ts';
import { maskPassword, parseRedisUrl, formatRedisUrl } from '../../../src/config/values/redis-url.ts';
import type { StateConfig } from '../../../src/config/schema/config-schema.ts';
import { resolveServeSettings } from '../../../src/config/load/serve-settings.ts';
import { makePem } from '../../support/certificates.ts';

const PEM = makePem();
const env = { PASSWORD: 'a:b/c@d', STORE: 'memory' };
const readFile = (path: string): string => (path.endsWith('.pem') ? PEM : 'p@ss/word\n');

function load(state: string) {
  return loadConfig(`upstreams: {api: {url: http://a}}\nstate: ${state}`, 'f.yaml', { env, readFile });
}

function stateOf(state: string): StateConfig {
  const loaded = load(state);
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  return loaded.config.state;
}

function mistakes(state: string): string[] {
  const loaded = load(state);
  return loaded.kind === 'ok' ? [] : strip(formatMistakes(loaded.mistakes));
}

function warnings(state: string): string[] {
  const loaded = load(state);
  return loaded.kind === 'ok' ? strip(formatWarnings(loaded.warnings)) : ['not sound'];
}

function strip(lines: string): string[] {
  return lines === '' ? [] : lines.split('\n').map((line) => line.replace(/^f\.yaml:\d+:\d+ /, ''));
}

/** The parsed url, or its mistakes. */
function read(url: string): unknown {
  const reading = parseRedisUrl(url);
  if (reading.ok) return reading.value;
  return `${reading.message}${reading.suggestion === undefined ? '' : ` (did you mean ${reading.suggestion}?)`}`;
}

const NOBODY = { username: undefined, password: undefined };
const EXPECTED =
  'expected a URL such as redis://host:6379, rediss:// for TLS, redis+sentinel://host:26379/mymaster or redis+cluster://host:6379';
const ENCODED =
  'a "/", "?", "#", "@", ":" or "%" in a user name or password must be URL-encoded; or set state.password';

describe('the url of Redis', () => {
  test.each([
    ['redis://localhost', { kind: 'single', tls: false, ...NOBODY, nodes: [{ host: 'localhost', port: 6379 }], db: 0 }],
    ['valkey://a_b-1.c:7/', { kind: 'single', tls: false, ...NOBODY, nodes: [{ host: 'a_b-1.c', port: 7 }], db: 0 }],
    [
      'REDISS://me:p%40ss%2F@[::1]:1/15',
      { kind: 'single', tls: true, username: 'me', password: 'p@ss/', nodes: [{ host: '::1', port: 1 }], db: 15 },
    ],
    [
      'valkeys://:a@b:c@127.0.0.1',
      {
        kind: 'single',
        tls: true,
        username: undefined,
        password: 'a@b:c',
        nodes: [{ host: '127.0.0.1', port: 6379 }],
        db: 0,
      },
    ],
    [
      'redis+sentinel://u:p@a,b:7/mymaster/2',
      {
        kind: 'sentinel',
        tls: false,
        username: 'u',
        password: 'p',
        nodes: [
          { host: 'a', port: 26_379 },
          { host: 'b', port: 7 },
        ],
        name: 'mymaster',
        db: 2,
      },
    ],
    [
      'rediss+cluster://a,b:7/0',
      {
        kind: 'cluster',
        tls: true,
        ...NOBODY,
        nodes: [
          { host: 'a', port: 6379 },
          { host: 'b', port: 7 },
        ],
        db: 0,
      },
    ],
  ])('%s', (url, address) => {
    expect(read(url)).toEqual(address);
  });

  test.each([
    ['localhost:6379', `${EXPECTED} (did you mean redis://localhost:6379?)`],
    ['http://a', `${EXPECTED} (did you mean redis://a?)`],
    ['rediss+sentinal://a/m', `${EXPECTED} (did you mean rediss+sentinel://a/m?)`],
    ['redis-cluster://a,b', `${EXPECTED} (did you mean redis+cluster://a,b?)`],
    ['redis:6379', `${EXPECTED} (did you mean redis://redis:6379?)`],
    ['redis:6379/1', `${EXPECTED} (did you mean redis://redis:6379/1?)`],
    ['redis:/a', `${EXPECTED} (did you mean redis://a?)`],
    ['rediss:a:1', `${EXPECTED} (did you mean rediss://a:1?)`],
    ['redis:///a', 'expected host or host:port, several of them separated by "," (did you mean redis://a?)'],
    ['Redis//a', `${EXPECTED} (did you mean redis://a?)`],
    ['valkey;//a', `${EXPECTED} (did you mean valkey://a?)`],
    ['//a:6379', `${EXPECTED} (did you mean redis://a:6379?)`],
    ['tcp://redis:6379', `${EXPECTED} (did you mean redis://redis:6379?)`],
    [' redis://a ', `${EXPECTED} (did you mean redis://a?)`],
    ['6379', `${EXPECTED} (did you mean redis://localhost:6379?)`],
    ['::1', `${EXPECTED} (did you mean redis://[::1]?)`],
    ['unix:/run/redis.sock', `Redis over a Unix socket is not supported: ${EXPECTED}`],
    ['redis+unix:///run/redis.sock', `Redis over a Unix socket is not supported: ${EXPECTED}`],
    ['redis:hush@a', EXPECTED],
    ['redis://a?db=1', `${EXPECTED} (did you mean redis://a?)`],
    ['rediz://:hush@a', EXPECTED],
    ['', EXPECTED],
    ['redis://', 'expected host or host:port, several of them separated by ","'],
    ['redis://a b', 'expected host or host:port, several of them separated by ","'],
    ['redis://a:0', 'a port is from 1 to 65535'],
    ['redis://a:65536', 'a port is from 1 to 65535'],
    ['redis://[::g]', 'expected host or host:port, several of them separated by ","'],
    ['redis://[1:2]', 'not an IPv6 address'],
    ['redis://10.0.0', 'not an IPv4 address'],
    ['redis://:hu/sh@a', ENCODED],
    ['redis://:hu%sh@a', ENCODED],
    ['redis://:hush#@a', ENCODED],
    ['redis://a,b', 'expected one host; several need redis+sentinel:// or redis+cluster://'],
    ['redis://a/first', 'a database is a number: /0, /1'],
    ['redis://a/1/2', 'a database is a number: /0, /1'],
    ['redis+cluster://a/1', 'a cluster has only database 0'],
    ['redis+sentinel://a', 'expected the name of the master after the hosts, such as /mymaster'],
    ['redis+sentinel://a/my master', 'expected the name of the master after the hosts, such as /mymaster'],
  ])('%s: %s', (url, expected) => {
    expect(read(url)).toBe(expected);
  });

  test('round-trips, whatever its password contains', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1 });
    const host = fc.oneof(
      fc.domain(),
      fc.ipV4(),
      fc.ipV6().filter((ip) => !ip.includes('.')),
    );
    const node = fc.record({ host, port: fc.integer({ min: 1, max: 65_535 }) });
    const access = {
      tls: fc.boolean(),
      username: fc.option(text, { nil: undefined }),
      password: fc.option(text, { nil: undefined }),
    };
    const nodes = fc.array(node, { minLength: 1, maxLength: 4 });
    const address = fc.oneof(
      fc.record({ kind: fc.constant('single' as const), ...access, nodes: fc.tuple(node), db: fc.nat(99) }),
      fc.record({
        kind: fc.constant('sentinel' as const),
        ...access,
        nodes,
        name: fc.stringMatching(/^[\w.-]+$/),
        db: fc.nat(99),
      }),
      fc.record({ kind: fc.constant('cluster' as const), ...access, nodes, db: fc.constant(0 as const) }),
    );
    fc.assert(
      fc.property(address, (value) => {
        expect(parseRedisUrl(formatRedisUrl(value))).toEqual({ ok: true, value });
      }),
    );
  });

  test('is shown without its password', () => {
    expect(maskPassword('redis://a:1/2')).toBe('redis://a:1/2');
    expect(maskPassword('redis://user@a')).toBe('redis://user@a');
    expect(maskPassword('rediss://user:hush@a,b')).toBe('rediss://user:***@a,b');
    expect(maskPassword('redis://${file:/u}:hush${X}@${HOST}')).toBe('redis://${file:/u}:***@${HOST}');
    expect(maskPassword('redis://${file:/u}:${PASSWORD}@a')).toBe('redis://${file:/u}:${PASSWORD}@a');
  });
});

describe('the state store', () => {
  test('is memory, unless Redis is configured', () => {
    expect(stateOf('{store: memory}')).toEqual({ store: 'memory' });
    expect(stateOf('{store: redis, url: redis://a}')).toEqual({
      store: 'redis',
      url: { kind: 'single', tls: false, ...NOBODY, nodes: [{ host: 'a', port: 6379 }], db: 0 },
      prefix: 'tidegate',
      timeout: 150,
      maxKeys: 1_000_000,
      tls: { minVersion: 'TLSv1.2', insecure: false },
    });
    expect(
      stateOf(
        '{store: redis, url: "rediss+sentinel://a/m", prefix: "pay:eu", timeout: 10ms, username: u, password: "${file:/run/p}", sentinelUsername: s, sentinelPassword: "${PASSWORD}", tls: {ca: a.pem, serverName: b}}',
      ),
    ).toMatchObject({
      prefix: 'pay:eu',
      timeout: 10,
      username: 'u',
      password: 'p@ss/word',
      sentinelUsername: 's',
      sentinelPassword: 'a:b/c@d',
      tls: { ca: 'a.pem', serverName: 'b' },
    });
  });

  test('reports all mistakes at once', () => {
    expect(mistakes('{}')).toEqual(['state.store: missing']);
    expect(mistakes('{store: reddis}')).toEqual([
      'state.store: expected one of memory, sqlite, redis (did you mean redis?)',
    ]);
    expect(mistakes('{store: redis}')).toEqual(['state.url: missing']);
    expect(mistakes('{store: sqlite}')).toEqual(['state.file: missing']);
    expect(mistakes('{store: sqlite, file: a.db, durability: ful}')).toEqual([
      'state.durability: expected one of full, normal (did you mean full?)',
    ]);
    expect(mistakes('{store: memory, url: redis://a, prefx: b}')).toEqual([
      'state.url: allowed only with store: redis',
      'state.prefx: unknown key (did you mean prefix?)',
    ]);
    expect(
      mistakes(
        '{store: redis, url: "localhost:6379", prefix: "{a b}", timeout: 241ms, password: "", tls: {cert: a.pem}, urls: 1}',
      ),
    ).toEqual([
      `state.url: ${EXPECTED} (did you mean redis://localhost:6379?)`,
      'state.prefix: expected 1 to 64 printable ASCII characters, without spaces and braces (did you mean ab?)',
      'state.timeout: must be from 10ms to 240ms',
      'state.password: must not be empty',
      'state.tls.cert: cert and key are needed together',
      'state.urls: unknown key (did you mean url?)',
    ]);
    expect(mistakes('{store: redis, url: redis://a, timeout: 9ms, prefix: 5}')).toEqual([
      'state.timeout: must be from 10ms to 240ms',
      'state.prefix: expected 1 to 64 printable ASCII characters, without spaces and braces (did you mean 5?)',
    ]);
  });

  test('accepts one complete set of credentials', () => {
    expect(mistakes('{store: redis, url: "redis://u:p@a", username: v, password: q}')).toEqual([
      'state.username: the url has one as well: keep one',
      'state.password: the url has one as well: keep one',
    ]);
    expect(mistakes('{store: redis, url: "redis://u@a", password: q}')).toEqual([]);
    expect(mistakes('{store: redis, url: "redis://hush@a"}')).toEqual([
      'state.url: a user name without a password; a password alone is written redis://:PASSWORD@host',
    ]);
    expect(mistakes('{store: redis, url: "redis://a", username: u}')).toEqual(['state.username: needs a password']);
    expect(mistakes('{store: redis, url: "redis://a", sentinelUsername: u, sentinelPassword: p}')).toEqual([
      'state.sentinelUsername: only with a url that begins with redis+sentinel or rediss+sentinel',
      'state.sentinelPassword: only with a url that begins with redis+sentinel or rediss+sentinel',
    ]);
    expect(mistakes('{store: redis, url: "redis+sentinel://a/m", sentinelUsername: u}')).toEqual([
      'state.sentinelUsername: needs sentinelPassword',
    ]);
  });

  test('uses TLS only if the url has a scheme with TLS', () => {
    for (const tls of ['{ca: a.pem}', '{insecure: true}']) {
      expect(mistakes(`{store: redis, url: "redis+cluster://a", tls: ${tls}}`)).toEqual([
        'state.tls: has no effect: the url is not encrypted, and TLS needs another scheme (did you mean url: rediss+cluster://…?)',
      ]);
    }
    expect(warnings('{store: redis, url: "rediss://:pass@a", tls: {insecure: true}}')).toEqual([
      'warning: state.tls.insecure: the certificate is not verified: anybody can impersonate this Redis and read what is sent',
    ]);
    expect(mistakes('{store: redis, url: rediss://a, tls: {ca: absent}}')).toEqual([
      'state.tls.ca: not a PEM file: it contains no -----BEGIN',
    ]);
  });

  test('warns if the key of client hashes could be guessed', () => {
    expect(warnings('{store: redis, url: redis://a}')).toEqual([
      'warning: state: neither a password nor secret is set, so the key of the client hashes can be guessed: set the same secret for all replicas',
    ]);
    expect(warnings('{store: redis, url: redis://a, password: secret}')).toEqual([]);
  });

  test('is validated by the JSON Schema in the same way', () => {
    const validate = new Ajv2020({ allErrors: true }).compile(configJsonSchema());
    const isValid = (state: object) => validate({ upstreams: { api: { url: 'http://a' } }, state });
    expect(isValid({ store: 'memory' })).toBe(true);
    expect(isValid({ store: 'redis', url: 'VALKEYS+sentinel://a/m', timeout: '50ms', tls: { ca: 'x' } })).toBe(true);
    expect(isValid({ store: 'redis', url: '${REDIS}', prefix: '${P}' })).toBe(true);
    expect(isValid({ store: 'redis' })).toBe(false);
    expect(isValid({ store: 'redis', url: 'http://a' })).toBe(false);
    expect(isValid({ store: 'redis', url: 'redis://a', prefix: '{a}' })).toBe(false);
    expect(isValid({ store: 'memory', url: 'redis://a' })).toBe(false);
  });

  test('is printed without secrets, and with the same meaning', () => {
    const print = (state: string): unknown => {
      const loaded = load(state);
      if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
      return (parse(formatEffectiveConfig(loaded.config, loaded.substituted)) as { readonly state: unknown }).state;
    };
    const tls = { minVersion: 'TLSv1.2', insecure: false };
    expect(print('{store: redis, url: "valkey://u:hush@a/3"}')).toEqual({
      store: 'redis',
      url: 'redis://u:***@a:6379/3',
      prefix: 'tidegate',
      timeout: '150ms',
      maxKeys: 1_000_000,
      tls,
    });
    expect(
      print(
        '{store: redis, url: "redis+sentinel://:hush${STORE}@a/${STORE}", sentinelPassword: hush, tls: {}}'.replace(
          'tls: {}',
          'prefix: x',
        ),
      ),
    ).toMatchObject({ url: 'redis+sentinel://:***@a/${STORE}', sentinelPassword: '***', prefix: 'x' });
    expect(print('{store: redis, url: redis://a, password: "${PASSWORD}"}')).toMatchObject({
      password: '${PASSWORD}',
    });
  });
});

describe('TIDEGATE_REDIS_URL', () => {
  const resolve = (file: string, url: string) =>
    resolveServeSettings(
      { config: 'f.yaml' },
      { env: { ...env, TIDEGATE_REDIS_URL: url }, readFile: () => `upstreams: {api: {url: http://a}}\n${file}` },
    );

  test('selects Redis over the file, and keeps the other settings of the file', () => {
    for (const file of [
      '',
      'state: {store: memory}',
      'state: {store: redis, url: redis://other}',
      'state: {store: "${STORE}"}',
    ]) {
      const settings = resolve(file, 'redis://:p@b:7');
      expect(settings.kind === 'ok' && settings.config.state).toMatchObject({
        store: 'redis',
        url: { password: 'p', nodes: [{ host: 'b', port: 7 }] },
        prefix: 'tidegate',
      });
      const printed = settings.kind === 'ok' && formatEffectiveConfig(settings.config, settings.substituted);
      expect(printed).toContain('store: redis\n  url: redis://:***@b:7\n');
    }
    const settings = resolve('state: {store: redis, url: redis://other, prefix: pay, timeout: 20ms}', 'redis://b');
    expect(settings.kind === 'ok' && settings.config.state).toMatchObject({ prefix: 'pay', timeout: 20 });
  });

  test('has no effect if it is empty', () => {
    const settings = resolve('', '');
    expect(settings.kind === 'ok' && settings.config.state).toEqual({ store: 'memory' });
  });

  test('is named in the errors about it', () => {
    const changesOf = (file: string, url: string): string[] => {
      const settings = resolve(file, url);
      return settings.kind === 'mistakes' ? formatMistakes(settings.mistakes).split('\n') : [];
    };
    expect(changesOf('', 'redis:6379')).toEqual([`TIDEGATE_REDIS_URL: ${EXPECTED} (did you mean redis://redis:6379?)`]);
    expect(changesOf('', 'redis://:hu/sh@a')).toEqual([`TIDEGATE_REDIS_URL: ${ENCODED}`]);
    expect(changesOf('state: {store: memory, tls: {ca: x}}', 'redis://a')).toEqual([
      'f.yaml:2:24 state.tls: has no effect: the url is not encrypted, and TLS needs another scheme (did you mean url: rediss://…?)',
      'f.yaml:2:34 state.tls.ca: not a PEM file: it contains no -----BEGIN',
    ]);
    expect(changesOf('state: 5', 'redis://a')).toEqual(['f.yaml:2:8 state: expected a mapping, got a number']);
  });
});
