import { describe, expect, test } from 'vitest';
import { readJsonField } from '../../../src/core/http-semantics/json-field.ts';

function read(text: string, path = 'idempotency_key'): string | undefined {
  return readJsonField(Buffer.from(text), path.split('.'));
}

describe('a field of a JSON body', () => {
  test.each([
    ['{"idempotency_key":"k-1"}', 'k-1'],
    [' \r\n\t{ "a" : [1,{"idempotency_key":"no"}] , "idempotency_key" : "k-1" , "z":{} } \n', 'k-1'],
    ['{"amount":12.5e3,"ok":true,"none":null,"idempotency_key":"k"}', 'k'],
    [String.raw`{"idempotency\u005fkey":"k\u002d1\n\"\\"}`, 'k-1\n"\\'],
    [String.raw`{"a":"}\"idempotency_key\":\"x\"","idempotency_key":"k"}`, 'k'],
    ['{"idempotency_key":"schlüssel-😀"}', 'schlüssel-😀'],
    [String.raw`{"idempotency_key":"\ud83d\ude00"}`, '😀'],
    ['{"nested":{"idempotency_key":"no"},"idempotency_key":"k"}', 'k'],
    ['{"__proto__":{"idempotency_key":"no"},"idempotency_key":"k"}', 'k'],
  ])('is read: %s', (text, value) => {
    expect(read(text)).toBe(value);
  });

  test('may be inside a nested object', () => {
    expect(read('{"a":{"b":{"c":"k"}}}', 'a.b.c')).toBe('k');
    expect(read('{"a":{"c":"no"},"b":{"c":"k"}}', 'b.c')).toBe('k');
    expect(read('{"a":[{"b":"k"}]}', 'a.b')).toBeUndefined();
    expect(read('{"a":{"b":"k"},"a":{}}', 'a.b')).toBeUndefined();
    expect(read('{"a":{"b":"k"},"A":{}}', 'a.b')).toBeUndefined();
    expect(read('{"a":null}', 'a.b')).toBeUndefined();
    expect(read('{}', 'a.b')).toBeUndefined();
    expect(read('{"__proto__":{"b":"k"}}', '__proto__.b')).toBe('k');
    expect(read('{"toString":1}', 'constructor.name')).toBeUndefined();
  });
});

describe('an ambiguous document yields no value', () => {
  test.each([
    ['an empty body', ''],
    ['no JSON', 'idempotency_key=k'],
    ['truncated JSON', '{"idempotency_key":"k"'],
    ['trailing content', '{"idempotency_key":"k"} {}'],
    ['an extra comma', '{"idempotency_key":"k",}'],
    ['a comment', '{/**/"idempotency_key":"k"}'],
    ['single quotes', `{'idempotency_key':'k'}`],
    ['a byte order mark', '\ufeff{"idempotency_key":"k"}'],
    ['a duplicate name', '{"idempotency_key":"k","idempotency_key":"k"}'],
    ['a duplicate name, once escaped', String.raw`{"idempotency_key":"k","idempotency\u005Fkey":"l"}`],
    ['a duplicate name in another case', '{"idempotency_key":"k","Idempotency_Key":"l"}'],
    ['a duplicate name with a long s', '{"request_ref":"k","reque\u017ft_ref":"l"}', 'request_ref'],
    ['a duplicate name with a Kelvin sign', '{"idempotency_key":"k","idempotency_\u212aey":"l"}'],
    ['a duplicate name with an escaped Kelvin sign', String.raw`{"idempotency_key":"k","idempotency_\u212aey":"l"}`],
    ['a duplicate name with a dotted capital I', '{"idempotency_key":"k","\u0130dempotency_key":"l"}'],
    ['a duplicate name with another sigma', '{"\u03c3":"k","\u03c2":"l"}', '\u03c3'],
    ['a duplicate name with a capital sharp s', '{"\u00df":"k","\u1e9e":"l"}', '\u00df'],
    ['a duplicate name up to a NUL', String.raw`{"idempotency_key":"k","idempotency_key\u0000":"l"}`],
    ['the name in another case', '{"Idempotency_key":"k"}'],
    ['a number', '{"idempotency_key":17}'],
    ['null', '{"idempotency_key":null}'],
    ['an object', '{"idempotency_key":{"a":"k"}}'],
    ['an empty string', '{"idempotency_key":""}'],
    ['a NUL in the string', String.raw`{"idempotency_key":"\u0000k"}`],
    ['an unpaired surrogate', String.raw`{"idempotency_key":"k\ud83d"}`],
    ['a list around it', '[{"idempotency_key":"k"}]'],
    ['a text', '"idempotency_key"'],
    ['a line break in the string', '{"idempotency_key":"k\n"}'],
  ])('for %s', (_, text, path = 'idempotency_key') => {
    expect(read(text, path)).toBeUndefined();
  });

  test('for a duplicate name with any letter that has a case variant in Unicode', () => {
    const folding: string[] = [];
    for (let code = 0; code <= 0xffff; code += 1) {
      const letter = String.fromCharCode(code);
      if (/[A-Za-z]/.test(letter) || !/[a-z]/iu.test(letter)) continue;
      folding.push(letter);
      for (const name of 'abcdefghijklmnopqrstuvwxyz') {
        if (!new RegExp(name, 'iu').test(letter)) continue;
        expect(read(`{"${name}":"k","${letter}":"l"}`, name)).toBeUndefined();
      }
    }
    expect(folding).toEqual(['\u017f', '\u212a']);
  });

  test('for bytes that are not UTF-8', () => {
    expect(readJsonField(Buffer.from('{"k":"\xff"}', 'latin1'), ['k'])).toBeUndefined();
    expect(readJsonField(Buffer.from('{"k":"v"}', 'utf16le'), ['k'])).toBeUndefined();
  });

  test('and unbounded nesting neither throws nor takes more than linear time', () => {
    const deep = '['.repeat(30_000) + ']'.repeat(30_000);
    expect(read(`{"a":${deep},"k":"v"}`, 'k')).toBe('v');
    expect(read('['.repeat(60_000), 'k')).toBeUndefined();
    expect(read('{"a":'.repeat(12_000), 'a')).toBeUndefined();
    expect(read(`{"k":"${'\\\\'.repeat(30_000)}"}`, 'k')).toHaveLength(30_000);
  });
});
