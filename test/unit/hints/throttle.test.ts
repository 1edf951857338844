import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readFile } from '../../../src/cli/read-file.ts';
import { compileThrottleRules } from '../../../src/config/compile/compile-throttle.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import { readHints } from '../../../src/core/hints/read-hints.ts';
import type { Hints } from '../../../src/core/hints/hints.ts';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import { MAX_PREVIEW_BYTES, readErrorCodes } from '../../../src/http/upstream/error-codes.ts';
import type { ThrottleRules } from '../../../src/http/upstream/throttle-rules.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const JSON_BODY = ['Content-Type', 'application/json; charset=utf-8'];

function throttle(yaml: string): ThrottleRules {
  const text = `upstreams: {api: {url: "http://a", limits: [{name: inner}], throttle: ${yaml}}}`;
  const loaded = loadConfig(text, 'f.yaml', { env: {}, readFile: () => '' });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  const { api } = loaded.config.upstreams;
  const made = api === undefined ? undefined : compileThrottleRules(api);
  if (made === undefined) throw new Error('there is no throttle');
  return made;
}

interface Given {
  readonly status?: number;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
  readonly codes?: readonly string[] | undefined;
}

/** The hints of a response, or 'look' if the body has to be read first. */
function read(
  made: ThrottleRules,
  { status = 429, method = 'POST', path = '/', headers = [], codes }: Given,
): Hints | 'look' {
  const hints = readHints(status, headers, NOW);
  if (!made.appliesTo(status, hints)) return hints;
  return made.classify({ method, path, status, headers }, hints, codes, NOW) ?? 'look';
}

describe('the meaning of a response', () => {
  test('is the default if no rule matches', () => {
    const made = throttle('{answers: [{status: 403, header: {X-Left: "0"}, is: throttled}]}');
    expect(read(made, { status: 200 })).toBe(NO_HINTS);
    expect(read(made, { status: 429 })).toBe(NO_HINTS);
    expect(read(made, { status: 403 })).toBe(NO_HINTS);
    expect(read(made, { status: 403, headers: ['X-Left', '10'] })).toBe(NO_HINTS);
  });

  test('is that of the first rule that matches', () => {
    const made = throttle(
      '{reasonHeader: Why, answers: [{status: 429, reason: [thing, object-*], is: lock}, {status: [429, 403], header: {x-left: "0"}, is: throttled, limit: ""}, {status: 429, path: "/a/**", limit: inner}, {status: 429, method: GET, is: answer}]}',
    );
    expect(read(made, { headers: ['why', 'object-7'] })).toMatchObject({ lock: true, reason: 'object-7' });
    expect(read(made, { status: 403, headers: ['X-LEFT', ' 0 '] })).toMatchObject({ throttled: true, limit: '' });
    expect(read(made, { path: '/a/b/c' })).toEqual({ ...NO_HINTS, limit: 'inner' });
    expect(read(made, { method: 'GET' })).toMatchObject({ throttled: false, lock: false });
    expect(read(made, { method: 'GET', status: 403 })).toBe(NO_HINTS);
  });

  test('includes the reason that the rule gives', () => {
    const made = throttle('{reasonHeader: Why, verdictHeader: Again}');
    expect(read(made, { headers: ['Why', 'too-much', 'Again', 'FALSE'] })).toMatchObject({
      reason: 'too-much',
      retryAdvice: 'never',
    });
    expect(read(made, { status: 500, headers: ['Again', 'true'] })).toMatchObject({ retryAdvice: 'retry' });
    // Neither is valid as a label.
    expect(read(made, { headers: ['Why', 'a b', 'Again', 'perhaps'] })).toBe(NO_HINTS);
  });

  test('does not ignore a byte around a header value that Unicode counts as a space', () => {
    const made = throttle('{verdictHeader: Again, answers: [{status: 403, header: {X-Left: "0"}, is: throttled}]}');
    expect(read(made, { status: 403, headers: ['X-Left', '\t0 ', 'Again', ' true '] })).toMatchObject({
      throttled: true,
      retryAdvice: 'retry',
    });
    expect(read(made, { status: 403, headers: ['X-Left', '0\xA0', 'Again', 'true\xA0'] })).toBe(NO_HINTS);
  });

  test('is read from the body only if a code could decide it', () => {
    const made = throttle(
      '{codeField: code, answers: [{status: 429, header: {Why: it}, is: lock}, {status: [200, 429], path: /g, code: LOCKED, is: throttled, limit: inner}]}',
    );
    expect(read(made, { headers: JSON_BODY })).toBe(NO_HINTS); // another path
    expect(read(made, { path: '/g', headers: ['Why', 'it', ...JSON_BODY] })).toMatchObject({ lock: true });
    expect(read(made, { path: '/g', status: 200, headers: JSON_BODY })).toBe('look');
    expect(read(made, { path: '/g', headers: JSON_BODY, codes: ['X', 'LOCKED'] })).toMatchObject({
      throttled: true,
      limit: 'inner',
      reason: 'LOCKED',
    });
    expect(read(made, { path: '/g', headers: JSON_BODY, codes: ['X'] })).toBe(NO_HINTS);
  });

  test.each([
    ['to HEAD', { method: 'HEAD', headers: JSON_BODY }],
    ['without a content type', { headers: [] }],
    ['of another content type', { headers: ['Content-Type', 'text/html'] }],
    ['that is too long', { headers: [...JSON_BODY, 'Content-Length', String(MAX_PREVIEW_BYTES + 1)] }],
    ['that is empty', { headers: [...JSON_BODY, 'Content-Length', '0'] }],
    ['with an unknown content encoding', { headers: [...JSON_BODY, 'Content-Encoding', 'pack200'] }],
  ])('is not read from a response %s', (_, given: Given) => {
    expect(read(throttle('{codeField: code, answers: [{status: 429, code: X, is: lock}]}'), given)).toBe(NO_HINTS);
  });
});

