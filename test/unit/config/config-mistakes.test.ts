/* oxlint-disable eslint/no-template-curly-in-string -- configurations have ${…} of their own */
import { createPrivateKey } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import { makePem } from '../../support/certificates.ts';

const SECRET = 'not to be repeated';
const PEM = makePem();

/** The mistakes of a configuration, one a line; empty if it is valid. */
function mistakesOf(text: string): string[] {
  const loaded = loadConfig(text, 'tidegate.yaml', {
    env: { SET: 'set' },
    readFile: (path) => {
      if (path.endsWith('.pem')) return path === 'der.pem' ? SECRET : PEM;
      throw Object.assign(new Error(`ENOENT: ${path}`), { code: path === '/locked' ? 'EACCES' : 'ENOENT' });
    },
  });
  return loaded.kind === 'ok' ? [] : formatMistakes(loaded.mistakes).split('\n');
}

/** The mistakes caused by a line added to a valid configuration, without file, line and column. */
function mistakesOfLine(line: string): string[] {
  return mistakesOf(
    `upstreams: {api: {url: "https://a"}, other: {url: "https://b"}}\nroutes: [{upstream: api}]\n${line}`,
  ).map((mistake) => mistake.replace(/^tidegate\.yaml:\d+:\d+ /, ''));
}

/** The mistakes caused by a setting added to the upstream of a valid configuration. */
function mistakesOfUpstream(flow: string): string[] {
  return mistakesOf(`upstreams: {api: {url: "https://a", ${flow}}}`).map((mistake) =>
    mistake.replace(/^tidegate\.yaml:1:\d+ upstreams\.api\./, ''),
  );
}

/** A wrong passphrase whose result ends in bytes that look like valid padding. */
function findSeemingPassphrase(key: string | Buffer): string {
  for (let n = 0; ; n += 1) {
    try {
      createSecureContext({ key, passphrase: `wrong ${n}` });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ERR_OSSL_BAD_DECRYPT')) return `wrong ${n}`;
    }
  }
}

test('reports every mistake at once, with file, line, column, path and a suggestion', () => {
  expect(
    mistakesOf(`listen: 8080
admin: 0.0.0.0:9901
limits:
  headers: 10
  conections: 5
upstreams:
  payments:
    url: api.stripe.com
    atempts: 2
    attempts: 2
    retry:
      # a comment
      atempts: 4
      retryOn: [5xx, 5XX, conect-failure, 200]
      backOff: {strategy: fulljitter}
  1st: {url: "https://user:password@example.com"}
  nothing:
routes:
  - {path: v1, upstream: paymets}
  - {path: /x, host: A, upstream: payments}
  - {path: /x, host: a, upstream: payments}
  - path: /
log: {level: warning}
`),
  ).toEqual([
    'tidegate.yaml:1:9 listen: expected host:port, [::]:port or unix:/path (did you mean 127.0.0.1:8080?)',
    'tidegate.yaml:2:8 admin: an address that other machines can reach needs a token: {listen, token}',
    'tidegate.yaml:4:12 limits.headers: a duration needs a unit (did you mean 10ms or 10s?)',
    'tidegate.yaml:5:3 limits.conections: unknown key (did you mean connections?)',
    'tidegate.yaml:8:10 upstreams.payments.url: expected an http or https URL such as https://api.example.com (did you mean https://api.stripe.com?)',
    'tidegate.yaml:9:5 upstreams.payments.atempts: unknown key',
    'tidegate.yaml:10:5 upstreams.payments.attempts: unknown key (did you mean retry.attempts?)',
    'tidegate.yaml:13:7 upstreams.payments.retry.atempts: unknown key (did you mean attempts?)',
    'tidegate.yaml:14:22 upstreams.payments.retry.retryOn[1]: expected a status from 400 to 599, or one of 5xx, gateway-error, connect-failure, reset, timeout, lock (did you mean 5xx?)',
    'tidegate.yaml:14:27 upstreams.payments.retry.retryOn[2]: expected a status from 400 to 599, or one of 5xx, gateway-error, connect-failure, reset, timeout, lock (did you mean connect-failure?)',
    'tidegate.yaml:14:43 upstreams.payments.retry.retryOn[3]: expected a status from 400 to 599, or one of 5xx, gateway-error, connect-failure, reset, timeout, lock',
    'tidegate.yaml:15:27 upstreams.payments.retry.backOff.strategy: expected one of fixed, random, linear, polynomial, fibonacci, exponential, exponential-jitter, additive-jitter, full-jitter, equal-jitter, decorrelated-jitter, decorrelated-jitter-v2, ethernet, celery, jpillora, sip, doubling, table, grpc, envoy (did you mean full-jitter?)',
    'tidegate.yaml:16:3 upstreams.1st: a name starts with a letter, and has at most 64 letters, digits, ".", "_" and "-"',
    'tidegate.yaml:16:14 upstreams.1st.url: a URL must not contain credentials: clients send their own',
    'tidegate.yaml:17:3 upstreams.nothing: expected a mapping, got nothing',
    'tidegate.yaml:19:12 routes[0].path: a path starts with / (did you mean /v1?)',
    'tidegate.yaml:19:26 routes[0].upstream: no upstream has this name (did you mean payments?)',
    'tidegate.yaml:21:5 routes[2]: the same host, path and method as routes[1]',
    'tidegate.yaml:22:5 routes[3].upstream: missing',
    'tidegate.yaml:23:14 log.level: expected one of trace, debug, info, warn, error, fatal, silent (did you mean warn?)',
  ]);
});

