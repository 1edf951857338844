import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { formatEffectiveConfig } from '../../../src/config/load/effective-config.ts';
import { forwardRequestHeaders } from '../../../src/http/headers/forward-headers.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { compileIdempotency } from '../../../src/config/compile/compile-idempotency.ts';

function load(idempotency: string) {
  const text = `upstreams: {pay: {url: "http://pay.example", idempotency: ${idempotency}}}`;
  return loadConfig(text, 'test.yaml', { env: {}, readFile: () => '' });
}

function found(idempotency: string): string[] {
  const loaded = load(idempotency);
  const findings = loaded.kind === 'mistakes' ? loaded.mistakes : loaded.warnings;
  return findings.map(({ path, message, suggestion }) => {
    const meant = suggestion === undefined ? '' : ` (${suggestion}?)`;
    return `${path.replace('upstreams.pay.idempotency', '')}: ${message}${meant}`;
  });
}

function compiled(idempotency: string, endpointCount = 1, mode: 'enforce' | 'observe' = 'enforce') {
  const loaded = load(idempotency);
  if (loaded.kind === 'mistakes') throw new Error(JSON.stringify(loaded.mistakes));
  const { pay } = loaded.config.upstreams;
  if (pay === undefined) throw new Error('no upstream');
  return {
    ...compileIdempotency(pay, { ...loaded.config, mode }, endpointCount),
    effective: formatEffectiveConfig(loaded.config, loaded.substituted),
  };
}