describe('a header that names the limit', () => {
  const quota = (left: number, name: string) => [
    ...['X-RateLimit-Remaining', String(left), 'X-RateLimit-Limit', '1750', 'X-RateLimit-Reset', '60'],
    ...['x-limit-name', name],
  ];
  const made = throttle(
    '{limitHeader: X-Limit-Name, limitNames: {core: "", in: inner}, answers: [{status: 403, header: {X-RateLimit-Remaining: "0"}, is: throttled}, {status: 429, path: /own, limit: inner}]}',
  );

  test.each([
    ['core', ''],
    ['in', 'inner'],
    [' inner ', 'inner'],
    ['constructor', []],
    ['audit_log', []],
  ])('assigns a quota to it: %s', (name, limit) => {
    for (const status of [200, 404]) {
      expect(read(made, { status, headers: quota(7, name) })).toMatchObject({ quotaLimit: limit });
      expect(read(made, { status, headers: quota(7, name) })).not.toHaveProperty('limit');
    }
    expect(read(made, { status: 403, headers: quota(0, name) })).toMatchObject({
      ...{ throttled: true, limit, quotaLimit: limit },
    });
    expect(read(made, { status: 429, headers: quota(0, name) })).toMatchObject({ limit, quotaLimit: limit });
    expect(read(made, { status: 429, headers: ['X-Limit-Name', name] })).toMatchObject({ limit });
  });

  test('is not the cause of a rejection with some of the quota left', () => {
    const hints = read(made, { status: 429, headers: quota(7, 'audit_log') });
    expect(hints).toMatchObject({ quotaLimit: [] });
    expect(hints).not.toHaveProperty('limit');
  });

  test('does not replace the limit of a rule, and has no effect if it is absent or empty', () => {
    const headers = quota(0, 'core');
    expect(read(made, { path: '/own', headers })).toMatchObject({ limit: 'inner', quotaLimit: '' });
    for (const name of ['', ' ']) expect(read(made, { headers: quota(0, name) })).not.toHaveProperty('quotaLimit');
    expect(read(made, { headers: headers.slice(0, 6) })).not.toHaveProperty('quotaLimit');
  });

  test('has no effect for a limit that a reload has removed', () => {
    const text = 'upstreams: {api: {provider: github, limits: [{name: scim}]}}';
    const loaded = loadConfig(text, 'f.yaml', { env: {}, readFile });
    if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
    const rules = compileThrottleRules(loaded.config.upstreams['api']!)!;
    const findLimit = (name: string) =>
      read(rules, { status: 200, headers: [...quota(7, ''), 'X-RateLimit-Resource', name] });
    expect(findLimit('core')).toMatchObject({ quotaLimit: '' });
    // Its preset has a limit of its own for these.
    for (const name of ['search', 'code_search', 'scim']) expect(findLimit(name)).toMatchObject({ quotaLimit: [] });
  });
});