test('reports a mistake as structured data, too', () => {
  expect(loadConfig('upstreams: {api: {url: http://a, timeout: 5}}', 'f.yaml', { env: {}, readFile: String })).toEqual({
    kind: 'mistakes',
    mistakes: [
      {
        file: 'f.yaml',
        line: 1,
        column: 43,
        path: 'upstreams.api.timeout',
        message: 'a duration needs a unit',
        suggestion: '5ms or 5s',
      },
    ],
  });
});

describe('YAML', () => {
  test('reports a missing upstream for an empty file', () => {
    expect(mistakesOf('')).toEqual(['tidegate.yaml:1:1 upstreams: at least one upstream is needed']);
    expect(mistakesOf('# a comment\n---\n')).toEqual(['tidegate.yaml:1:1 upstreams: at least one upstream is needed']);
  });

  test('rejects any document that is not a mapping', () => {
    expect(mistakesOf('- a\n- b')).toEqual(['tidegate.yaml:1:1 expected a mapping']);
    expect(mistakesOf('tidegate')).toEqual(['tidegate.yaml:1:1 expected a mapping']);
  });

  test('reports only the first place of a syntax error, and never its text', () => {
    expect(mistakesOf('listen: [::]:8080\nsecret: "hush hush hush"\n')).toEqual([
      'tidegate.yaml:1:13 not YAML: not expected here: a quote, bracket or line break may be missing before it (did you mean "[::]:8080"?)',
    ]);
    expect(mistakesOf('admin: {listen: 0.0.0.0:1, token: ${TOKEN}}\nlisten: x')).toEqual([
      'tidegate.yaml:1:36 not YAML: not expected here: a quote, bracket or line break may be missing before it (did you mean "${TOKEN}"?)',
    ]);
    expect(mistakesOf('a: b: c')).toEqual([
      'tidegate.yaml:1:4 not YAML: a second mapping or list on the line of the first: quote the text, or start a new line',
    ]);
    expect(mistakesOf('log:\n\tlevel: info')).toEqual(['tidegate.yaml:2:1 not YAML: a tab: indent with spaces']);
    expect(mistakesOf('a: 1\n---\nb: 2')).toEqual([
      'tidegate.yaml:2:1 not YAML: a second document: a configuration is a single document',
    ]);
    expect(mistakesOf('secret: !env NAME')).toEqual(['tidegate.yaml:1:9 not YAML: a tag that is not supported here']);
  });

  test('counts columns in characters, and accepts Windows line endings', () => {
    expect(mistakesOf('# caf\u00e9 \u{1f30a}\r\nupstreams: {api: {url: "http://a"}}\r\nlog: {level: 5}\r\n')).toEqual([
      'tidegate.yaml:3:14 log.level: expected one of trace, debug, info, warn, error, fatal, silent',
    ]);
  });

  test('reports the position where a missing key belongs', () => {
    expect(mistakesOf('upstreams:\n  api: &a {timeout: 5s}\n  b: *a\nroutes:\n  - path: /')).toEqual([
      'tidegate.yaml:2:3 upstreams.api.url: missing',
      'tidegate.yaml:3:3 upstreams.b.url: missing',
      'tidegate.yaml:5:5 routes[0].upstream: missing',
    ]);
  });

  test('requires a key to be unique and text, and rejects prototypes and merges', () => {
    expect(
      mistakesOf(
        'upstreams: {api: {url: http://a}}\nlisten: a:1\nlisten: a:2\n__proto__: {a: 1}\n<<: {a: 1}\n? [x]\n: 1\n: 2\n',
      ),
    ).toEqual([
      'tidegate.yaml:3:1 listen: written twice: the first is at 2:1',
      'tidegate.yaml:4:1 __proto__: unknown key',
      'tidegate.yaml:5:1 ["<<"]: unknown key',
      'tidegate.yaml:6:3 a key must be plain text',
      'tidegate.yaml:8:1 a key must be plain text',
    ]);
  });

  test('requires an alias to name an earlier anchor, outside the value that contains it', () => {
    expect(mistakesOf('upstreams: *nowhere')).toEqual([
      'tidegate.yaml:1:12 upstreams: an alias without an anchor before it',
    ]);
    expect(mistakesOf('upstreams: {api: {url: http://a}}\nroutes: &r [*r]')).toEqual([
      'tidegate.yaml:2:13 routes[0]: an alias of a mapping or list that contains it',
    ]);
  });

  test('limits the expansion of a small file', () => {
    const bomb = Array.from(
      { length: 9 },
      (_, i) =>
        `a${i}: &a${i} [${Array(9)
          .fill(i === 0 ? 'x' : `*a${i - 1}`)
          .join(', ')}]`,
    );
    expect(mistakesOf(bomb.join('\n'))).toEqual(['tidegate.yaml:1:1 more than 100000 values, aliases included']);
    expect(mistakesOf(`a: ${'x'.repeat(256 * 1024)}`)).toEqual(['tidegate.yaml:1:1 larger than 256KiB']);
  });

  test('limits nesting', () => {
    for (const opening of ['[', '{', '- ', '? ', 'a: ', '[{a: ']) {
      expect(mistakesOf(opening.repeat(40_000))).toEqual([
        expect.stringMatching(/^tidegate\.yaml:1:\d+ nested too deeply$/),
      ]);
    }
  });
});

