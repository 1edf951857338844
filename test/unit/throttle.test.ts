import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { compileThrottle } from '../../src/config/compile/compile-throttle.ts';
import { loadConfig } from '../../src/config/load/load-config.ts';
import { formatMistakes } from '../../src/config/load/mistakes.ts';
import { readHints } from '../../src/core/hints/read-hints.ts';
import type { Hints } from '../../src/core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../src/core/exchange/attempt-outcome.ts';
import { MAX_LOOK, readCodes } from '../../src/http/upstream/error-codes.ts';
import type { Throttle } from '../../src/http/upstream/throttle-rules.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const JSON_BODY = ['Content-Type', 'application/json; charset=utf-8'];

function throttle(yaml: string): Throttle {
  const text = `upstreams: {api: {url: "http://a", limits: [{name: inner}], throttle: ${yaml}}}`;
  const loaded = loadConfig(text, 'f.yaml', { env: {}, readFile: () => '' });
  if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
  const made = compileThrottle(loaded.config.upstreams['api']?.throttle);
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

/** What it makes of an answer; 'look' where it has to see the body first. */
function read(
  made: Throttle,
  { status = 429, method = 'POST', path = '/', headers = [], codes }: Given,
): Hints | 'look' {
  const hints = readHints(status, headers, NOW);
  if (!made.concerns(status, hints)) return hints;
  return made.read({ method, path, status, headers }, hints, codes, NOW) ?? 'look';
}

describe('what an answer means', () => {
  test('is as usual where no rule fits', () => {
    const made = throttle('{answers: [{status: 403, header: {X-Left: "0"}, is: throttled}]}');
    expect(read(made, { status: 200 })).toBe(NO_HINTS);
    expect(read(made, { status: 429 })).toBe(NO_HINTS);
    expect(read(made, { status: 403 })).toBe(NO_HINTS);
    expect(read(made, { status: 403, headers: ['X-Left', '10'] })).toBe(NO_HINTS);
  });

  test('is what the first rule that fits says', () => {
    const made = throttle(
      '{reasonHeader: Why, answers: [{status: 429, reason: [thing, object-*], is: lock}, {status: [429, 403], header: {x-left: "0"}, is: throttled, limit: ""}, {status: 429, path: "/a/**", limit: inner}, {status: 429, method: GET, is: answer}]}',
    );
    expect(read(made, { headers: ['why', 'object-7'] })).toMatchObject({ lock: true, reason: 'object-7' });
    expect(read(made, { status: 403, headers: ['X-LEFT', ' 0 '] })).toMatchObject({ throttled: true, limit: '' });
    expect(read(made, { path: '/a/b/c' })).toEqual({ ...NO_HINTS, limit: 'inner' });
    expect(read(made, { method: 'GET' })).toMatchObject({ throttled: false, lock: false });
    expect(read(made, { method: 'GET', status: 403 })).toBe(NO_HINTS);
  });

  test('says why, in its own words', () => {
    const made = throttle('{reasonHeader: Why, verdictHeader: Again}');
    expect(read(made, { headers: ['Why', 'too-much', 'Again', 'FALSE'] })).toMatchObject({
      reason: 'too-much',
      verdict: 'never',
    });
    expect(read(made, { status: 500, headers: ['Again', 'true'] })).toMatchObject({ verdict: 'retry' });
    // Neither is fit for a label.
    expect(read(made, { headers: ['Why', 'a b', 'Again', 'perhaps'] })).toBe(NO_HINTS);
  });

  test('is looked for in the body only where a code could decide', () => {
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
    ['without a type', { headers: [] }],
    ['of another type', { headers: ['Content-Type', 'text/html'] }],
    ['that is too long', { headers: [...JSON_BODY, 'Content-Length', String(MAX_LOOK + 1)] }],
    ['that is empty', { headers: [...JSON_BODY, 'Content-Length', '0'] }],
    ['that is packed in a way nobody knows', { headers: [...JSON_BODY, 'Content-Encoding', 'pack200'] }],
  ])('is not looked for in an answer %s', (_, given: Given) => {
    expect(read(throttle('{codeField: code, answers: [{status: 429, code: X, is: lock}]}'), given)).toBe(NO_HINTS);
  });
});

describe('when to come back', () => {
  test('is what a header says, in its own format', () => {
    const seconds = String(NOW / 1000 + 20);
    const waits = (format: string, value: string) =>
      read(throttle(`{answers: [{status: 429, wait: {header: When, format: ${format}, plus: 1s}}]}`), {
        headers: ['When', value],
      });
    expect(waits('seconds', '7')).toMatchObject({ retryAfter: 8000 });
    expect(waits('milliseconds', '700')).toMatchObject({ retryAfter: 1700 });
    expect(waits('epoch-seconds', seconds)).toMatchObject({ retryAfter: 21_000 });
    expect(waits('epoch-milliseconds', `${seconds}000`)).toMatchObject({ retryAfter: 21_000 });
    expect(waits('http-date', 'Sun, 22 Nov 2026 12:00:09 GMT')).toMatchObject({ retryAfter: 10_000 });
    for (const nonsense of ['', '-1', 'soon', '1e3']) {
      expect(waits('seconds', nonsense)).toEqual(NO_HINTS);
    }
    expect(waits('epoch-seconds', '5')).toEqual(NO_HINTS); // long ago
    expect(waits('seconds', '9'.repeat(30))).toMatchObject({ retryAfter: 300_000 });
    expect(waits('seconds', '86400')).toMatchObject({ retryAfter: 300_000 });
  });

  test('is the first of them that is there; else what is usual, or a time', () => {
    const made = throttle(
      '{answers: [{status: [200, 429], header: {T: "*"}, is: throttled, wait: [{header: A, format: seconds}, {header: B, format: seconds}, 9s]}]}',
    );
    const refused = (...headers: string[]) => read(made, { headers: ['T', '', ...headers] });
    expect(refused('B', '2', 'A', '1', 'Retry-After', '3')).toMatchObject({ retryAfter: 1000 });
    expect(refused('B', '2', 'Retry-After', '3')).toMatchObject({ retryAfter: 2000 });
    expect(refused('Retry-After', '3')).toMatchObject({ retryAfter: 3000 });
    expect(refused()).toMatchObject({ retryAfter: 9000 });
    // On a 200, Retry-After counts as well, and so do its relatives: it is a refusal.
    for (const name of ['retry-after-ms', 'x-amz-retry-after', 'x-ms-retry-after-ms']) {
      expect(read(made, { status: 200, headers: ['T', '', name, '1500'] })).toMatchObject({ retryAfter: 1500 });
    }
    expect(read(made, { status: 200, headers: ['T', '', 'Retry-After', '3'] })).toMatchObject({ retryAfter: 3000 });
    expect(read(made, { status: 200, headers: ['A', '1'] })).toBe(NO_HINTS);
  });

  test('is not asked of what refuses nothing', () => {
    const made = throttle('{answers: [{status: 403, header: {T: "*"}, wait: 9s}, {status: 409, is: lock, wait: 2s}]}');
    expect(read(made, { status: 403, headers: ['T', ''] })).toEqual(NO_HINTS);
    expect(read(made, { status: 409 })).toMatchObject({ lock: true, retryAfter: 2000 });
  });

  test('holds for a quota that is spent, refusal or not', () => {
    const made = throttle(
      '{answers: [{header: {X-RateLimit-Remaining: "0"}, wait: [{header: X-RateLimit-Reset, format: epoch-seconds, plus: 1s}, 60s]}]}',
    );
    const headers = ['X-RateLimit-Remaining', '0', 'X-RateLimit-Reset', String(NOW / 1000 + 10)];
    expect(read(made, { status: 200, headers })).toMatchObject({ quota: { resetIn: 11_000 }, retryAfter: undefined });
    expect(read(made, { headers })).toMatchObject({ quota: { resetIn: 11_000 }, retryAfter: 11_000 });
    const left = ['X-RateLimit-Remaining', '1', 'X-RateLimit-Reset', String(NOW / 1000 + 10)];
    expect(read(made, { status: 200, headers: left })).toMatchObject({ quota: { resetIn: 10_000 } });
  });
});

describe('the codes of a body', () => {
  const codes = (body: string | Buffer, encoding: string, ...fields: string[]) =>
    readCodes(
      Buffer.from(body),
      encoding,
      fields.map((field) => field.split('.')),
    );

  test('are at their fields, in lists and mappings', () => {
    const body = '{"error":{"code":"A","n":7},"errors":[{"code":"B"},{"extensions":{"code":"C"}},5,null]}';
    expect(
      codes(body, '', 'error.code', 'error.n', 'errors.*.code', 'errors.*.extensions.code', 'errors.0.code'),
    ).toEqual(['A', '7', 'B', 'C', 'B']);
    expect(codes(body, '', 'error', 'constructor.name', '__proto__.x', 'errors.9.code')).toEqual([]);
  });

  test.each(['', '{', '{"code":"A"', 'null', '5', '"code"', '\u0000', '[1', '{"code":null}'])(
    'are none in %j',
    (body) => expect(codes(body, '', 'code')).toEqual([]),
  );

  test('are read past a byte order mark, and in whatever else comes with them', () => {
    expect(codes('\uFEFF{"code":"Ä€"}', '', 'code')).toEqual(['Ä€']);
    expect(codes(Buffer.from('{"x":"\xff\xfe","code":"A"}', 'latin1'), '', 'code')).toEqual(['A']);
    expect(codes(`{"code":"${'x'.repeat(600)}"}`, '', 'code')).toEqual([]);
    expect(codes(`[${'{"c":"A"},'.repeat(1000)}{"c":"B"}]`, '', '*.c')).toHaveLength(32);
  });

  test('are read of a copy where it is packed, and not where it is a bomb or broken', () => {
    expect(codes(gzipSync('{"code":"A"}'), 'GZIP ', 'code')).toEqual(['A']);
    expect(codes(gzipSync(`{"code":"A","x":"${' '.repeat(10_000_000)}"}`), 'gzip', 'code')).toEqual([]);
    expect(codes('{"code":"A"}', 'gzip', 'code')).toEqual([]);
    expect(codes('{"code":"A"}', 'constructor', 'code')).toEqual([]);
    expect(codes('['.repeat(MAX_LOOK), '', 'code')).toEqual([]);
  });
});

describe('mistakes', () => {
  const told = (yaml: string) => {
    const loaded = loadConfig(`upstreams: {a: {url: "http://a", throttle: ${yaml}}}`, 'f', {
      env: {},
      readFile: () => '',
    });
    return loaded.kind === 'mistakes' ? loaded.mistakes.map(({ path, message }) => `${path}: ${message}`) : [];
  };
  const at = 'upstreams.a.throttle.answers[0]';

  test.each([
    ['{answers: [{status: 429, limit: other}]}', `${at}.limit: no limit of limits has this name`],
    ['{answers: [{status: 429}]}', `${at}: says nothing of the answers that fit: is, limit or wait`],
    ['{answers: [{is: lock}]}', `${at}: fits every answer: it needs a condition, such as status`],
    ['{answers: [{code: X, status: 400, is: lock}]}', `${at}.code: needs codeField, which says where a code stands`],
    [
      '{answers: [{reason: X, status: 400, is: lock}]}',
      `${at}.reason: needs reasonHeader, which says where a reason stands`,
    ],
    [
      '{codeField: c, answers: [{code: X, status: 200, is: lock}]}',
      `${at}.is: a lock is a refusal: it needs a status of 400 or more`,
    ],
    [
      '{answers: [{status: [200, 429], is: throttled}]}',
      `${at}.is: would make a refusal of every success: it needs a code, a header, or a status of 400 or more`,
    ],
    ['{answers: [{path: v1, is: answer}]}', `${at}.path: a path pattern begins with a slash`],
    [
      '{codeField: a..b}',
      'upstreams.a.throttle.codeField: expected members of a JSON body, such as error.code or errors.*.code',
    ],
  ])('%s', (yaml, mistake) => expect(told(yaml)).toContain(mistake));
});