describe('the wait of a throttling response', () => {
  test('is read from a header, in its configured format', () => {
    const seconds = String(NOW / 1000 + 20);
    const waits = (format: string, value: string) =>
      read(throttle(`{answers: [{status: 429, wait: {header: When, format: ${format}, plus: 1s}}]}`), {
        headers: ['When', value],
      });
    expect(waits('seconds', '7')).toMatchObject({ retryAfterMs: 8000 });
    expect(waits('milliseconds', '700')).toMatchObject({ retryAfterMs: 1700 });
    expect(waits('epoch-seconds', seconds)).toMatchObject({ retryAfterMs: 21_000 });
    expect(waits('epoch-milliseconds', `${seconds}000`)).toMatchObject({ retryAfterMs: 21_000 });
    expect(waits('http-date', 'Sun, 22 Nov 2026 12:00:09 GMT')).toMatchObject({ retryAfterMs: 10_000 });
    for (const nonsense of ['', '-1', 'soon', '1e3']) {
      expect(waits('seconds', nonsense)).toEqual(NO_HINTS);
    }
    expect(waits('epoch-seconds', '5')).toEqual(NO_HINTS); // long past
    expect(waits('seconds', '9'.repeat(30))).toMatchObject({ retryAfterMs: 300_000 });
    expect(waits('seconds', '86400')).toMatchObject({ retryAfterMs: 300_000 });
  });

  test.each([
    ['seconds', '30'],
    ['milliseconds', '30000'],
  ])('in %s counts from the time when a cached response was generated', (format, value) => {
    const made = throttle(`{answers: [{status: 429, wait: {header: When, format: ${format}}}]}`);
    expect(read(made, { headers: ['Age', '10', 'When', value] })).toMatchObject({ retryAfterMs: 20_000 });
  });

  test('is the first of the headers, or else the default, or a fixed time', () => {
    const made = throttle(
      '{answers: [{status: [200, 429], header: {T: "*"}, is: throttled, wait: [{header: A, format: seconds}, {header: B, format: seconds}, 9s]}]}',
    );
    const refused = (...headers: string[]) => read(made, { headers: ['T', '', ...headers] });
    expect(refused('B', '2', 'A', '1', 'Retry-After', '3')).toMatchObject({ retryAfterMs: 1000 });
    expect(refused('B', '2', 'Retry-After', '3')).toMatchObject({ retryAfterMs: 2000 });
    expect(refused('Retry-After', '3')).toMatchObject({ retryAfterMs: 3000 });
    expect(refused()).toMatchObject({ retryAfterMs: 9000 });
    // On a 200 that is a refusal, Retry-After and its variants count too.
    for (const name of ['retry-after-ms', 'x-amz-retry-after', 'x-ms-retry-after-ms']) {
      expect(read(made, { status: 200, headers: ['T', '', name, '1500'] })).toMatchObject({ retryAfterMs: 1500 });
    }
    expect(read(made, { status: 200, headers: ['T', '', 'Retry-After', '3'] })).toMatchObject({ retryAfterMs: 3000 });
    expect(read(made, { status: 200, headers: ['A', '1'] })).toBe(NO_HINTS);
  });

  test('is not read from a response that is no refusal', () => {
    const made = throttle('{answers: [{status: 403, header: {T: "*"}, wait: 9s}, {status: 409, is: lock, wait: 2s}]}');
    expect(read(made, { status: 403, headers: ['T', ''] })).toEqual(NO_HINTS);
    expect(read(made, { status: 409 })).toMatchObject({ lock: true, retryAfterMs: 2000 });
  });

  test('applies to a spent quota, refusal or not', () => {
    const made = throttle(
      '{answers: [{header: {X-RateLimit-Remaining: "0"}, wait: [{header: X-RateLimit-Reset, format: epoch-seconds, plus: 1s}, 60s]}]}',
    );
    const headers = ['X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', String(NOW / 1000 + 10)];
    expect(read(made, { status: 200, headers })).toMatchObject({ quota: { resetIn: 11_000 }, retryAfterMs: undefined });
    expect(read(made, { headers })).toMatchObject({ quota: { resetIn: 11_000 }, retryAfterMs: 11_000 });
    const left = ['X-RateLimit-Remaining', '1', 'X-RateLimit-Reset', String(NOW / 1000 + 10)];
    expect(read(made, { status: 200, headers: left })).toMatchObject({ quota: { resetIn: 10_000 } });
  });
});