describe('units', () => {
  test('are required, and other notations get the right one as a suggestion', () => {
    const timeout = (text: string): string => mistakesOfUpstream(`timeout: ${text}`).join();
    expect(timeout('"500"')).toBe(
      'timeout: expected a duration such as 250ms, 2s, 1m or 24h (did you mean 500ms or 500s?)',
    );
    expect(timeout('10 seconds')).toBe('timeout: expected a duration such as 250ms, 2s, 1m or 24h (did you mean 10s?)');
    expect(timeout('.5s')).toBe('timeout: expected a duration such as 250ms, 2s, 1m or 24h (did you mean 0.5s?)');
    expect(timeout('2MIN')).toBe('timeout: expected a duration such as 250ms, 2s, 1m or 24h (did you mean 2m?)');
    expect(timeout('soon')).toBe('timeout: expected a duration such as 250ms, 2s, 1m or 24h');
    expect(timeout('[1s]')).toBe('timeout: expected a duration such as 250ms, 2s, 1m or 24h');
    expect(timeout('-5')).toBe('timeout: a duration cannot be negative');
    expect(timeout('0')).toBe('timeout: must be longer than 0');
    expect(timeout('600h')).toBe('timeout: must be at most 576h');
    expect(mistakesOfUpstream('rateLimit: {maxRate: 100rps, minRate: 0/s, initialRate: 5}')).toEqual([
      'rateLimit.maxRate: expected a rate such as 100/s, 20/m or 5000/h (did you mean 100/s?)',
      'rateLimit.minRate: must be above 0',
      'rateLimit.initialRate: a rate needs a unit (did you mean 5/s?)',
    ]);
    expect(mistakesOfUpstream('rateLimit: {maxRate: 100 per minute, minRate: 1/day}')).toEqual([
      'rateLimit.maxRate: expected a rate such as 100/s, 20/m or 5000/h (did you mean 100/m?)',
      'rateLimit.minRate: expected a rate such as 100/s, 20/m or 5000/h',
    ]);
    expect(mistakesOfLine('limits: {replayMemory: 64MB}')).toEqual([
      'limits.replayMemory: expected a size such as 64KiB or 8MiB (did you mean 64MiB?)',
    ]);
    expect(mistakesOfLine('limits: {replayMemory: 65536}')).toEqual([
      'limits.replayMemory: a size needs a unit (did you mean 64KiB?)',
    ]);
    expect(mistakesOfLine('limits: {bodyRate: 2 kb per second}')).toEqual([
      'limits.bodyRate: expected a rate such as 500B/s or 1MiB/s (did you mean 2KiB/s?)',
    ]);
  });
});