describe('the loader of idempotency settings', () => {
  test.each(['{}', '{jsonField: idempotency_key, header: false}', '{jsonField: a.b}', '{generate: true}'])(
    'accepts %s',
    (text) => {
      expect(found(text)).toEqual([]);
    },
  );

  test.each([
    ['{generate: true, header: false}', '.generate: needs header, to write the key to: a body is never changed'],
    [
      '{generate: true, jsonField: a}',
      '.generate: cannot be combined with jsonField: whether a body has a key is known too late',
    ],
    ['{jsonField: a..b}', '.jsonField: expected the name of a field, or names with dots between: a.b'],
    ['{jsonField: ""}', '.jsonField: expected the name of a field, or names with dots between: a.b'],
    ['{header: false, ttl: 24h}', '.ttl: has no effect: no idempotency key is recognised'],
    ['{header: false, concurrent: refuse}', '.concurrent: has no effect: no idempotency key is recognised'],
    ['{concurrent: queue}', '.concurrent: expected one of wait, refuse, pass'],
  ])('rejects %s', (text, message) => {
    expect(found(text)).toEqual([message]);
  });

  test.each([
    ...['Content-Length', 'Host', 'connection', 'Authorization', 'Transfer-Encoding', 'Cookie', 'Content-Type', 'TE'],
    ...['Upgrade', 'Keep-Alive', 'Proxy-Authorization', 'User-Agent', 'X-Forwarded-For', 'Tidegate-Attempts'],
    ...['X-Request-Id', 'X_Request_Id', 'X-Envoy-Attempt-Count', 'Max-Forwards', 'Prefer', 'Traceparent', 'Baggage'],
  ])('rejects the standard header %s', (header) => {
    const message = 'is a standard header with another meaning, not a key: every write would look safe to retry';
    expect(found(`{header: ${header}}`)).toEqual([`.header: ${message}`]);
  });

  test.each([
    ['', ['has no effect with state.store: memory, which is never lost']],
    ['state: {store: sqlite, file: state.db}', []],
  ])('reports onStoreLost if it has no effect: state %s', (state, messages) => {
    const text = `upstreams: {pay: {url: "http://a.example", idempotency: {onStoreLost: local}}}\n${state}\n`;
    const loaded = loadConfig(text, 'tidegate.yaml', { env: {}, readFile: () => '' });
    expect(loaded.kind === 'mistakes' ? loaded.mistakes : loaded.warnings.map(({ message }) => message)).toEqual(
      messages,
    );
  });

  test.each([
    ['', []],
    ['state: {store: sqlite, file: state.db}', ['needs secret, at the top level: with state.store: sqlite']],
    ['state: {store: redis, url: "redis://:p@a.example"}', ['needs secret, at the top level: with state.store: redis']],
    [`state: {store: sqlite, file: state.db}\nsecret: ${'s'.repeat(32)}`, []],
  ])('requires a secret for replayAnswers with a stored state: %s', (state, messages) => {
    const text = `upstreams: {pay: {url: "http://a.example", idempotency: {replayAnswers: 1h}}}\n${state}\n`;
    const loaded = loadConfig(text, 'tidegate.yaml', { env: {}, readFile: () => '' });
    const found = loaded.kind === 'mistakes' ? loaded.mistakes : [];
    expect(found.map(({ path, message }) => [path, message.split(',').slice(0, 2).join(',')])).toEqual(
      messages.map((message) => ['upstreams.pay.idempotency.replayAnswers', message]),
    );
  });

  test('rejects replayAnswers beyond the time for which keys are remembered', () => {
    const message = 'is longer than a day, after which keys are forgotten if ttl is not known: set ttl too';
    expect(found('{replayAnswers: 25h}')).toEqual([`.replayAnswers: ${message}`]);
    for (const settings of ['{replayAnswers: 24h}', '{replayAnswers: 7d, ttl: 1h}']) {
      expect([settings, found(settings)]).toEqual([settings, []]);
    }
  });

  test.each(['PayPal-Request-Id', 'X-Request-Key', 'X-Idempotency-Key', 'Cko-Idempotency-Key'])(
    'accepts the header %s',
    (header) => {
      expect(found(`{header: ${header}}`)).toEqual([]);
    },
  );

  test('rejects every header that reaches the upstream modified', () => {
    const hop = {
      ...{ via: '1.1 tidegate-x', requestId: 'r', peer: '127.0.0.1', peerIsTrusted: false, proto: 'http' as const },
      ...{ forwarded: true, host: 'pay.example', clientHost: 'here', http2: true, maxForwards: 3 },
    };
    const sent = forwardRequestHeaders(['TE', 'trailers', 'Max-Forwards', '4'], hop).filter((_, i) => i % 2 === 0);
    expect(sent.length).toBeGreaterThan(8);
    for (const header of sent) expect([header, found(`{header: ${header}}`)]).toEqual([header, [expect.any(String)]]);
  });

  test.each([
    ['X-Razorpay-Account', 'the header that names the account'],
    ['X-Tenant', 'a header that identifies clients'],
    ['X-Tier', 'a header that identifies clients'],
  ])('rejects %s, which has another purpose', (header, what) => {
    const clients = 'clients: {key: [header:X-Tenant], classes: {gold: {match: {header: {x-tier: gold}}}}}';
    const text = `${clients}\nupstreams: {pay: {url: "http://pay.example", idempotency: {header: ${header}}}}`;
    expect(loadConfig(text, 'test.yaml', { env: {}, readFile: () => '' })).toMatchObject({
      kind: 'mistakes',
      mistakes: [{ message: expect.stringContaining(`is ${what}`) as unknown }],
    });
  });

  test.each([
    ['X-Api-Key', 'clients: {key: [header:x_api_key]}', '', 'a header that identifies clients'],
    ['x_api_key', 'clients: {key: [header:X-Api-Key]}', '', 'a header that identifies clients'],
    ['X-Tier', 'clients: {classes: {gold: {match: {header: {x_tier: gold}}}}}', '', 'a header that identifies clients'],
    ['X-Acc', '', ', account: header:X_Acc', 'the header that names the account'],
    ['X_Acc', '', ', account: "jwt:x-acc:sub"', 'the header that names the account'],
    ['X-Token', '', '}, rateLimit: {credentialHeader: x_token', 'the credential of the client'],
  ])('rejects %s beside %s%s, because an underscore counts as a hyphen', (header, clients, more, what) => {
    const text = `${clients}\nupstreams: {pay: {url: "http://pay.example", idempotency: {header: ${header}${more}}}}`;
    expect(loadConfig(text, 'test.yaml', { env: {}, readFile: () => '' })).toMatchObject({
      kind: 'mistakes',
      mistakes: [{ message: expect.stringContaining(`is ${what}`) as unknown }],
    });
  });

  test('rejects the header that distinguishes credentials', () => {
    const text =
      'upstreams: {pay: {url: "http://pay.example", rateLimit: {credentialHeader: X-Api-Key}, idempotency: {header: x-api-key}}}';
    const loaded = loadConfig(text, 'test.yaml', { env: {}, readFile: () => '' });
    expect(loaded).toMatchObject({
      kind: 'mistakes',
      mistakes: [
        {
          path: 'upstreams.pay.idempotency.header',
          message: expect.stringContaining('is the credential of the client') as unknown,
        },
      ],
    });
  });

  test('interprets a name with dots as a path through objects', () => {
    expect(compiled('{jsonField: a.b}').jsonField).toEqual(['a', 'b']);
  });

  test.each([
    ['{}', 'idempotency-key', 'header: Idempotency-Key'],
    ['{jsonField: a}', undefined, 'header: false'],
    ['{jsonField: a, header: X-Key}', 'x-key', 'header: X-Key'],
    ['{header: false}', undefined, 'header: false'],
  ])('%s: uses a header beside a field only if it is configured', (text, lower, printed) => {
    const { header, effective } = compiled(text);
    expect(header?.lower).toBe(lower);
    expect(effective).toContain(printed);
  });

  test.each([
    ['stripe, idempotency: {jsonField: a}', false],
    ['stripe, idempotency: {jsonField: a, header: X-Key}', 'X-Key'],
    ['stripe', 'Idempotency-Key'],
    ['square', false],
    ['square, idempotency: {header: X-Key}', 'X-Key'],
    ['square, idempotency: {jsonField: a}', false],
  ])('prefers the configured place of the key to that of the preset: %s', (settings, header) => {
    const text = `upstreams: {pay: {url: "http://pay.example", provider: ${settings}}}`;
    const loaded = loadConfig(text, 'test.yaml', { env: {}, readFile: (file) => readFileSync(file, 'utf8') });
    expect(loaded).toMatchObject({ kind: 'ok', config: { upstreams: { pay: { idempotency: { header } } } } });
  });

  test('generates no key in observe mode', () => {
    expect(compiled('{generate: true}').generates).toBe(true);
    expect(compiled('{generate: true}', 1, 'observe').generates).toBe(false);
  });
});

