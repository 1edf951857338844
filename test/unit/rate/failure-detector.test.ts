/** What failures show: their number, and what the failed requests have in common. */
import { describe, expect, test } from 'vitest';
import { ErrorWindow } from '../../../src/core/rate/breaker/error-window.ts';
import { FailureDetector } from '../../../src/core/rate/breaker/failure-detector.ts';
import type { RejectedPart } from '../../../src/core/rate/breaker/rejected-part.ts';
import { PASSES_AFTER_REJECTION, RejectedPartDetector } from '../../../src/core/rate/breaker/rejected-part.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { RateState } from '../../../src/core/rate/rate-state.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { rateState } from '../../support/core/rate-builders.ts';

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
});

describe('the senders of failed requests', () => {
  const EVERYONE = { scope: [...ANY_REQUEST], since: 20_000 };

  test('are identified by address for ten seconds before a block of all requests', () => {
    const detector = new FailureDetector();
    detector.recordFailedSender(of(1, 5), 10_000);
    detector.recordFailedSender(of(2, 6), 9999);
    detector.recordFailedSender(undefined, 20_000);
    const hasFailed = (attributes: RequestAttributes | undefined) => detector.hasSenderFailed(attributes, EVERYONE);
    expect([of(1, 9), of(2, 6), of(3, 5), undefined].map(hasFailed)).toEqual([true, false, false, false]);
    expect(new FailureDetector().hasSenderFailed(of(1), EVERYONE)).toBe(false);
  });

  test('are identified by client if one address is blocked, and not at all if one client is', () => {
    const detector = new FailureDetector();
    detector.recordFailedSender(of(1, 5), 20_000);
    const within = (scope: RequestAttributes, attributes: RequestAttributes) =>
      detector.hasSenderFailed(attributes, { scope, since: 20_000 });
    expect([within(of(1), of(1, 5)), within(of(1), of(1, 6)), within(of(1, 5), of(1, 5))]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('are not identified if no connection was made', () => {
    const detector = new FailureDetector();
    const failure = { sentAt: 20_000, retryAfterMs: undefined, attributes: of(1) };
    detector.onFailed(rateState(), { ...failure, isUnreachable: true }, false, 20_000);
    expect([detector.hasSenderFailed(of(1), EVERYONE), detector.scopeOf('errors', failure, false)]).toEqual([
      ...[false, ANY_REQUEST],
    ]);
    detector.onFailed(rateState(), failure, false, 20_000);
    expect(detector.hasSenderFailed(of(1), EVERYONE)).toBe(true);
  });
});

describe('the detector of failures', () => {
  const failed = (attributes?: RequestAttributes) => ({ sentAt: 0, retryAfterMs: undefined, attributes });

  test('blocks after eight errors, and just after a recovery only after eight in a row', () => {
    const blocks = (justRecovered: boolean): boolean[] => {
      const detector = new FailureDetector();
      for (let i = 0; i < 7; i += 1) detector.onFailed(rateState(), failed(), justRecovered, 0);
      detector.onAccepted(0, 0, undefined);
      return Array.from({ length: 8 }, () => detector.onFailed(rateState(), failed(), justRecovered, 0) !== undefined);
    };
    expect(blocks(false)).toEqual(Array.from({ length: 8 }, () => true));
    expect(blocks(true)).toEqual([false, false, false, false, false, false, false, true]);
  });

  test('stores when the latest of the accepted requests was sent', () => {
    const detector = new FailureDetector();
    expect(detector.hasAcceptedSince(-1)).toBe(false);
    detector.onAccepted(100, 200, undefined);
    detector.onAccepted(50, 300, undefined);
    expect([detector.hasAcceptedSince(99), detector.hasAcceptedSince(100)]).toEqual([true, false]);
  });

  test('needs attributes after an error, and after a rejection until three requests and one of its sender were accepted', () => {
    const detector = new FailureDetector();
    expect(detector.needsAttributes).toBe(false);
    detector.onRejected(rateState(), { attributes: of(1), sentAt: 0 }, false, 0);
    expect(detector.needsAttributes).toBe(false);
    detector.onRejected(rateState(), { attributes: of(1), sentAt: 0 }, true, 0);
    const seen = [1, 2, 3].map(() => {
      const { needsAttributes } = detector;
      detector.onAccepted(0, 0, of(2));
      return needsAttributes;
    });
    expect([...seen, detector.needsAttributes]).toEqual([true, true, true, true]);
    detector.onAccepted(0, 0, of(1));
    expect(detector.needsAttributes).toBe(true);
    detector.onAccepted(1, 1, of(1));
    expect(detector.needsAttributes).toBe(false);
    detector.onFailed(rateState(), failed(), false, 0);
    expect(detector.needsAttributes).toBe(true);
    detector.clearErrors(false, 0);
    expect(detector.needsAttributes).toBe(false);
  });

  test('restores the state before the first of the rejections, unless the rate has grown since', () => {
    const detector = new FailureDetector();
    const state = rateState({ rate: 80 });
    const before = (cause: 'rejections' | 'errors' = 'rejections') =>
      detector.stateBeforeBlock(cause, undefined, state).rate;
    expect(before()).toBe(80);
    detector.onRejected(state, { attributes: of(1), sentAt: 0 }, false, 0);
    state.rate = 40;
    detector.onRejected(state, { attributes: of(1), sentAt: 0 }, false, 0);
    expect([before(), before('errors')]).toEqual([80, 40]);
    state.rate = 80;
    expect(detector.stateBeforeBlock('rejections', undefined, { ...state, ceiling: 7 }).ceiling).not.toBe(7);
    state.rate = 90;
    expect(before()).toBe(90);
    detector.onAccepted(0, 0, undefined);
    state.rate = 30;
    detector.onRejected(state, { attributes: of(1), sentAt: 0 }, false, 0);
    state.rate = 20;
    expect(before()).toBe(30);
    const part = { scope: of(1), stateBefore: rateState({ rate: 60 }) };
    expect(detector.stateBeforeBlock('rejections', part, state).rate).toBe(60);
  });

  test('finds what three of four rejections share and, during a block, what they share with the last', () => {
    const detector = new FailureDetector();
    expect(detector.scopeOf('rejections', failed(), false)).toEqual(ANY_REQUEST);
    for (const address of [1, 1, 2, 1]) {
      detector.onRejected(rateState(), { attributes: of(address, 0, 3), sentAt: 0 }, false, 0);
    }
    const scope = (isBlocked: boolean, attributes?: RequestAttributes) =>
      detector.scopeOf('rejections', failed(attributes), isBlocked);
    expect([scope(false), scope(false, of(2, 0, 3))]).toEqual([of(1, 0, 3), of(1, 0, 3)]);
    expect([scope(true, of(2, 0, 3)), scope(true)]).toEqual([of(0, 0, 3), ANY_REQUEST]);
  });
});

describe('a part that is rejected alone', () => {
  interface Rejections {
    /** The state of the limit before each rejection. */
    readonly stateOf?: (i: number) => RateState;
    readonly from?: Millis;
    readonly interval?: Millis;
    /** The accepted requests. */
    readonly pass?: (i: number) => RequestAttributes;
  }

  /** Rejects requests of the part, each followed by two that are accepted. Returns what the last rejection shows. */
  function reject(
    detector: RejectedPartDetector,
    times: number,
    part: (i: number) => RequestAttributes,
    { stateOf, from = 0, interval = 10, pass = (i) => of(50 + i, 50 + i, 50 + i) }: Rejections = {},
  ): RejectedPart | undefined {
    let found: RejectedPart | undefined;
    for (let i = 0; i < times; i += 1) {
      found = detector.onRejected(stateOf?.(i) ?? rateState(), part(i), from + interval * i);
      for (let n = 0; n < 2; n += 1) detector.onAccepted(pass(2 * i + n));
    }
    return found;
  }

  test('is found by four rejections or more, and by evidence beyond chance', () => {
    const found = [3, 4, 5, 6, 7, 8].map((times) => reject(new RejectedPartDetector(), times, () => of(1))?.scope);
    expect(found.slice(0, 2)).toEqual([undefined, undefined]);
    expect(found.at(-1)).toEqual(of(1));
    const first = found.findIndex((scope) => scope !== undefined);
    expect(found.map((scope) => scope !== undefined)).toEqual(found.map((_, i) => i >= first));
  });

  test('is found only if requests with known attributes were accepted in between', () => {
    const detector = new RejectedPartDetector();
    for (let i = 0; i < 20; i += 1) expect(detector.onRejected(rateState(), of(1), i)).toBeUndefined();
    for (let i = 0; i < 20; i += 1) {
      detector.onAccepted(undefined);
      expect(detector.onRejected(rateState(), of(1), 20 + i)).toBeUndefined();
    }
    expect(reject(new RejectedPartDetector(), 20, (i) => (i < 19 ? of(1) : of(0)))).toBeUndefined();
  });

  test('is found by a sample of three accepted requests after each rejection', () => {
    const detector = new RejectedPartDetector();
    expect(detector.isSampling).toBe(false);
    detector.onRejected(rateState(), of(1), 0);
    const seen = Array.from({ length: PASSES_AFTER_REJECTION + 1 }, () => {
      const { isSampling } = detector;
      detector.onAccepted(of(2));
      return isSampling;
    });
    expect(seen).toEqual([true, true, true, false]);
  });

  test('expires a minute after the last rejection', () => {
    for (const [interval, isFound] of [
      [60_000, true],
      [60_001, false],
    ] as const) {
      const found = reject(new RejectedPartDetector(), 12, () => of(1), { interval });
      expect(found !== undefined).toBe(isFound);
    }
  });

  test('has the state before its first rejection', () => {
    const detector = new RejectedPartDetector();
    reject(detector, 3, (i) => of(60 + i, 60 + i));
    const stateOf = (i: number) => rateState({ rate: 80 - i });
    const found = reject(detector, 12, () => of(1), { stateOf, from: 100 });
    expect(found?.scope).toEqual(of(1));
    expect(found?.stateBefore.rate).toBe(80);
  });

  test('is restricted to an address if all of its requests are from there', () => {
    expect(reject(new RejectedPartDetector(), 12, (i) => of(i < 6 ? 1 : 2, 0, 3))?.scope).toEqual([
      0, 0, 0, 3, 0, 0, 0, 0,
    ]);
    expect(
      reject(new RejectedPartDetector(), 12, (i) => of(1, 10 + i, 3), { pass: (i) => of(1, 50 + i, 50 + i) })?.scope,
    ).toEqual([1, 0, 0, 3, 0, 0, 0, 0]);
  });

  test('is no path with more than half of the accepted requests', () => {
    const share = (of100: number) => (i: number) => of(50 + i, 50 + i, i % 100 < of100 ? 3 : 4);
    const found = (passed: number) =>
      reject(new RejectedPartDetector(), 30, (i) => of(1 + i, 1 + i, 3), {
        pass: (i) => share(passed)((i * 37) % 100),
      });
    expect([found(30)?.scope, found(70)?.scope]).toEqual([[0, 0, 0, 3, 0, 0, 0, 0], undefined]);
  });

  test('is one of several that are rejected alike, of which each is rejected alone', () => {
    const found = reject(new RejectedPartDetector(), 30, (i) => of(1 + (i % 3), 1 + (i % 3)));
    expect(found?.scope).toEqual(of(3));
  });
});