describe('addresses', () => {
  test('of a listener need a host and a port', () => {
    const telemetry = (text: string): string => mistakesOfLine(`telemetry: ${text}`).join();
    const expected = 'telemetry: expected host:port, [::]:port or unix:/path';
    expect(telemetry('":9464"')).toBe(`${expected} (did you mean 0.0.0.0:9464?)`);
    expect(telemetry('":::9464"')).toBe(`${expected} (did you mean [::]:9464?)`);
    expect(telemetry('http://localhost:9464/')).toBe(`${expected} (did you mean localhost:9464?)`);
    expect(telemetry('/run/tidegate.sock')).toBe(`${expected} (did you mean unix:/run/tidegate.sock?)`);
    expect(telemetry('localhost')).toBe(expected);
    expect(telemetry('localhost:70000')).toBe('telemetry: a port is at most 65535');
    expect(telemetry('70000')).toBe('telemetry: a port is at most 65535');
    expect(telemetry(':70000')).toBe('telemetry: a port is at most 65535');
    expect(telemetry('300.0.0.1:80')).toBe('telemetry: not an IPv4 address');
    expect(telemetry('"[:::]:80"')).toBe('telemetry: not an IPv6 address');
    expect(telemetry('unix:run/a')).toBe('telemetry: a Unix socket needs an absolute path');
  });

  test('of two listeners must differ', () => {
    expect(mistakesOfLine('listen: localhost:1\ntelemetry: localhost:1')).toEqual([
      'telemetry: the same address as listen',
    ]);
    expect(mistakesOfLine('listen: localhost:0\ntelemetry: localhost:0')).toEqual([]);
  });

  test('of the admin port must be loopback, or need a token', () => {
    for (const own of ['127.0.0.1:1', '127.9.9.9:1', 'localhost:1', '"[::1]:1"', '"[::ffff:127.0.0.1]:1"', 'unix:/a']) {
      expect(mistakesOfLine(`admin: ${own}`)).toEqual([]);
    }
    const message = 'an address that other machines can reach needs a token: {listen, token}';
    expect(mistakesOfLine('admin: "[::]:1"')).toEqual([`admin: ${message}`]);
    expect(mistakesOfLine('admin: {listen: example.com:1}')).toEqual([`admin.listen: ${message}`]);
    expect(mistakesOfLine('admin: {listen: example.com:1, token: 0123456789abcdef}')).toEqual([]);
    expect(mistakesOfLine('admin: {listen: localhost:1, token: short}')).toEqual([
      'admin.token: must be at least 16 characters',
    ]);
    expect(mistakesOfLine('admin: {listn: localhost:1}')).toEqual(['admin.listn: unknown key (did you mean listen?)']);
    expect(mistakesOfLine('admin: true')).toEqual(['admin: expected host:port, {listen, token} or false']);
  });

  test('of trusted proxies must be addresses or blocks', () => {
    expect(
      mistakesOfLine('clients: {trustedProxies: [10.0.0.1, 10.0.0.0/8, fd00::/8, 10.0.0.0/33, 10.1, lan, ::/129]}'),
    ).toEqual([
      'clients.trustedProxies[3]: the prefix length of this address is from 0 to 32',
      'clients.trustedProxies[4]: expected an address, a block such as 10.0.0.0/8 or fd00::/8, or unix',
      'clients.trustedProxies[5]: expected an address, a block such as 10.0.0.0/8 or fd00::/8, or unix',
      'clients.trustedProxies[6]: the prefix length of this address is from 0 to 128',
    ]);
  });

  test('of upstreams must be origins', () => {
    const url = (text: string): string =>
      mistakesOf(`upstreams: {api: {url: ${text}}}`)
        .join()
        .replace(/^.*?url: /, '');
    const origin = 'only an origin, without path, query or fragment (for a path, set rewritePrefix of the route)';
    expect(url('https://a/v1')).toBe(`${origin} (did you mean https://a?)`);
    expect(url('https://a?x')).toBe(`${origin} (did you mean https://a?)`);
    expect(url('localhost:3000')).toBe(
      'expected an http or https URL such as https://api.example.com (did you mean http://localhost:3000?)',
    );
    expect(url('ftp://a')).toBe('expected an http or https URL such as https://api.example.com');
    expect(url('"http://"')).toBe('expected an http or https URL such as https://api.example.com');
    expect(url('practice')).toBe('needs the section practice, which configures this upstream');
  });

  const EXPECTED = 'expected an http or https URL such as https://api.example.com';
  const ONLY_ORIGIN = 'only an origin, without path, query or fragment (for a path, set rewritePrefix of the route)';
  const SOCKET = 'a Unix socket is written unix:/path, with nothing after the path';
  test.each([
    // Without a scheme, or with an unknown one.
    ['ollama:11434', EXPECTED, 'http://ollama:11434'],
    ['redis:6379', EXPECTED, 'http://redis:6379'],
    ['localhost', EXPECTED, 'http://localhost'],
    ['localhost:3000/', EXPECTED, 'http://localhost:3000'],
    ['10.0.0.1:8080', EXPECTED, 'http://10.0.0.1:8080'],
    ['::1', EXPECTED, 'http://[::1]'],
    ['[::1]:3000', EXPECTED, 'http://[::1]:3000'],
    ['http://::1:3000', EXPECTED, 'http://[::1]:3000'],
    ['3000', EXPECTED, 'http://localhost:3000'],
    [':3000', EXPECTED, 'http://localhost:3000'],
    ['http:3000', EXPECTED, 'http://localhost:3000'],
    ['app.payments.svc.cluster.local:80', EXPECTED, 'http://app.payments.svc.cluster.local:80'],
    ['host.docker.internal:11434', EXPECTED, 'http://host.docker.internal:11434'],
    ['api.example.com:8443', EXPECTED, 'https://api.example.com:8443'],
    ['api.example.com:80', EXPECTED, 'http://api.example.com:80'],
    ['tcp://app:80', EXPECTED, 'http://app:80'],
    ['tcp://api.example.com:443', EXPECTED, 'https://api.example.com:443'],
    ['ws://app', EXPECTED, 'http://app'],
    ['WSS://app', EXPECTED, 'https://app'],
    ['//app', EXPECTED, 'http://app'],
    ['//api.example.com', EXPECTED, 'https://api.example.com'],
    // With a path that other programs would append.
    [
      'http://$host:3000',
      'shell variables are not expanded: only variables of the environment are read, written with braces',
      undefined,
    ],
    ['http://h.test:abc', 'a port is from 1 to 65535', undefined],
    // With a typo in the scheme.
    ['http:/app', EXPECTED, 'http://app'],
    ['http:app', EXPECTED, 'http://app'],
    ['Http:app:80', EXPECTED, 'http://app:80'],
    ['http:///app', EXPECTED, 'http://app'],
    [String.raw`http:\\app`, EXPECTED, 'http://app'],
    ['http//app', EXPECTED, 'http://app'],
    ['https;//app', EXPECTED, 'https://app'],
    ['htp://app', EXPECTED, 'http://app'],
    ['httsp://app', EXPECTED, 'https://app'],
    [' http://app', EXPECTED, 'http://app'],
    ['http://app ', EXPECTED, 'http://app'],
    ['http: //app', EXPECTED, 'http://app'],
    ['"http://app"', EXPECTED, 'http://app'],
    // With more than an origin.
    ['https://app:99/v1?q', ONLY_ORIGIN, 'https://app:99'],
    ['https://app#x', ONLY_ORIGIN, 'https://app'],
    ['http://http://app', ONLY_ORIGIN, 'http://app'],
    ['app/v1', `${EXPECTED}: ${ONLY_ORIGIN}`, 'http://app'],
    ['ollama:11434/api', `${EXPECTED}: ${ONLY_ORIGIN}`, 'http://ollama:11434'],
    ['//app:80/x', `${EXPECTED}: ${ONLY_ORIGIN}`, 'http://app:80'],
    // Unix sockets in the syntax of other programs.
    ['http://unix:/run/a.sock:/', SOCKET, 'unix:/run/a.sock'],
    ['http://unix:/run/a.sock', SOCKET, 'unix:/run/a.sock'],
    ['HTTP://unix:/run/a.sock:/v1?x', SOCKET, 'unix:/run/a.sock'],
    ['unix:/run/a.sock:/', SOCKET, 'unix:/run/a.sock'],
    ['unix:/run/a.sock:', SOCKET, 'unix:/run/a.sock'],
    ['UNIX:/run/a.sock', SOCKET, 'unix:/run/a.sock'],
    ['http+unix://%2Frun%2Fa.sock/v1', SOCKET, 'unix:/run/a.sock'],
    ['unix:run/a.sock', 'a Unix socket needs an absolute path', 'unix:/run/a.sock'],
    ['/run/a.sock', EXPECTED, 'unix:/run/a.sock'],
    ['file:///run/a.sock', EXPECTED, 'unix:/run/a.sock'],
    // Without a suggestion.
    ['nowhere', EXPECTED, undefined],
    ['redis://app', EXPECTED, undefined],
    ['mailto:me', EXPECTED, undefined],
    ['http://a b', EXPECTED, undefined],
    ['http://[::1', EXPECTED, undefined],
    ['http://a:x', 'a port is from 1 to 65535', undefined],
    ['http://a:0', 'a port is from 1 to 65535', undefined],
    ['http://a:65536', 'a port is from 1 to 65535', undefined],
    ['https://*.example.com', 'a host must not contain a wildcard', undefined],
    ['http://a, http://b', 'expected one URL; for several endpoints write urls: [...]', undefined],
    ['a:1,b:2', 'expected one URL; for several endpoints write urls: [...]', undefined],
    ['http://user:password@app', 'a URL must not contain credentials: clients send their own', undefined],
    ['user:password@app:80', 'a URL must not contain credentials: clients send their own', undefined],
    ['http:user:password@app', 'a URL must not contain credentials: clients send their own', undefined],
  ])('of an upstream get a suggestion: %j', (text, message, suggestion) => {
    const hint = suggestion === undefined ? '' : ` (did you mean ${suggestion}?)`;
    expect(mistakesOf(`upstreams: {api: {url: ${JSON.stringify(text)}}}`)).toEqual([
      `tidegate.yaml:1:24 upstreams.api.url: ${message}${hint}`,
    ]);
    // The suggestion itself is accepted.
    if (suggestion !== undefined) expect(mistakesOf(`upstreams: {api: {url: "${suggestion}"}}`)).toEqual([]);
  });

  test('of an upstream that are only a port get a suggestion', () => {
    expect(mistakesOf('upstreams: {api: {url: 3000}}')).toEqual([
      `tidegate.yaml:1:24 upstreams.api.url: ${EXPECTED} (did you mean http://localhost:3000?)`,
    ]);
  });
});

