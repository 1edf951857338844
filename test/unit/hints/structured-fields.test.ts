/** Lists and Dictionaries of RFC 9651, as far as the RateLimit fields need them. */
import { describe, expect, test } from 'vitest';
import { parseMembers } from '../../../src/core/hints/structured-fields.ts';

describe('structured fields', () => {
  test('have strings unescaped, tokens and numbers read, and other types without a value', () => {
    const values = parseMembers('"a\\"b\\\\", tok/en:*, -1.5, ?1, :YQ==:, @-1, %"%c3"')?.map((member) => member.value);
    expect(values).toEqual(['a"b\\', 'tok/en:*', -1.5, undefined, undefined, undefined, undefined]);
  });

  test('have -0 read as 0, which prevents a division by it', () => {
    expect(parseMembers('-0')?.[0]?.value).toBe(0);
  });

  test.each(['', ' ', ' \t '])('have no members if they are empty: %j', (field) => {
    expect(parseMembers(field)).toEqual([]);
  });

  test.each<[string, number | string | undefined]>([
    ['0', 0],
    ['-12', -12],
    ['12.25', 12.25],
    ['18446744073709551615', 2 ** 64],
    ['""', ''],
    ['"a b"', 'a b'],
    ['"[]~!#"', '[]~!#'],
    ['"\\"\\\\"', '"\\'],
    ['a', 'a'],
    ['*', '*'],
    ["Z0!#$%&'*+.^`|~:/-_", "Z0!#$%&'*+.^`|~:/-_"],
    ['::', undefined],
    [':aZ09+/=:', undefined],
    ['?0', undefined],
    ['@1659578233', undefined],
    ['@-15', undefined],
    ['%""', undefined],
    ['%"f%c3%bc !"', undefined],
  ])('have an item of %s with the value %j', (field, value) => {
    expect(parseMembers(field)).toEqual([{ key: undefined, value, parameters: new Map() }]);
    expect(parseMembers(`k=${field}`)).toEqual([{ key: 'k', value, parameters: new Map() }]);
    expect(parseMembers(`1;p=${field};q`)).toEqual([
      {
        key: undefined,
        value: 1,
        parameters: new Map<string, unknown>([...[['p', value] as const], ['q', undefined]]),
      },
    ]);
  });

  test.each<[string, string[]]>([
    ['1,2', ['1', '2']],
    ['\t 1 \t ,\t  2\t ', ['1', '2']],
    ['1;a;b , 2', ['1 a b', '2']],
    ['1;   a;  b=7', ['1 a b']],
    ['1;a=7;a=8', ['1 a']],
    ['1;*a_.-*9=7', ['1 *a_.-*9']],
    ['a=1, *b_.-*9=2;c', ['a 1', '*b_.-*9 2 c']],
    ['a=1, 2', ['a 1', '2']],
  ])('have the members and parameters of %j', (field, members) => {
    const read = parseMembers(field)?.map(({ key, value, parameters }) =>
      [...(key === undefined ? [] : [key]), value, ...parameters.keys()].join(' '),
    );
    expect(read).toEqual(members);
  });

  test('have the last of equal parameters', () => {
    expect(parseMembers('1;a=7;a=8')?.[0]?.parameters).toEqual(new Map([['a', 8]]));
  });

  test.each([
    ...[',', ',1', '1,', '1, ', '1,,2', '1 2', '1;', '1; ', '1;;a', '1;A', '1;9', '1;a=', '1;a=;b', '1;a= 7', '1 ;a'],
    ...['1;\ta', ';a', ' ;a', 'a=', 'a=,1', 'A=1', '=1', '-', '--1', '1.', '.5', '+1', '1x', '"a', 'a"', '"a\\x"'],
    ...['"\u007F"', '"\u00E9"', '\u00E9', ':a', ':a-:', '?2', '?', '@', '@x', '@1234567890123456', '%"a', '%a'],
    ...['("p";r=1)', '()', '1;a=(2)', '9a', '!a'],
  ])('are malformed as a whole: %j', (field) => {
    expect(parseMembers(field)).toBeUndefined();
    expect(parseMembers(`1, ${field}`)).toBeUndefined();
  });

  test('are not read beyond 4096 characters', () => {
    const token = (length: number) => `t${'x'.repeat(length - 1)}`;
    expect(parseMembers(token(4096))).toHaveLength(1);
    expect(parseMembers(token(4097))).toBeUndefined();
  });
});