describe('the codes of a body', () => {
  const codes = (body: string | Buffer, encoding: string, ...fields: string[]) =>
    readErrorCodes(
      Buffer.from(body),
      encoding,
      fields.map((field) => field.split('.')),
    );

  test('are read from their fields, in lists and mappings', () => {
    const body = '{"error":{"code":"A","n":7},"errors":[{"code":"B"},{"extensions":{"code":"C"}},5,null]}';
    expect(
      codes(body, '', 'error.code', 'error.n', 'errors.*.code', 'errors.*.extensions.code', 'errors.0.code'),
    ).toEqual(['A', '7', 'B', 'C', 'B']);
    expect(codes(body, '', 'error', 'constructor.name', '__proto__.x', 'errors.9.code')).toEqual([]);
  });

  test.each(['', '{', '{"code":"A"', 'null', '5', '"code"', '\u0000', '[1', '{"code":null}'])(
    'are absent in %j',
    (body) => expect(codes(body, '', 'code')).toEqual([]),
  );

  test('are read after a byte order mark, and beside other fields', () => {
    expect(codes('\uFEFF{"code":"Ä€"}', '', 'code')).toEqual(['Ä€']);
    expect(codes(Buffer.from('{"x":"\xff\xfe","code":"A"}', 'latin1'), '', 'code')).toEqual(['A']);
    expect(codes(`{"code":"${'x'.repeat(600)}"}`, '', 'code')).toEqual([]);
    expect(codes(`[${'{"c":"A"},'.repeat(1000)}{"c":"B"}]`, '', '*.c')).toHaveLength(32);
  });

  test('are read from a decompressed copy, unless that is too large or broken', () => {
    expect(codes(gzipSync('{"code":"A"}'), 'GZIP ', 'code')).toEqual(['A']);
    expect(codes(gzipSync(`{"code":"A","x":"${' '.repeat(10_000_000)}"}`), 'gzip', 'code')).toEqual([]);
    expect(codes('{"code":"A"}', 'gzip', 'code')).toEqual([]);
    expect(codes('{"code":"A"}', 'constructor', 'code')).toEqual([]);
    expect(codes('['.repeat(MAX_PREVIEW_BYTES), '', 'code')).toEqual([]);
  });
});

describe('mistakes', () => {
  const mistakesOf = (yaml: string) => {
    const loaded = loadConfig(`upstreams: {a: {url: "http://a", throttle: ${yaml}}}`, 'f', {
      env: {},
      readFile: () => '',
    });
    return loaded.kind === 'mistakes' ? loaded.mistakes.map(({ path, message }) => `${path}: ${message}`) : [];
  };
  const at = 'upstreams.a.throttle.answers[0]';

  test.each([
    ['{answers: [{status: 429, limit: other}]}', `${at}.limit: no entry of limits has this name`],
    [
      '{limitHeader: X, limitNames: {core: "", a: other}}',
      'upstreams.a.throttle.limitNames.a: no entry of limits has this name',
    ],
    [
      '{limitNames: {core: ""}}',
      'upstreams.a.throttle.limitNames: needs limitHeader, which names the header with the limit',
    ],
    ['{answers: [{status: 429}]}', `${at}: has no effect: add is, limit or wait`],
    ['{answers: [{is: lock}]}', `${at}: matches every response: add a condition, such as status`],
    ['{answers: [{code: X, status: 400, is: lock}]}', `${at}.code: needs codeField, the path of the code in the body`],
    [
      '{answers: [{reason: X, status: 400, is: lock}]}',
      `${at}.reason: needs reasonHeader, which names the header with the reason`,
    ],
    [
      '{codeField: c, answers: [{code: X, status: 200, is: lock}]}',
      `${at}.is: a lock is an error: it needs a status of 400 or more`,
    ],
    [
      '{answers: [{status: [200, 429], is: throttled}]}',
      `${at}.is: would turn every success into a rejection: add code, header, or a status of 400 or more`,
    ],
    ['{answers: [{path: v1, is: answer}]}', `${at}.path: a path pattern begins with a slash`],
    [
      '{codeField: a..b}',
      'upstreams.a.throttle.codeField: expected members of a JSON body, such as error.code or errors.*.code',
    ],
  ])('%s', (yaml, mistake) => expect(mistakesOf(yaml)).toContain(mistake));
});
