import { describe, expect, test } from 'vitest';
import { makeStrategy, describeUnusedOptions } from '../../../src/cli/backoff/strategy-options.ts';

function refusal(...given: Parameters<typeof makeStrategy>): string {
  try {
    makeStrategy(...given);
  } catch (error) {
    return error instanceof RangeError ? error.message : `no RangeError: ${String(error)}`;
  }
  return 'understood';
}

describe('a mistake in strategy options is reported in the flags as typed', () => {
  test('for a cap below the base, whether given or a default', () => {
    const of = (options: Parameters<typeof makeStrategy>[1]): string => refusal('grpc', options);
    expect(of({ baseInterval: 5000, maxInterval: 1000 })).toBe('grpc: --max 1s is shorter than --base 5s');
    expect(of({ maxInterval: 500 })).toBe('grpc: --max 500ms is shorter than --base, which is 1s unless given');
    expect(of({ baseInterval: 180_000 })).toBe('grpc: --base 180s is longer than --max, which is 120s unless given');
  });

  test('for a default that the study replaces with its own', () => {
    const study = { baseInterval: 10, maxInterval: 2000 };
    expect(refusal('grpc', { maxInterval: 5 }, study)).toBe(
      'grpc: --max 5ms is shorter than --base, which is 10ms unless given',
    );
    expect(refusal('grpc', { maxInterval: 500 }, study)).toBe('understood');
  });

  test('for a base of 0, from which no delay grows', () => {
    expect(refusal('doubling', { baseInterval: 0 })).toBe(
      'doubling: --base must be above 0, or it never reaches --max',
    );
  });

  test('a mistake that no command-line option can cause is reported unchanged', () => {
    expect(refusal('grpc', { jitter: 2 })).toBe('jitter must be from 0 to 1, not 2');
  });
});

describe('an option without effect', () => {
  test('is reported, with the strategies that use it', () => {
    expect(describeUnusedOptions(['sip', 'fixed'], { exponent: 3 })).toEqual([
      'tidegate: --exponent has no effect on sip and fixed: polynomial uses it',
    ]);
    expect(describeUnusedOptions(['grpc'], { jitterInterval: 100 })).toEqual([
      'tidegate: --jitter as a duration has no effect on grpc: additive-jitter uses it',
    ]);
    expect(describeUnusedOptions(['additive-jitter'], { jitter: 0.5, slot: 3 })).toEqual([
      'tidegate: --jitter as a part has no effect on additive-jitter: exponential-jitter and grpc use it',
      'tidegate: --slot has no effect on additive-jitter: ethernet and table use it',
    ]);
  });

  test('is accepted if one of several strategies uses it', () => {
    expect(describeUnusedOptions(['sip', 'polynomial'], { exponent: 3, baseInterval: 5 })).toEqual([]);
    expect(describeUnusedOptions(['sip'], {})).toEqual([]);
  });
});
