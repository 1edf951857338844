/** The count of failures, and what the failed requests have in common. */
import { describe, expect, test } from 'vitest';
import { ErrorWindow } from '../../../src/core/rate/breaker/error-window.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../../src/core/scalars.ts';

/** Of an address, a client and a path of one segment. */
const of = (address: number, client = 0, path = 0): RequestAttributes => [address, client, 0, path, 0, 0, 0, path];

describe('the count of errors', () => {
  const after = (failures: number, successes = 0): ErrorWindow => {
    const errors = new ErrorWindow();
    for (let i = 0; i < successes; i += 1) errors.onAnswer(0, false);
    for (let i = 0; i < failures; i += 1) errors.onAnswer(0, true);
    return errors;
  };

  test('requires a block from eight errors on, if they are half of all results', () => {
    expect([after(7), after(8), after(8, 8), after(8, 9), after(9, 9)].map((each) => each.exceedsThreshold(0))).toEqual(
      [...[false, true, true, false, true]],
    );
  });

  test('shows whether eight are in a row', () => {
    expect([after(7).areConsecutive, after(8).areConsecutive, after(9, 50).areConsecutive]).toEqual([
      false,
      true,
      true,
    ]);
    const errors = after(8);
    errors.onAnswer(0, false);
    expect(errors.areConsecutive).toBe(false);
    errors.onAnswer(0, true);
    expect(errors.areConsecutive).toBe(false);
    const cleared = after(8);
    cleared.clear(false, 0);
    expect([cleared.areConsecutive, cleared.hasRecentErrors, cleared.exceedsThreshold(0)]).toEqual([
      ...[false, false, false],
    ]);
  });

  test('covers this second and the one before', () => {
    const seen = [999, 1000, 1999, 2000].map((now) => {
      const errors = after(8);
      return [errors.exceedsThreshold(now), errors.hasRecentErrors];
    });
    expect(seen).toEqual([
      [true, true],
      [true, true],
      [true, true],
      [false, false],
    ]);
  });

  test('includes the successes of the second before', () => {
    const errors = after(8, 8);
    errors.onAnswer(1500, false);
    expect(errors.exceedsThreshold(1500)).toBe(false);
    errors.onAnswer(1500, true);
    expect(errors.exceedsThreshold(1500)).toBe(true);
    expect(errors.exceedsThreshold(2000)).toBe(false);
  });

  test('begins again after a block, and forgets the second before too', () => {
    const errors = after(8);
    errors.onAnswer(1500, false);
    errors.clear(false, 1500);
    expect([errors.exceedsThreshold(1500), errors.hasRecentErrors]).toEqual([false, false]);
  });
});

describe('the count of errors of senders that fail alone', () => {
  /** Eight at this time, among these accepted requests, or as many as given. */
  function failAlone(at: Millis, { accepted = [] as readonly Millis[], count = 8 } = {}): ErrorWindow {
    const errors = new ErrorWindow();
    for (const acceptedAt of accepted) errors.onAnswer(acceptedAt, false);
    for (let i = 0; i < count; i += 1) errors.onFailedAlone(at, of(1));
    return errors;
  }
  const times = (count: number, at: Millis): Millis[] => Array.from({ length: count }, () => at);

  test.each<[string, ErrorWindow, Millis, boolean]>([
    ['eight of them', failAlone(5000), 5000, true],
    ['seven of them', failAlone(5000, { count: 7 }), 5000, false],
    ['as many as are accepted', failAlone(0, { accepted: times(8, 0) }), 0, true],
    ['fewer than are accepted', failAlone(0, { accepted: times(9, 0) }), 0, false],
    ['fewer than in two seconds', failAlone(1000, { accepted: [...times(8, 0), 1000] }), 1000, false],
    ['those of the second before', failAlone(0), 1999, true],
    ['older ones', failAlone(0), 2000, false],
  ])('decides about a block: %s', (_, errors, now, isExceeded) => {
    expect(errors.exceedsThresholdAlone(now)).toBe(isExceeded);
    expect(errors.exceedsThreshold(now)).toBe(false);
  });

  test('adds those of this second and the one before', () => {
    const errors = failAlone(0, { count: 4 });
    for (let i = 0; i < 4; i += 1) errors.onFailedAlone(1000, of(1));
    expect([errors.exceedsThresholdAlone(1000), errors.hasRecentErrors]).toEqual([true, true]);
  });

  test('makes the attributes of accepted requests necessary for two seconds', () => {
    const errors = failAlone(0, { count: 1 });
    expect(errors.hasRecentErrors).toBe(true);
    const isNeededAt = [1999, 2000].map((now) => {
      errors.exceedsThresholdAlone(now);
      return errors.hasRecentErrors;
    });
    expect(isNeededAt).toEqual([true, false]);
  });
});

describe('a path', () => {
  test.each<[string, readonly RequestAttributes[], readonly RequestAttributes[], boolean]>([
    ['fails if three requests of two addresses do', [of(1, 1, 3), of(2, 2, 3), of(2, 2, 3)], [], true],
    ['does not fail by two requests', [of(1, 1, 3), of(2, 2, 3)], [], false],
    ['does not fail if all of them come from its address', [of(1, 1, 3), of(1, 2, 3), of(1, 3, 3)], [], false],
    ['does not fail if one is accepted', [of(1, 1, 3), of(2, 2, 3), of(2, 2, 3)], [of(9, 9, 3)], false],
    ['does not fail if only its client does', [of(1, 7, 3), of(2, 7, 4), of(3, 7, 5)], [], false],
    ['does not fail without failures', [], [], false],
  ])('%s', (_, failed, accepted, isFailing) => {
    const errors = new ErrorWindow();
    for (const attributes of failed) errors.onFailedAlone(0, attributes);
    for (const attributes of accepted) errors.onAnswer(0, false, attributes);
    expect(errors.isPathFailing(of(1, 7, 3))).toBe(isFailing);
  });
});