describe('consistency between settings', () => {
  test('rates must be in order', () => {
    expect(mistakesOfUpstream('rateLimit: {minRate: 5/s, maxRate: 1/s, initialRate: 3/s}')).toEqual([
      'rateLimit.maxRate: below minRate',
      'rateLimit.initialRate: above maxRate',
      'rateLimit.initialRate: below minRate',
    ]);
    expect(mistakesOfUpstream('rateLimit: {maxRate: 100/h}')).toEqual([
      'rateLimit.maxRate: below minRate (0.1/s unless written)',
    ]);
  });

  test('latency is learned from where all requests in flight are known', () => {
    expect(mistakesOfUpstream('rateLimit: {learnFromLatency: true}')).toEqual([]);
    expect(mistakesOfUpstream('rateLimit: {learnFromLatency: true, scope: client}')).toEqual([
      'rateLimit.learnFromLatency: only with scope upstream: a queue is that of all requests',
    ]);
    const store = 'state: {store: redis, url: "redis://:p@127.0.0.1", secret: s}';
    const withRedis = mistakesOf(`${store}\nupstreams: {api: {url: http://a, rateLimit: {learnFromLatency: true}}}`);
    expect(withRedis).not.toContainEqual(expect.stringContaining('learnFromLatency'));
  });

  test('intervals must be in order, also with the inherited settings of an override', () => {
    expect(mistakesOfUpstream('retry: {backOff: {baseInterval: 30s}}')).toEqual([
      'retry.backOff.baseInterval: maxInterval is below baseInterval',
    ]);
    expect(
      mistakesOfUpstream(
        'retry: {backOff: {maxInterval: 50ms}, backOffFor: {reset: {strategy: doubling, baseInterval: 0}}}',
      ),
    ).toEqual([
      'retry.backOff.maxInterval: maxInterval is below baseInterval',
      'retry.backOffFor.reset.baseInterval: doubling cannot work with this',
    ]);
    expect(
      mistakesOf(`upstreams: {api: {url: http://a, retry: {backOff: {baseInterval: 1s}}}}
routes: [{upstream: api, retry: {backOff: {maxInterval: 500ms}}}]
clients: {classes: {fast: {match: {key: [f]}, backOff: {maxInterval: 100ms}}}}`),
    ).toEqual([
      'tidegate.yaml:2:57 routes[0].retry.backOff.maxInterval: maxInterval is below baseInterval',
      'tidegate.yaml:3:70 clients.classes.fast.backOff.maxInterval: maxInterval is below baseInterval',
    ]);
  });

  test('checks require an allowed caller and paths of their own', () => {
    const api = 'upstreams: {api: {url: http://a}}\n';
    const trusted = `${api}clients: {trustedProxies: [10.0.0.0/8]}\n`;
    expect(mistakesOf(`${api}check: {}`)).toEqual([
      'tidegate.yaml:2:8 check: needs clients.trustedProxies: the addresses of the proxies that may ask',
    ]);
    expect(mistakesOf(`${trusted}check: {path: /}`)).toEqual([
      'tidegate.yaml:3:15 check.path: would match every request (did you mean /check?)',
    ]);
    expect(mistakesOf(`${trusted}check: {reportPath: /check/report}`)).toEqual([
      'tidegate.yaml:3:21 check.reportPath: is below check.path, so it would never be reached (did you mean /report?)',
    ]);
    expect(mistakesOf(`${trusted}check: {token: short}`)).toEqual([
      expect.stringMatching(/^tidegate.yaml:3:16 check.token: /),
    ]);
    expect(mistakesOf(`${trusted}routes: [{upstream: api, check: only}]`)).toEqual([
      'tidegate.yaml:3:33 routes[0].check: needs the section check, which configures checks',
    ]);
    expect(mistakesOf(`${trusted}routes: [{upstream: api, check: olny}]\ncheck: {}`)).toEqual([
      expect.stringContaining('routes[0].check'),
    ]);
  });

  test('gRPC checks over TLS need the HTTP/2 connections for themselves', () => {
    const tls = 'listen: {address: "127.0.0.1:8443", tls: {cert: a.pem, key: a.pem}, http2: true}\n';
    const rest = 'upstreams: {api: {url: http://a}}\nclients: {trustedProxies: [10.0.0.0/8]}\ncheck: {grpc: true}';
    expect(mistakesOf(tls + rest)).toContain(
      'tidegate.yaml:4:15 check.grpc: needs listen.http2: false with TLS: connections over HTTP/2 would be either those of clients or those of Envoy',
    );
  });

  test('the fields of descriptors are those of a request', () => {
    const rest = 'upstreams: {api: {url: http://a}}\nclients: {trustedProxies: [10.0.0.0/8]}\n';
    expect(mistakesOf(`${rest}check: {grpc: true, descriptors: {tenant: "header:x-tenant", tier: ignore}}`)).toEqual(
      [],
    );
    expect(mistakesOf(`${rest}check: {grpc: true, descriptors: {tenant: header}}`)).toEqual([
      expect.stringContaining(
        'check.descriptors.tenant: expected method, path, host, address, route, upstream, ignore or header:NAME',
      ),
    ]);
  });

  test('more than one upstream requires routes', () => {
    expect(mistakesOf('upstreams: {a: {url: http://a}, b: {url: http://b}}')).toEqual([
      'tidegate.yaml:1:1 routes: at least one route is needed where there is more than one upstream',
    ]);
  });

  test('a method of a path has one route, beside a route for all methods', () => {
    expect(mistakesOfLine('routes: []').length).toBe(1);
    const routes = (list: string): string[] => mistakesOf(`upstreams: {a: {url: http://a}}\nroutes: [${list}]`);
    expect(routes('{upstream: a, methods: [GET]}, {upstream: a}')).toEqual([]);
    expect(routes('{upstream: a, methods: [GET, PUT]}, {upstream: a, methods: [POST, GET]}')).toEqual([
      'tidegate.yaml:2:46 routes[1]: the same host, path and method as routes[0]',
    ]);
  });

  test('a certificate requires its key, and the reverse', () => {
    expect(mistakesOfUpstream('tls: {cert: a.pem}')).toEqual(['tls.cert: cert and key are needed together']);
    expect(mistakesOfUpstream('tls: {key: a.pem}')).toEqual(['tls.key: cert and key are needed together']);
    expect(mistakesOfUpstream('tls: {cert: a.pem, key: a.pem}')).toEqual([]);
  });

  test('certificates and keys must be PEM, or existing files', () => {
    expect(
      mistakesOf(`upstreams:
  pay:
    url: https://a
    tls: {ca: /nope.crt, cert: der.pem, key: /locked}
`),
    ).toEqual([
      'tidegate.yaml:4:15 upstreams.pay.tls.ca: cannot be read: no such file',
      'tidegate.yaml:4:32 upstreams.pay.tls.cert: not a PEM file: it contains no -----BEGIN',
      'tidegate.yaml:4:46 upstreams.pay.tls.key: cannot be read: permission denied',
    ]);
    expect(mistakesOfUpstream('tls: {ca: "-----BEGIN CERTIFICATE-----"}')).toEqual([
      'tls.ca: contains no readable certificate',
    ]);
    expect(mistakesOfUpstream('tls: {ca: a.pem, cert: a.pem, key: a.pem}')).toEqual([]);
  });

  test('a key must match its certificate, and be decryptable', () => {
    const pem = (text: string): string => JSON.stringify(text);
    const tls = (key: string, more = ''): string[] =>
      mistakesOfLine(`listen: {address: localhost:1, tls: {cert: ${pem(PEM)}, key: ${pem(key)}${more}}}`);
    expect(tls(PEM)).toEqual([]);
    expect(tls(PEM, ', passphrase: not needed')).toEqual([]);
    expect(tls(makePem())).toEqual(['listen.tls.key: does not belong to the certificate']);
    expect(tls('-----BEGIN PRIVATE KEY-----')).toEqual(['listen.tls.key: contains no readable private key']);
    const locked = createPrivateKey(PEM).export({
      type: 'pkcs8',
      format: 'pem',
      cipher: 'aes-256-cbc',
      passphrase: 'open',
    });
    expect(tls(String(locked), ', passphrase: open')).toEqual([]);
    expect(tls(String(locked))).toEqual(['listen.tls.key: is encrypted: set passphrase']);
    expect(tls(String(locked), ', passphrase: wrong')).toEqual(['listen.tls.key: the passphrase does not decrypt it']);
    // With one wrong passphrase in 256, OpenSSL decrypts without an error, but the result is no key.
    expect(tls(String(locked), `, passphrase: ${findSeemingPassphrase(locked)}`)).toEqual([
      'listen.tls.key: the passphrase does not decrypt it',
    ]);
  });

  test('a listener needs its required settings', () => {
    expect(mistakesOfLine('listen: {tls: {}}')).toEqual([
      'listen.address: missing',
      'listen.tls.cert: missing',
      'listen.tls.key: missing',
    ]);
    expect(mistakesOfLine('listen: {adress: localhost:1}')).toEqual([
      'listen.adress: unknown key (did you mean address?)',
    ]);
    expect(mistakesOfLine('listen: {address: localhost:1, http2: true}')).toEqual([
      'listen.http2: needs tls: {cert, key}, because HTTP/2 is agreed on in the TLS handshake',
    ]);
    expect(mistakesOfLine('listen: {address: localhost:1, permissions: "0660"}')).toEqual([
      'listen.permissions: only for a Unix socket: this is a TCP address',
    ]);
    expect(mistakesOfLine('admin: {listen: localhost:1, permissions: "0660"}')).toEqual([
      'admin.permissions: only for a Unix socket: this is a TCP address',
    ]);
    expect(mistakesOfLine('listen: {address: "unix:/run/x", permissions: 0660}')).toEqual([
      'listen.permissions: expected text, got a number (put it in quotes)',
    ]);
    expect(mistakesOfLine('listen: {address: "unix:/run/x", permissions: "0999"}')).toEqual([
      'listen.permissions: expected permissions in octal, such as "0660"',
    ]);
    expect(mistakesOfLine('listen: {address: "unix:/run/x", permissions: "0660"}')).toEqual([]);
  });

  test('an upstream with HTTP/2 requires TLS', () => {
    expect(mistakesOfUpstream('http2: true')).toEqual([]);
    for (const url of ['http://a', 'unix:/run/a']) {
      expect(mistakesOf(`upstreams: {a: {url: "${url}", http2: true}}`)).toEqual([
        expect.stringMatching(/upstreams\.a\.http2: needs an https url/),
      ]);
    }
  });

  test('one mistake does not hide another of the same upstream', () => {
    expect(mistakesOfUpstream('tmieout: 5s, rateLimit: {minRate: 5/s, maxRate: 1/s}')).toEqual([
      'tmieout: unknown key (did you mean timeout?)',
      'rateLimit.maxRate: below minRate',
    ]);
  });
});

