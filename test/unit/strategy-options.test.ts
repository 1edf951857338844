import { describe, expect, test } from 'vitest';
import { makeStrategy, tellUnread } from '../../src/cli/backoff/strategy-options.ts';

function refusal(...given: Parameters<typeof makeStrategy>): string {
  try {
    makeStrategy(...given);
  } catch (error) {
    return error instanceof RangeError ? error.message : `no RangeError: ${String(error)}`;
  }
  return 'understood';
}

describe('what is wrong with options of a strategy is told as they were typed', () => {
  test('a cap below the base, given or not', () => {
    const of = (options: Parameters<typeof makeStrategy>[1]): string => refusal('grpc', options);
    expect(of({ baseInterval: 5000, maxInterval: 1000 })).toBe('grpc: --max 1s is shorter than --base 5s');
    expect(of({ maxInterval: 500 })).toBe('grpc: --max 500ms is shorter than --base, which is 1s unless given');
    expect(of({ baseInterval: 180_000 })).toBe('grpc: --base 180s is longer than --max, which is 120s unless given');
  });

  test('what a study has instead of the default', () => {
    const study = { baseInterval: 10, maxInterval: 2000 };
    expect(refusal('grpc', { maxInterval: 5 }, study)).toBe(
      'grpc: --max 5ms is shorter than --base, which is 10ms unless given',
    );
    expect(refusal('grpc', { maxInterval: 500 }, study)).toBe('understood');
  });

  test('a base from which nothing grows', () => {
    expect(refusal('doubling', { baseInterval: 0 })).toBe(
      'doubling: --base must be above 0, or it never reaches --max',
    );
  });

  test('what no option of the command line can bring about is told as it is', () => {
    expect(refusal('grpc', { jitter: 2 })).toBe('jitter must be from 0 to 1, not 2');
  });
});

describe('an option that makes no difference', () => {
  test('is told, and who reads it', () => {
    expect(tellUnread(['sip', 'fixed'], { exponent: 3 })).toEqual([
      'tidegate: --exponent makes no difference to sip and fixed: polynomial reads it',
    ]);
    expect(tellUnread(['grpc'], { jitterInterval: 100 })).toEqual([
      'tidegate: --jitter as a duration makes no difference to grpc: additive-jitter reads it',
    ]);
    expect(tellUnread(['additive-jitter'], { jitter: 0.5, slot: 3 })).toEqual([
      'tidegate: --jitter as a part makes no difference to additive-jitter: exponential-jitter and grpc read it',
      'tidegate: --slot makes no difference to additive-jitter: ethernet and table read it',
    ]);
  });

  test('is no matter where one of several reads it', () => {
    expect(tellUnread(['sip', 'polynomial'], { exponent: 3, baseInterval: 5 })).toEqual([]);
    expect(tellUnread(['sip'], {})).toEqual([]);
  });
});
