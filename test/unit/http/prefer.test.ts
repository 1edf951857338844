import { describe, expect, test } from 'vitest';
import { parsePreferWait, prefersAsync, withoutAsyncPreference } from '../../../src/http/headers/prefer-header.ts';

describe('Prefer: wait', () => {
  test.each([
    ['wait=30', 30],
    ['WAIT=30', 30],
    ['wait = 30', 30],
    ['wait\t=\t30', 30],
    ['wait="30"', 30],
    [String.raw`wait="3\0"`, 30],
    ['wait=030', 30],
    ['respond-async, wait=10', 10],
    ['wait=10, respond-async', 10],
    ['respond-async,wait=10', 10],
    ['return=minimal; foo="some, parameter", wait=7', 7],
    ['foo; bar; baz="a;b=c,wait=9", wait=7', 7],
    ['wait=5; priority=high', 5],
    ['wait=5;', 5],
    [', ,wait=5,,', 5],
    ['foo="", wait=5', 5],
    ['foo=, wait=5', 5],
    ['wait=99999999999', 99_999_999_999],
  ])('%s', (field, seconds) => {
    expect(parsePreferWait(field)).toBe(1000 * seconds);
  });

  test('has the first value of a repeated preference, whatever that is', () => {
    expect(parsePreferWait('wait=5, wait=30')).toBe(5000);
    expect(parsePreferWait('wait=5, Wait=30')).toBe(5000);
    expect(parsePreferWait('wait=soon, wait=30')).toBeUndefined();
    expect(parsePreferWait('wait, wait=30')).toBeUndefined();
  });

  test.each([
    '',
    'respond-async',
    'wait',
    'wait=',
    'wait=""',
    'wait=0',
    'wait=-5',
    'wait=+5',
    'wait=5s',
    'wait=1.5',
    'wait=1e3',
    'wait=0x10',
    'x-wait=5',
    'waiter=5',
    'foo; wait=5',
    'foo="wait=5"',
  ])('%j does not set it', (field) => {
    expect(parsePreferWait(field)).toBeUndefined();
  });

  test.each([
    'wait=5 6',
    'wait=5, "foo"',
    'wait=5; =7',
    'foo="open, wait=5',
    'wait==5',
    'wait=5, @',
    '(wait=5)',
    'wait=5 respond-async',
  ])('is ignored as a whole if the field is malformed: %j', (field) => {
    expect(parsePreferWait(field)).toBeUndefined();
  });

  test('is parsed in linear time, whatever the length of the field', () => {
    expect(parsePreferWait(`${'a,'.repeat(2000)}wait=5`)).toBe(5000);
    expect(parsePreferWait(`${'a,'.repeat(3000)}wait=5`)).toBeUndefined();
    expect(parsePreferWait(`a="${'\\"'.repeat(2000)}`)).toBeUndefined();
    expect(parsePreferWait(`a${';'.repeat(4000)},wait=5`)).toBe(5000);
  });
});

describe('Prefer: respond-async', () => {
  test.each(['respond-async', 'Respond-Async', 'wait=5, respond-async', 'respond-async; foo', 'respond-async=""'])(
    'is read from %j',
    (field) => {
      expect(prefersAsync(field)).toBe(true);
    },
  );

  test.each(['', 'return=minimal', 'x-respond-async', 'foo="respond-async"', 'foo; respond-async', 'respond-async, @'])(
    'is not read from %j',
    (field) => {
      expect(prefersAsync(field)).toBe(false);
    },
  );

  test('is removed with the wait, and other preferences stay as they were written', () => {
    const headers = [
      'A',
      'respond-async',
      'Prefer',
      'respond-async',
      'prefer',
      'wait=5, return=minimal; a="b,c", Foo = 1',
    ];
    expect(withoutAsyncPreference(headers)).toEqual([
      ...['A', 'respond-async', 'prefer', 'return=minimal; a="b,c", Foo = 1'],
    ]);
  });
});
