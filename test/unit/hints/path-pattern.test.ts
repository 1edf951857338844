import { describe, expect, test } from 'vitest';
import { makePathPattern, validatePathPattern, segmentsOf } from '../../../src/core/http-semantics/path-pattern.ts';

const match = (pattern: string, path: string) => makePathPattern(pattern).match(segmentsOf(path));

describe('a path pattern', () => {
  test.each([
    ['/v1/charges', '/v1/charges', []],
    ['/v1/charges', '/v1/charges/', []],
    ['/v1/charges', '/v1/charges/ch_1', undefined],
    ['/v1/charges', '/v1/Charges', undefined],
    ['/v1/*', '/v1/charges', []],
    ['/v1/*', '/v1/', undefined],
    ['/v1/*', '/v1/charges/ch_1', undefined],
    ['/v1/*/capture', '/v1/ch_1/capture', []],
    ['/v1/files/**', '/v1/files/a', []],
    ['/v1/files/**', '/v1/files/a/b', []],
    ['/v1/files/**', '/v1/files', undefined],
    ['/**', '/', []],
    ['/**', '/a/b', []],
    ['/', '/', []],
    ['/v1/{resource}', '/v1/charges', ['charges']],
    ['/v1/{resource}/**', '/v1/charges/ch_1/capture', ['charges']],
    ['/{version}/*/{id}', '/v1/charges/ch_1', ['v1', 'ch_1']],
    ['/v1/{resource}', '/v1//', undefined],
    ['/v1/{space=tax|issuing}/{resource}', '/v1/issuing/cards', ['issuing', 'cards']],
    ['/v1/{space=tax|issuing}/{resource}', '/v1/charges/ch_1', undefined],
  ])('matches or not: %s and %s', (pattern, path, captured) => {
    expect(match(pattern, path)).toEqual(captured);
  });

  test.each([
    ['/v1/%63harge', '/v1/charge'],
    ['/v1/charge', '/v1/%63harge'],
    ['/v1/a%7Eb', '/v1/a~b'],
    ['/v1/a%2fb', '/v1/a%2Fb'],
    ['/v1/a%2Fb', '/v1/a%2fb'],
    ['/v1/caf%c3%A9', '/v1/caf%C3%a9'],
    ['/v1/{space=t%61x|a%2fb}', '/v1/tax'],
    ['/v1/{space=t%61x|a%2fb}', '/v1/a%2Fb'],
  ])('treats equivalent escapes as equal: %s and %s', (pattern, path) => {
    expect(match(pattern, path)).toBeDefined();
  });

  test('distinguishes a reserved character from its escape', () => {
    expect(match('/v1/a%2Fb', '/v1/a/b')).toBeUndefined();
    expect(match('/v1/a%3Bb', '/v1/a;b')).toBeUndefined();
    expect(match('/v1/%2A', '/v1/charges')).toBeUndefined();
  });

  test('has one value for a named segment, however its escapes are written', () => {
    expect(match('/v1/{resource}', '/v1/%63%2f')).toEqual(match('/v1/{resource}', '/v1/c%2F'));
  });

  test('is filled in with the named values, without other variable parts', () => {
    const filled = (text: string, path: string) => makePathPattern(text).substitute(match(text, path) ?? []);
    expect(filled('/v1/{resource}/*/{action}', '/v1/charges/ch_1/capture')).toBe('/v1/charges/*/capture');
    expect(filled('/v1/{space=tax|issuing}/**', '/v1/tax/rates/txr_1')).toBe('/v1/tax/**');
  });

  test('lists its segment names and their positions', () => {
    expect(makePathPattern('/{version}/*/{id}')).toMatchObject({ names: ['version', 'id'], positions: [1, 3] });
  });

  test.each([
    ['v1', 'begins with a slash'],
    ['/v1?x', 'no query'],
    ['/v1//x', 'is empty'],
    ['/v1/**/x', 'only at the end'],
    ['/v1/ch_*', 'a whole segment'],
    ['/v1/{Resource}', 'a whole segment'],
    ['/{a}/{a}', 'two segments are called {a}'],
  ])('is rejected: %s', (pattern, message) => {
    expect(validatePathPattern(pattern)).toContain(message);
  });

  test('is accepted if it is valid', () => {
    expect(['/', '/**', '/v1/{resource}/**', '/v1/*/x'].map(validatePathPattern)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});