describe('the lifetime of a key', () => {
  const HOUR = 3_600_000;

  test('may be as long as that of an upstream, beyond the longest timer', () => {
    const { ttlOf, effective } = compiled('{ttl: 45d}');
    expect(ttlOf?.('POST', '/any')).toBe(45 * 24 * HOUR);
    expect(effective).toContain('ttl: 45d');
    expect(compiled('{ttl: 24h}').effective).toContain('ttl: 1d');
    expect(compiled('{ttl: 90s}').effective).toContain('ttl: 90s');
    expect(compiled('{}').ttlOf).toBeUndefined();
  });

  test('depends on path and method: the first match applies', () => {
    const { ttlOf, effective } = compiled(
      '{ttl: [{path: /v2/checkout/**, ttl: 6h}, {path: "/v2/*/refund", method: POST, ttl: 45d}, {path: /v1/payouts, ttl: 30d}]}',
    );
    expect(ttlOf?.('POST', '/v2/checkout/orders')).toBe(6 * HOUR);
    expect(ttlOf?.('POST', '/v2/x/refund')).toBe(45 * 24 * HOUR);
    expect(ttlOf?.('PATCH', '/v2/x/refund')).toBeUndefined();
    expect(ttlOf?.('POST', '/v1/payouts/1')).toBeUndefined();
    expect(effective).toContain('ttl: 6h');
  });

  test.each([
    ['0', 'must be longer than 0'],
    ['0d', 'must be longer than 0'],
    ['24', 'expected a time such as 24h or 45d (24h or 24d?)'],
    ['45 days', 'expected a time such as 24h or 45d (45d?)'],
    ['4000d', 'must be at most 3650d'],
    ['soon', 'expected a time such as 24h or 45d'],
  ])('is rejected if it is %s', (ttl, message) => {
    expect(found(`{ttl: [{path: /, ttl: ${ttl}}]}`)).toEqual([`.ttl[0].ttl: ${message}`]);
  });

  test('rejects an empty list, and a path pattern without a leading slash', () => {
    expect(found('{ttl: []}')).not.toEqual([]);
    expect(found('{ttl: [{path: v1, ttl: 1d}]}')).toEqual(['.ttl[0].path: a path pattern begins with a slash (/v1?)']);
  });
});

