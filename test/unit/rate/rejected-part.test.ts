/** Rejections that concern a part of all requests, and by which evidence it is found. */
import { describe, expect, test } from 'vitest';
import type { RejectedPart } from '../../../src/core/rate/breaker/rejected-part.ts';
import { PASSES_AFTER_REJECTION, RejectedPartDetector } from '../../../src/core/rate/breaker/rejected-part.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { RateState } from '../../../src/core/rate/rate-state.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { rateState } from '../../support/core/rate-builders.ts';

/** Of an address, a client and a path of one segment. */
const of = (address: number, client = 0, path = 0): RequestAttributes => [address, client, 0, path, 0, 0, 0, path];

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

  /** Rejects a request of each of these senders, and accepts up to three other requests after each. */
  function rejectEach(
    detector: RejectedPartDetector,
    senders: readonly (RequestAttributes | undefined)[],
    {
      passes = 3,
      pass = (i) => of(1000 + i),
      stateOf,
    }: Pick<Rejections, 'pass' | 'stateOf'> & { passes?: number } = {},
  ): RejectedPart | undefined {
    let found: RejectedPart | undefined;
    for (const [i, each] of senders.entries()) {
      found = detector.onRejected(stateOf?.(i) ?? rateState(), each, 10 * i);
      for (let n = 0; n < passes; n += 1) detector.onAccepted(pass(passes * i + n));
    }
    return found;
  }
  const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

  test.each<[string, RequestAttributes | undefined, readonly (RequestAttributes | undefined)[], number]>([
    ['five rejections, and three accepted requests after each', of(1), times(5, of(1)), 3],
    ['no fewer, however many are accepted', undefined, times(4, of(1)), 20],
    [
      'four of several addresses that are rejected alike',
      of(4),
      Array.from({ length: 16 }, (_, i) => of(1 + (i % 4))),
      3,
    ],
    ['four of forty from ten addresses', of(10), Array.from({ length: 40 }, (_, i) => of(1 + (i % 10))), 3],
    ['four beside four of one other address', of(1), [...times(4, of(2)), ...times(4, of(1))], 3],
    ['not three, although another address is rejected alike', undefined, [...times(10, of(2)), ...times(3, of(1))], 3],
    ['four, if another address is rejected alike', of(1), [...times(10, of(2)), ...times(4, of(1))], 3],
    ['not four of forty, of which the others are unknown', undefined, [...times(36, of(0)), ...times(4, of(1))], 3],
    ['not four of forty, of others without attributes', undefined, [...times(36, undefined), ...times(4, of(1))], 3],
    ['not five beside four of other addresses', undefined, [...[2, 3, 4, 5].map((a) => of(a)), ...times(5, of(1))], 3],
    ['six beside four of other addresses', of(1), [...[2, 3, 4, 5].map((a) => of(a)), ...times(6, of(1))], 3],
  ])('is found by the evidence of %s', (_, scope, senders, passes) => {
    expect(rejectEach(new RejectedPartDetector(), senders, { passes })?.scope).toEqual(scope);
  });

  test('is not found if other addresses that are rejected are accepted too', () => {
    const senders = Array.from({ length: 40 }, (_, i) => of(1 + (i % 10)));
    const found = rejectEach(new RejectedPartDetector(), senders, { pass: (i) => of(1 + (i % 9)) });
    expect(found).toBeUndefined();
  });

  test('is not found if it is rejected less often than others', () => {
    const senders = [...Array.from({ length: 20 }, (_, i) => of(10 + i)), ...times(4, of(1))];
    expect(rejectEach(new RejectedPartDetector(), senders, { pass: () => of(1) })).toBeUndefined();
  });

  test('may be a path with exactly half of the accepted requests', () => {
    const found = reject(new RejectedPartDetector(), 31, (i) => of(1 + i, 1 + i, 3), {
      pass: (i) => of(50 + i, 50 + i, i % 2 === 0 ? 3 : 4),
    });
    expect(found?.scope).toEqual([0, 0, 0, 3, 0, 0, 0, 0]);
  });

  test('is found by rejections that may be due to another limit, and these have no state', () => {
    const detector = new RejectedPartDetector();
    for (let i = 0; i < 6; i += 1) {
      detector.onIgnored(of(1), i);
      for (let n = 0; n < 3; n += 1) detector.onAccepted(of(1000 + 3 * i + n));
    }
    const found = detector.onRejected(rateState({ rate: 80 }), of(1), 10);
    expect([found?.scope, found?.stateBefore.rate]).toEqual([of(1), 80]);
    expect(detector.onRejected(rateState({ rate: 70 }), of(1), 20, true)?.stateBefore.rate).toBe(80);
    detector.onIgnored(of(1), 60_021);
    expect(detector.onRejected(rateState({ rate: 60 }), of(1), 60_022)).toBeUndefined();
  });

  describe('has the state before', () => {
    /** The rates before each rejection are 100, 99, and so on. */
    const rateBefore = (senders: readonly RequestAttributes[], pass?: (i: number) => RequestAttributes) =>
      rejectEach(new RejectedPartDetector(), senders, {
        stateOf: (i) => rateState({ rate: 100 - i }),
        ...(pass === undefined ? {} : { pass }),
      })?.stateBefore.rate;

    test.each<[string, readonly RequestAttributes[], number]>([
      ['the first of its rejections', times(12, of(1)), 100],
      ['the oldest one of 32', times(40, of(1)), 92],
      ['those of other parts that are rejected alone', [...times(6, of(2)), ...times(12, of(1))], 100],
      ['its rejections, but not those of unknown senders', [...times(6, of(0)), ...times(12, of(1))], 94],
    ])('%s', (_, senders, rate) => {
      expect(rateBefore(senders)).toBe(rate);
    });

    test('its rejections, but not those of others that are accepted too', () => {
      const senders = [...times(6, of(2)), ...times(12, of(1))];
      expect(rateBefore(senders, (i) => (i === 20 ? of(2) : of(1000 + i)))).toBe(94);
    });

    test('the rejection that finds it, if the records of earlier ones are overwritten', () => {
      const detector = new RejectedPartDetector();
      rejectEach(detector, times(10, of(2)), { stateOf: () => rateState({ rate: 50 }) });
      for (let i = 0; i < 200; i += 1) {
        detector.onIgnored(of(i % 4 === 0 ? 1 : 0), 200 + i);
        for (let n = 0; n < 3; n += 1) detector.onAccepted(of(2000 + n));
      }
      const found = detector.onRejected(rateState({ rate: 40 }), of(1), 500);
      expect([found?.scope, found?.stateBefore.rate]).toEqual([of(1), 40]);
    });
  });
});
