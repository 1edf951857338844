import { describe, expect, test } from 'vitest';
import { appendToListField, parseListField } from '../../../src/core/http-semantics/list-field.ts';

describe('the elements of a list', () => {
  test.each([
    [undefined, []],
    ['', []],
    [' \t', []],
    [',', []],
    [' , ,\t,', []],
    ['a', ['a']],
    [' a\t', ['a']],
    ['a,b', ['a', 'b']],
    [' a , ,\tb c ,', ['a', 'b c']],
    [', a', ['a']],
    // No-break space is a byte of a value (obs-text), and no white space.
    ['\xa0, a\xa0', ['\xa0', 'a\xa0']],
    // An unbalanced quote does not hide an element that a later hop has appended.
    ['"a, b', ['"a', 'b']],
  ])('of %j are %j', (field, elements) => {
    expect(parseListField(field)).toEqual(elements);
  });
});

describe('a list that continues', () => {
  test.each([
    ['', 'a', 'a'],
    ['a', '', 'a'],
    ['', '', ''],
    ['a', 'b', 'a, b'],
    ['a', ' , b,, c , ', 'a, b,, c'],
    ['', ', ', ''],
    ['a,b', 'c', 'a,b, c'],
  ])('%j and %j is %j', (list, more, all) => {
    expect(appendToListField(list, more)).toBe(all);
  });
});
