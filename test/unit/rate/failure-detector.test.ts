/** What failures and rejections show: who takes part in them, and what they have in common. */
import { describe, expect, test } from 'vitest';
import { FailureDetector } from '../../../src/core/rate/breaker/failure-detector.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import { rateState } from '../../support/core/rate-builders.ts';

/** Of an address, a client and a path of one segment. */
const of = (address: number, client = 0, path = 0): RequestAttributes => [address, client, 0, path, 0, 0, 0, path];

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

  test('needs attributes as long as a sender that failed may be passed over', () => {
    const detector = new FailureDetector();
    detector.onFailed(rateState(), failed(of(1)), false, 0);
    const isNeeded = [5000, 10_000, 10_001].map((now) => {
      detector.onAccepted(now, now, of(2));
      return detector.needsAttributes;
    });
    expect(isNeeded).toEqual([true, true, false]);
  });

  test('samples three accepted requests after a rejection that may be due to another limit, and passes over no sender', () => {
    const detector = new FailureDetector();
    expect(detector.isPassedOver(of(1), 0)).toBe(false);
    detector.onUnattributedRejection(of(1), 0);
    const isNeeded = [1, 2, 3].map((now) => {
      const { needsAttributes } = detector;
      detector.onAccepted(now, now, of(2));
      return needsAttributes;
    });
    expect([...isNeeded, detector.needsAttributes]).toEqual([true, true, true, false]);
    expect(detector.isPassedOver(of(1), 5)).toBe(false);
  });

  test('counts no rejection of a sender that is passed over', () => {
    const detector = new FailureDetector();
    detector.onRejected(rateState({ rate: 80 }), { attributes: of(1), sentAt: 0 }, true, 0);
    detector.onAccepted(5, 10, of(2));
    expect([of(1), of(2)].map((each) => detector.isPassedOver(each, 10))).toEqual([true, false]);
    detector.onRejected(rateState({ rate: 70 }), { attributes: of(1), sentAt: 20 }, true, 20);
    expect(detector.scopeOf('rejections', failed(), false)).toEqual(ANY_REQUEST);
    expect(detector.stateBeforeBlock('rejections', undefined, rateState({ rate: 60 })).rate).toBe(80);
    detector.onRejected(rateState({ rate: 70 }), { attributes: of(3), sentAt: 20 }, true, 20);
    expect(detector.scopeOf('rejections', failed(), false)).toEqual(of(3));
    expect(detector.stateBeforeBlock('rejections', undefined, rateState({ rate: 60 })).rate).toBe(70);
  });

  test.each([
    [true, of(1)],
    [false, undefined],
  ])('blocks a sender that fails alone after a block, if that was of a part: %s', (isPart, scope) => {
    const detector = new FailureDetector();
    detector.onFailed(rateState(), failed(of(1)), false, 0);
    detector.onAccepted(5, 5, of(2));
    detector.clearErrors(isPart, 10);
    const blocks = Array.from({ length: 8 }, (_, i) =>
      detector.onFailed(rateState({ rate: 30 }), { ...failed(of(1, i)), sentAt: 20 }, false, 20),
    );
    expect(blocks.map((block) => block !== undefined)).toEqual(Array.from({ length: 8 }, (_, i) => i === 7));
    expect([blocks[7]?.part?.scope, blocks[7]?.part?.stateBefore.rate]).toEqual([scope, isPart ? 30 : undefined]);
  });

  test('has no turn for a request of which nothing is known, or before any failure', () => {
    const detector = new FailureDetector();
    const block = { scope: ANY_REQUEST, since: 0 };
    expect(detector.probeTurn(of(1), block)).toBe(0);
    detector.recordFailedSender(of(1), 0);
    detector.recordProbe(of(2), 1);
    expect([of(2), undefined].map((each) => detector.probeTurn(each, block))).toEqual([1, 0]);
  });
});