describe('the account of a key', () => {
  test.each([
    ['{account: none}', []],
    ['{account: header:X-Account}', [{ kind: 'header', header: 'x-account' }]],
    ['{account: jwt:sub}', [{ kind: 'jwt', header: 'authorization', claims: ['sub'] }]],
    [
      '{account: [header:A, "jwt:X-Assertion:iss|email"]}',
      [
        { kind: 'header', header: 'a' },
        { kind: 'jwt', header: 'x-assertion', claims: ['iss', 'email'] },
      ],
    ],
  ])('%s', (text, account) => {
    expect(compiled(text).account).toEqual(account);
  });

  test('is the documented one of the provider, unless it is configured', () => {
    expect(compiled('{}').account.map(({ header }) => header)).toEqual([
      ...['stripe-account', 'stripe-context', 'x-razorpay-account', 'paypal-auth-assertion'],
    ]);
  });

  test.each(['X-Account', 'header', 'header:', 'jwt:', 'jwt:a:b:c', 'header:a b', 'jwt:X-Y:a|'])(
    '%s is rejected',
    (source) => {
      expect(found(`{account: ${JSON.stringify(source)}}`)).toEqual([expect.stringContaining('.account: expected ')]);
    },
  );

  const expected = 'expected header:NAME, jwt:CLAIM (of the bearer token) or jwt:HEADER:CLAIM';
  test.each([
    ['header:', `${expected}, with a name after the colon (header:Stripe-Account?)`],
    ['header', `${expected}, with a name after the colon (header:Stripe-Account?)`],
    ['jwt:', `${expected}, with a name after the colon (jwt:sub?)`],
    ['jwt::', `${expected}, with a name after the colon (jwt:sub?)`],
    ['heder:', `${expected}, with a name after the colon (header:Stripe-Account?)`],
    ['heder:X-Account', `${expected} (header:X-Account?)`],
    ['X-Account', `${expected} (header:X-Account?)`],
    ['header:a b', expected],
    ['heder:a b', expected],
  ])('has a suggestion that is valid itself: %s', (source, message) => {
    expect(found(`{account: ${JSON.stringify(source)}}`)).toEqual([`.account: ${message}`]);
  });

  test('is printed as it is written', () => {
    const written = '{account: [header:A, "jwt:X-Assertion:iss|email", jwt:sub]}';
    expect(compiled(written).effective).toMatch('account: [header:A, jwt:X-Assertion:iss|email, jwt:sub]');
  });
});

test.each([
  ['pass', 1, false, 'pass'],
  ['pass', 2, true, 'pass'],
  ['pass', 2, false, 'wait'],
  ['refuse', 2, false, 'refuse'],
] as const)('concurrent: %s at %i endpoints with sharesKeys: %s is %s', (concurrent, count, sharesKeys, effective) => {
  const settings = compiled(`{concurrent: ${concurrent}, sharesKeys: ${sharesKeys}}`, count);
  expect(settings.concurrent).toBe(effective);
});