test('the failures of a sender that fails alone share all of it, unless three or more share less', () => {
  const errors = new ErrorWindow();
  const sender = [...of(1)];
  expect(errors.scopeOfSender(sender)).toEqual(sender);
  for (const client of [1, 2, 3]) {
    expect(errors.scopeOfSender(sender)).toEqual(sender);
    errors.onFailedAlone(0, of(1, client, 3));
  }
  expect(errors.scopeOfSender(sender)).toEqual(of(1, 0, 3));
});

describe('what errors have in common', () => {
  const scopeOf = (results: readonly (readonly [failed: boolean, attributes: RequestAttributes | undefined])[]) => {
    const errors = new ErrorWindow();
    for (const [failed, attributes] of results) errors.onAnswer(0, failed, attributes);
    return errors.scope;
  };
  const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

  test('is nothing without errors, or if their attributes are unknown', () => {
    expect(scopeOf([])).toEqual(ANY_REQUEST);
    expect(scopeOf(times(8, [true, undefined] as const))).toEqual(ANY_REQUEST);
  });

  test('is what a clear majority of them share', () => {
    expect(scopeOf([...times(5, [true, of(1, 2, 3)] as const), [true, of(9, 9, 9)]])).toEqual(of(1, 2, 3));
    expect(scopeOf(Array.from({ length: 8 }, (_, i) => [true, of(1, 10 + i, 3)] as const))).toEqual(of(1, 0, 3));
  });

  test('is the part in which nothing is accepted, if much is accepted in a larger part', () => {
    // All fail that are for path 3 of address 1, and others of the address pass.
    const failures = Array.from({ length: 8 }, (_, i) => [true, of(1, 10 + i, 3)] as const);
    const others = (count: number) => times(count, [false, of(1, 99, 4)] as const);
    expect(scopeOf([...failures, ...others(9)])).toEqual(of(1, 0, 3));
    const mixed = Array.from({ length: 8 }, (_, i) => [true, of(1, 10 + i, i % 3 === 1 ? 3 : 30 + i)] as const);
    expect(scopeOf([...mixed, ...others(2)])).toEqual(of(1)); // two of eight may be chance
    expect(scopeOf([...mixed, ...others(3)])).toEqual([1, 0, 0, 3, 0, 0, 0, 0]);
  });

  test('is no part with fewer than three failures', () => {
    const mixed = Array.from({ length: 8 }, (_, i) => [true, of(1, 10 + i, i % 4 === 3 ? 3 : 30 + i)] as const);
    expect(scopeOf([...mixed, ...times(3, [false, of(1, 99, 4)] as const)])).toEqual(of(1));
  });

  test('expires after two seconds, and counts half after one', () => {
    const errors = new ErrorWindow();
    for (let i = 0; i < 4; i += 1) errors.onAnswer(0, true, of(1));
    for (let i = 0; i < 4; i += 1) errors.onAnswer(1000, true, of(2));
    expect(errors.scope).toEqual(of(2)); // a lead of two in six
    errors.onAnswer(9000, true, of(3));
    expect(errors.scope).toEqual(of(3));
  });

  test('counts half after one second', () => {
    const errors = new ErrorWindow();
    for (let i = 0; i < 4; i += 1) errors.onAnswer(0, true, of(1));
    errors.onAnswer(1000, true, of(2));
    expect(errors.scope).toEqual(of(1)); // a lead of one in three
  });

  /** Eight requests of address 1 fail, four of them for path 3, the last one too. */
  const ofAddress = Array.from({ length: 8 }, (_, i) => [true, of(1, 10 + i, i % 2 === 1 ? 3 : 30 + i)] as const);
  const accepted = (count: number, attributes = of(1, 99, 4)) => times(count, [false, attributes] as const);

  test('is no part of which a request is accepted', () => {
    expect(scopeOf([...ofAddress, ...accepted(3)])).toEqual([1, 0, 0, 3, 0, 0, 0, 0]);
    expect(scopeOf([...ofAddress, ...accepted(3), ...accepted(1, of(9, 99, 3))])).toEqual(of(1, 0, 3));
  });

  test('is a part of all addresses if it fails from several', () => {
    const failures = Array.from({ length: 8 }, (_, i) => [true, of(1 + i, 10 + i, i % 2 === 1 ? 3 : 30 + i)] as const);
    expect(scopeOf([...failures, ...accepted(3)])).toEqual([0, 0, 0, 3, 0, 0, 0, 0]);
  });

  test('does not depend on what was accepted before the first error', () => {
    expect(scopeOf([...accepted(9), ...ofAddress])).toEqual(of(1));
  });

  test('depends on what was accepted before a block only if that is still a sign', () => {
    const scopes = [true, false].map((keepsResults) => {
      const errors = new ErrorWindow();
      for (const [failed, attributes] of [...ofAddress, ...accepted(9)]) errors.onAnswer(0, failed, attributes);
      errors.clear(keepsResults, 0);
      for (const [failed, attributes] of ofAddress) errors.onAnswer(0, failed, attributes);
      return errors.scope;
    });
    expect(scopes).toEqual([[1, 0, 0, 3, 0, 0, 0, 0], of(1)]);
  });
});