describe('a value of the wrong type', () => {
  test('is reported with the expected type', () => {
    expect(mistakesOfLine('forwarded: "yes"')).toEqual(['forwarded: expected true or false, got text']);
    expect(mistakesOfLine('secret: 1234567890123456')).toEqual([
      'secret: expected text, got a number (put it in quotes)',
    ]);
    expect(mistakesOfLine('limits: {connections: 1.5}')).toEqual([
      'limits.connections: expected a whole number, got a fraction',
    ]);
    expect(mistakesOfLine('limits: {connections: .inf}')).toEqual([
      'limits.connections: expected a number, got a number that is not finite',
    ]);
    expect(mistakesOfLine('limits: {connections: 0}')).toEqual(['limits.connections: must be at least 1']);
    expect(mistakesOfLine('limits: 5')).toEqual(['limits: expected a mapping, got a number']);
    expect(mistakesOfLine('clients: {key: ip}')).toEqual(['clients.key: expected a list, got text']);
    expect(mistakesOfLine('clients: {key: []}')).toEqual(['clients.key: must not be empty']);
    expect(mistakesOfUpstream('retry: {backOff: {jitter: 2}}')).toEqual(['retry.backOff.jitter: must be at most 1']);
    expect(mistakesOfUpstream('idempotency: {header: "a b"}')).toEqual(['idempotency.header: not a header name']);
    expect(mistakesOfUpstream('idempotency: {header: true}')).toEqual([
      'idempotency.header: expected the name of a header, or false',
    ]);
  });

  test('in client keys', () => {
    const expected = 'expected header:NAME, bearer, ip or path:N';
    expect(mistakesOfLine('clients: {key: [x-api-key, "path:0", addr, beerer]}')).toEqual([
      `clients.key[0]: ${expected} (did you mean header:x-api-key?)`,
      `clients.key[1]: ${expected} (did you mean path:1?)`,
      `clients.key[2]: ${expected}`,
      `clients.key[3]: ${expected} (did you mean bearer?)`,
    ]);
  });

  test('in client names', () => {
    expect(mistakesOfLine('clients: {names: {shop: [], "a b": [x], office: x}}')).toEqual([
      'clients.names.shop: must not be empty',
      'clients.names["a b"]: a name starts with a letter, and has at most 64 letters, digits, ".", "_" and "-"',
      'clients.names.office: expected a list, got text',
    ]);
    const many = Array.from({ length: 101 }, (_, i) => `c${i}: [k${i}]`).join(', ');
    expect(mistakesOfLine(`clients: {names: {${many}}}`)).toEqual([
      'clients.names: at most 100 names: each adds several time series to the metrics',
    ]);
  });

  test('in classes', () => {
    expect(
      mistakesOfLine('clients: {classes: {c: {match: {}}, d: {match: {header: {x-a: 1, "a b": x}}}, "e f": {}}}'),
    ).toEqual([
      'clients.classes.c.match: needs header or key: with neither, it would match every request',
      'clients.classes.d.match.header.x-a: expected text, got a number (put it in quotes)',
      'clients.classes.d.match.header["a b"]: not a header name',
      'clients.classes["e f"].match: missing',
      'clients.classes["e f"]: a name starts with a letter, and has at most 64 letters, digits, ".", "_" and "-"',
    ]);
  });

  test('in routes', () => {
    const route = (flow: string): string =>
      mistakesOf(`upstreams: {api: {url: http://a}}
routes: [{upstream: api, ${flow}}]`)
        .join()
        .replace(/^.*?routes\[0\]\./, '');
    expect(route('path: /v1*')).toBe('path: a path already matches as a prefix: leave out the * (did you mean /v1?)');
    expect(route('path: "/v1?x"')).toBe('path: a path has no query, fragment, space, backslash or wildcard');
    expect(route('path: /v1/../x')).toBe('path: a path has no // and no dot segments');
    expect(route('host: "https://a.example:443/"')).toBe(
      'host: expected a host name without scheme, port or wildcard (did you mean a.example?)',
    );
    expect(route('methods: [get]')).toBe('methods[0]: not a method that this proxy accepts (did you mean GET?)');
    expect(route('methods: [CONNECT]')).toBe('methods[0]: not a method that this proxy accepts');
    expect(route('retry: {budget: {ratio: 1}}')).toBe('retry.budget: unknown key');
  });

  test('in the practice upstream', () => {
    expect(mistakesOfLine('practice: {limit: {kind: token-buckt, rate: 1/s}}')).toEqual([
      'practice.limit.kind: expected one of token-bucket, gcra, fixed-window, sliding-window, sliding-window-counting, blackout, concurrency, unlimited, workers (did you mean token-bucket?)',
    ]);
    expect(mistakesOfLine('practice: {limit: {rate: 1/s}}')).toEqual(['practice.limit.kind: missing']);
    expect(mistakesOfLine('practice: {limit: {kind: gcra, limit: 5}}')).toEqual([
      'practice.limit.rate: missing',
      'practice.limit.limit: allowed only with kind: fixed-window or sliding-window or sliding-window-counting or concurrency',
    ]);
  });

  test('in nested limits', () => {
    expect(mistakesOfUpstream('limits: [{name: Endpoint}]')).toEqual([
      'limits[0].name: the name of a limit has 1 to 64 characters of a-z, 0-9, _ and -, and starts with a letter or digit',
    ]);
    expect(mistakesOfUpstream('limits: [{name: a, match: {path: v1/charges}}]')).toEqual([
      'limits[0].match.path: a path pattern begins with a slash (did you mean /v1/charges?)',
    ]);
    expect(mistakesOfUpstream('limits: [{name: a, match: {path: [/v1/**/x, "/v1/{A}"]}}]')).toEqual([
      'limits[0].match.path[0]: ** stands for the rest: only at the end',
      'limits[0].match.path[1]: * and {name} stand for a whole segment, as does {name=a|b}; a name is of a-z, 0-9, _ and -',
    ]);
    expect(mistakesOfUpstream('limits: [{name: a, match: {path: ["/v1/{x}", "/v1/{y}/**"]}}]')).toEqual([
      'limits[0].match.path[1]: names other segments than the first pattern: all patterns of a limit must name the same segments in the same order, unless each contains path',
    ]);
    expect(mistakesOfUpstream('limits: [{name: a}, {name: a}]')).toEqual([
      'limits[1].name: limits[0] already has this name',
    ]);
    expect(mistakesOfUpstream('limits: [{name: a, initialRate: 30/s, maxRate: 25/s}]')).toEqual([
      'limits[0].initialRate: above maxRate',
    ]);
    expect(mistakesOfUpstream('limits: [{name: a, match: {method: GETT}}]')).toEqual([
      expect.stringContaining('limits[0].match.method: '),
    ]);
    expect(mistakesOfUpstream('limits: [{name: a, each: [json:item]}]')).toEqual([
      'limits[0].each[0]: expected method or path',
    ]);
  });
});

describe('variables and files', () => {
  test('are reported at the reference if they do not exist', () => {
    expect(
      mistakesOf(`listen: \${NOWHERE}
secret: "\${file:/absent}"
admin: {listen: localhost:1, token: "\${file:/locked}"}
upstreams:
  api: {url: "http://\${SET}.\${NOWHERE}/\${BAD NAME}"}
  other: {url: "http://\${SET"}
routes: [{upstream: "\${file:relative}"}]
`),
    ).toEqual([
      'tidegate.yaml:1:9 listen: the variable NOWHERE is not set',
      'tidegate.yaml:2:10 secret: cannot read /absent: no such file',
      'tidegate.yaml:3:38 admin.token: cannot read /locked: permission denied',
      'tidegate.yaml:5:29 upstreams.api.url: the variable NOWHERE is not set',
      'tidegate.yaml:5:40 upstreams.api.url: expected ${NAME} or ${file:/path} (write $${ for a literal ${)',
      'tidegate.yaml:6:24 upstreams.other.url: a ${ without a closing } (write $${ for a literal ${)',
      'tidegate.yaml:7:22 routes[0].upstream: expected ${NAME} or ${file:/path} (write $${ for a literal ${)',
    ]);
  });
});
