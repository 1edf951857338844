/** The breaker alone: the phases of a block, one after another. */
import { describe, expect, test } from 'vitest';
import { probeInterval } from '../../../src/core/rate/breaker/active-block.ts';
import { Breaker } from '../../../src/core/rate/breaker/breaker.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { FailedSend } from '../../../src/core/rate/failed-send.ts';
import type { RateSettings, RateState } from '../../../src/core/rate/rate-state.ts';
import { rateState } from '../../support/core/rate-builders.ts';

const REQUEST: RequestAttributes = [1, 2, 3, 4, 5, 6, 7, 8];

describe('the breaker', () => {
  const SETTINGS: RateSettings = {
    initialRate: undefined,
    maxRate: Number.POSITIVE_INFINITY,
    minRate: 0.1,
    cooldown: 1000,
  };
  const make = (settings: Partial<RateSettings> = {}) =>
    new Breaker({ ...SETTINGS, ...settings }, () => 0.5, probeInterval);
  const failed = (sentAt: number, changes: Partial<FailedSend> = {}): FailedSend => ({
    sentAt,
    retryAfterMs: undefined,
    ...changes,
  });
  const open = () => rateState({ rate: Number.POSITIVE_INFINITY, ceiling: Number.POSITIVE_INFINITY, phase: 'open' });
  const limited = () => rateState({ rate: 40, ceiling: 50, phase: 'cooldown' });
  const blockAt1000 = (breaker: Breaker, state: RateState, changes: Partial<FailedSend> = {}): void =>
    breaker.block(state, { cause: 'errors', failure: failed(1000, changes), acceptedRate: 20 }, 1000);

  test('delays no request without a block', () => {
    const breaker = make();
    const state = limited();
    const nothing = (): void => {
      expect([breaker.isActive, breaker.isPartial, breaker.probeAt, breaker.status(5)]).toEqual([
        ...[false, false, undefined, undefined],
      ]);
      expect([breaker.isHeldBack(undefined), breaker.isHeldBack(REQUEST)]).toEqual([false, false]);
      expect([
        breaker.probeDelay(5, REQUEST),
        breaker.probeOverdueFor(5),
        breaker.expectedBlockTime(5, REQUEST),
      ]).toEqual([0, 0, 0]);
      expect([breaker.unblockedRate(state), breaker.onUnblockedSend(state)]).toEqual([40, false]);
      expect(breaker.endIfProven(state, 9000, 9000, REQUEST)).toBeUndefined();
      expect(breaker.isReopenDue(900_000)).toBe(false);
    };
    nothing();
    breaker.onProbeSent(5);
    breaker.abandonProbe();
    breaker.blocks.makeProbesDue(5);
    breaker.onProbeFailed(failed(5), 5);
    breaker.widen(REQUEST);
    breaker.blocks.removeUnused(900_000);
    nothing();
  });

  test('blocks a limit until the next probe, and keeps its rate', () => {
    const breaker = make();
    const state = limited();
    blockAt1000(breaker, state);
    expect([state.phase, state.rate, breaker.isActive, breaker.isPartial]).toEqual(['blocked', 40, true, false]);
    expect([breaker.probeAt, breaker.probeDelay(1000, REQUEST), breaker.expectedBlockTime(1010, REQUEST)]).toEqual([
      ...[1050, 50, 40],
    ]);
    expect([breaker.probeOverdueFor(1040), breaker.probeOverdueFor(1090)]).toEqual([0, 40]);
    breaker.onProbeSent(1050);
    expect([breaker.probeDelay(1060, REQUEST), breaker.probeOverdueFor(1090)]).toEqual([1990, 0]);
    breaker.abandonProbe();
    expect(breaker.probeDelay(1060, REQUEST)).toBe(0);
    breaker.onProbeFailed(failed(1049), 1060);
    expect(breaker.probeAt).toBe(1050);
    breaker.onProbeFailed(failed(1050), 1060);
    expect(breaker.probeAt).toBe(1135);
    breaker.onProbeFailed(failed(1135), 1140);
    expect(breaker.probeAt).toBe(1140 + 112.5);
  });

  test('sends a probe within the longest delay between probes, if that is configured', () => {
    const breaker = make({ maxProbeDelay: 5000 });
    blockAt1000(breaker, limited(), { retryAfterMs: 60_000 });
    expect(breaker.probeAt).toBe(6000);
    for (const at of [2000, 4000, 6000]) breaker.onProbeSent(at);
    expect(breaker.probeDelay(6000, REQUEST)).toBe(5000);
    const usual = make();
    blockAt1000(usual, limited(), { retryAfterMs: 60_000 });
    expect(usual.probeAt).toBe(31_000);
  });

  test('has a probe due at once for any client, if an operator requests it', () => {
    const breaker = make();
    blockAt1000(breaker, limited(), { retryAfterMs: 20_000, attributes: REQUEST });
    breaker.onProbeFailed(failed(1050, { retryAfterMs: 20_000, attributes: REQUEST }), 1060);
    breaker.onProbeSent(21_070);
    breaker.blocks.makeProbesDue(1100);
    expect([breaker.probeDelay(1100, REQUEST), breaker.probeDelay(1100, undefined)]).toEqual([0, 0]);
    breaker.blocks.makeProbesDue(9000);
    expect(breaker.probeAt).toBe(1100);
  });

  test('does not change the limit for requests outside the scope', () => {
    const breaker = make();
    const state = limited();
    blockAt1000(breaker, state);
    state.rate = 7;
    expect(breaker.unblockedRate(state)).toBe(40);
    expect([breaker.onUnblockedSend(state), breaker.onUnblockedSend(state)]).toEqual([true, false]);
    expect([breaker.isActive, breaker.isPartial, breaker.probeAt, state.phase, state.rate]).toEqual([
      ...[true, true, undefined, 'cooldown', 40],
    ]);
    state.rate = 8;
    expect(breaker.unblockedRate(state)).toBe(8);
    breaker.blocks.removeUnused(301_050);
    expect(breaker.isActive).toBe(true);
    breaker.blocks.removeUnused(301_051);
    expect(breaker.isActive).toBe(false);
  });

  test('ends after an accepted probe, and assumes the earlier rate in a new block within ten seconds', () => {
    const breaker = make();
    const state = limited();
    blockAt1000(breaker, state);
    expect(breaker.endIfProven(state, 1049, 1060, REQUEST)).toBeUndefined();
    expect(breaker.endIfProven(state, 1050, 1060, REQUEST)).toMatchObject({ rateBefore: 40, isPartial: false });
    expect([breaker.isActive, breaker.isReopenDue(900_000)]).toEqual([false, false]);
    const rateOf = (now: number): number => {
      const unlimited = open();
      breaker.block(unlimited, { cause: 'errors', failure: failed(now), acceptedRate: 20 }, now);
      return unlimited.rate;
    };
    expect([rateOf(11_059), rateOf(11_060)]).toEqual([40, 20]);
  });

  test('assumes the ceiling if it blocks again before the rate is restored', () => {
    const ceilings = [4059, 4060].map((now) => {
      const breaker = make();
      const state = limited();
      blockAt1000(breaker, state);
      breaker.endIfProven(state, 1050, 1060, REQUEST);
      state.phase = 'restoring';
      breaker.block(state, { cause: 'errors', failure: failed(now), acceptedRate: 20 }, now);
      return breaker.endIfProven(state, now + 50, now + 60, REQUEST)?.rateBefore;
    });
    expect(ceilings).toEqual([50, 40]);
  });

  test('assumes the rate if it blocks again before that is restored, but not during the recovery', () => {
    const breaker = make();
    const state = limited();
    blockAt1000(breaker, state);
    breaker.endIfProven(state, 1050, 1060, REQUEST);
    state.phase = 'cooldown';
    breaker.block(state, { cause: 'errors', failure: failed(2000), acceptedRate: 20 }, 2000);
    expect(breaker.blocks.latest?.rateBefore).toBe(40);
  });

  test('has an unlimited limit reopened three seconds after errors, unless a limit is met or configured', () => {
    const reopensAt = (settings: Partial<RateSettings>, isMet = false): boolean[] => {
      const breaker = make(settings);
      const state = open();
      blockAt1000(breaker, state);
      expect(state.rate).toBe(20);
      breaker.endIfProven(state, 1050, 1060, REQUEST);
      if (isMet) breaker.cancelReopen();
      return [4059, 4060].map((now) => breaker.isReopenDue(now));
    };
    expect(reopensAt({})).toEqual([false, true]);
    expect(reopensAt({}, true)).toEqual([false, false]);
    expect(reopensAt({ initialRate: 100 })).toEqual([false, false]);
  });

  test('does not reopen after rejections, because they show a limit', () => {
    const breaker = make();
    const state = open();
    breaker.block(state, { cause: 'rejections', failure: failed(1000), acceptedRate: 20 }, 1000);
    expect(breaker.endIfProven(state, 1001, 1060, REQUEST)).toMatchObject({ cause: 'rejections' });
    expect(breaker.isReopenDue(900_000)).toBe(false);
  });

  test('widens its scope to what another failure has in common with it', () => {
    const breaker = make();
    const state = limited();
    for (let i = 0; i < 8; i += 1) breaker.onFailed(state, failed(1000, { attributes: REQUEST }), 1000);
    blockAt1000(breaker, state, { attributes: REQUEST });
    expect(breaker.status(1000)?.scope).toEqual(REQUEST);
    breaker.widen([1, 2, 9, 9, 9, 9, 9, 9]);
    expect(breaker.status(1000)?.scope).toEqual([1, 2, 0, 0, 0, 0, 0, 0]);
    expect([breaker.isHeldBack([1, 2, 7]), breaker.isHeldBack([1, 7, 7])]).toEqual([true, false]);
    expect([breaker.probeDelay(1000, [1, 7]), breaker.expectedBlockTime(1000, [1, 7])]).toEqual([0, 0]);
    breaker.widen(undefined);
    expect(breaker.status(1000)?.scope).toEqual(ANY_REQUEST);
  });

  describe('with a block of a part', () => {
    const of = (address: number): RequestAttributes => [address, 0, 0, 0, 0, 0, 0, 0];
    const blockPart = (breaker: Breaker, state: RateState, address: number, now: number): void => {
      const part = { scope: of(address), stateBefore: rateState({ rate: 60 }) };
      breaker.block(state, { cause: 'rejections', failure: failed(now), acceptedRate: 20, part }, now);
    };

    test('is partial from the start, and leaves the others the limit before', () => {
      const breaker = make();
      const state = limited();
      blockPart(breaker, state, 1, 1000);
      expect([breaker.isPartial, state.phase, state.rate, breaker.probeAt]).toEqual([
        ...[true, rateState().phase, 60, undefined],
      ]);
      expect([of(1), of(2), undefined].map((each) => breaker.isInBlockedPart(each))).toEqual([true, false, false]);
      const whole = make();
      blockAt1000(whole, limited());
      expect([whole.isHeldBack(of(1)), whole.isInBlockedPart(of(1))]).toEqual([true, false]);
    });

    test('has a probe of its own', () => {
      const breaker = make();
      blockPart(breaker, limited(), 1, 1000);
      blockPart(breaker, limited(), 2, 1000);
      breaker.onProbeSent(1050, of(1));
      expect([of(1), of(2)].map((each) => breaker.probeOverdueFor(1100, each))).toEqual([0, 50]);
      breaker.abandonProbe(of(1));
      expect(breaker.probeOverdueFor(1100, of(1))).toBe(50);
    });

    test('does not include the scope of an earlier block, although nothing was accepted in between', () => {
      const breaker = make();
      const state = limited();
      blockPart(breaker, state, 1, 1000);
      blockPart(breaker, state, 2, 2000);
      expect(breaker.status(2000)?.scope).toEqual(of(2));
      expect([of(1), of(2), of(3)].map((each) => breaker.isHeldBack(each))).toEqual([true, true, false]);
      blockAt1000(breaker, state); // of all requests
      expect(breaker.status(2000)?.scope).toEqual(ANY_REQUEST);
    });

    test('does not reopen the limit when it ends', () => {
      const breaker = make();
      const state = open();
      blockAt1000(breaker, state);
      breaker.onUnblockedSend(state);
      expect(breaker.endIfProven(state, 1050, 1060, REQUEST)).toMatchObject({ cause: 'errors', isPartial: true });
      expect(breaker.isReopenDue(900_000)).toBe(false);
    });

    test.each([
      [true, of(1)],
      [false, undefined],
    ])('still passes over a sender that failed alone, and one of all requests does not: %s', (isPart, scope) => {
      const breaker = make();
      const state = limited();
      breaker.onFailed(state, failed(900, { attributes: of(1) }), 900);
      breaker.detector.onAccepted(910, 910, of(2));
      if (isPart) blockPart(breaker, state, 7, 1000);
      else blockAt1000(breaker, state);
      const sent = failed(1010, { attributes: of(1) });
      const found = Array.from({ length: 8 }, () => breaker.onFailed(state, sent, 1010)).at(-1);
      expect(found?.part?.scope).toEqual(scope);
    });
  });

  test('looks for parts that are rejected, except while a block holds back all requests or for one client', () => {
    const needsAttributes = (how: 'none' | 'whole' | 'partial', settings: Partial<RateSettings> = {}): boolean => {
      const breaker = make(settings);
      const state = limited();
      if (how !== 'none') blockAt1000(breaker, state);
      if (how === 'partial') breaker.onUnblockedSend(state);
      breaker.onRejected(state, failed(1010, { attributes: REQUEST }), 1010);
      return breaker.detector.needsAttributes;
    };
    expect([needsAttributes('none'), needsAttributes('whole'), needsAttributes('partial')]).toEqual([
      ...[true, false, true],
    ]);
    expect(needsAttributes('none', { isPerClient: true })).toBe(false);
  });

  test('counts the sender of a rejected request as failed, unless a block holds it back', () => {
    const hasFailed = [false, true].map((isBlocked) => {
      const breaker = make();
      const state = limited();
      if (isBlocked) blockAt1000(breaker, state);
      breaker.onRejected(state, failed(1010, { attributes: REQUEST }), 1010);
      return breaker.detector.hasSenderFailed(REQUEST, { scope: ANY_REQUEST, since: 1000 });
    });
    expect(hasFailed).toEqual([true, false]);
  });

  test('blocks after a recovery only if errors are in a row, for ten seconds', () => {
    const isBlockedAt = [11_059, 11_060].map((now) => {
      const breaker = make();
      const state = limited();
      blockAt1000(breaker, state);
      breaker.endIfProven(state, 1050, 1060, REQUEST);
      for (let i = 0; i < 7; i += 1) breaker.onFailed(state, failed(now), now);
      breaker.detector.onAccepted(now, now, undefined);
      return breaker.onFailed(state, failed(now), now) !== undefined;
    });
    expect(isBlockedAt).toEqual([false, true]);
  });

  test('counts no errors from before the end of a block', () => {
    const breaker = make();
    const state = limited();
    blockAt1000(breaker, state);
    for (let i = 0; i < 7; i += 1) breaker.onFailed(state, failed(1010), 1010);
    breaker.endIfProven(state, 1050, 1060, REQUEST);
    expect(breaker.onFailed(state, failed(1070), 1070)).toBeUndefined();
  });

  test('starts a block during another one from the state before that, and widens its scope', () => {
    const breaker = make();
    const state = limited();
    const reject = (attributes: RequestAttributes, now: number): void => {
      const rejection = failed(now, { attributes });
      for (let i = 0; i < 3; i += 1) breaker.onRejected(state, rejection, now);
      breaker.block(state, { cause: 'rejections', failure: rejection, acceptedRate: 20 }, now);
    };
    reject(REQUEST, 1000);
    expect(breaker.status(1000)?.scope).toEqual(REQUEST);
    state.rate = 7;
    reject([1, 2, 9, 9, 9, 9, 9, 9], 2000);
    expect(breaker.status(2000)?.scope).toEqual([1, 2, 0, 0, 0, 0, 0, 0]);
    expect(breaker.blocks.latest?.stateBefore.rate).toBe(40);
  });

  test('restores the state before a block of all requests when another one begins', () => {
    const breaker = make();
    const state = limited();
    blockAt1000(breaker, state);
    state.rate = 7;
    blockAt1000(breaker, state);
    expect([state.rate, breaker.blocks.latest?.stateBefore.rate]).toEqual([40, 40]);
  });

  test('blocks, during another block, what the rejections have in common with the last of them', () => {
    const breaker = make();
    const state = limited();
    blockAt1000(breaker, state);
    breaker.detector.onAccepted(1500, 1500, undefined);
    for (let i = 0; i < 3; i += 1) breaker.onRejected(state, failed(2000, { attributes: REQUEST }), 2000);
    const last = failed(2000, { attributes: [1, 2, 9, 9, 9, 9, 9, 9] });
    breaker.onRejected(state, last, 2000);
    breaker.block(state, { cause: 'rejections', failure: last, acceptedRate: 20 }, 2000);
    expect(breaker.status(2000)?.scope).toEqual([1, 2, 0, 0, 0, 0, 0, 0]);
  });

  test('blocks at first what the rejections have in common, whatever the last of them is', () => {
    const breaker = make();
    const state = limited();
    const other = failed(1000, { attributes: [9, 9, 9, 9, 9, 9, 9, 9] });
    for (let i = 0; i < 3; i += 1) breaker.onRejected(state, failed(1000, { attributes: REQUEST }), 1000);
    breaker.onRejected(state, other, 1000);
    breaker.block(state, { cause: 'rejections', failure: other, acceptedRate: 20 }, 1000);
    expect(breaker.status(1000)?.scope).toEqual(REQUEST);
  });

  test('keeps a limited rate while blocked, and whether the rate was exceeded', () => {
    for (const overrun of [true, false]) {
      const breaker = make();
      const state = limited();
      blockAt1000(breaker, state, { overrun });
      breaker.endIfProven(state, 1050, 1060, REQUEST);
      state.phase = 'restoring';
      breaker.block(state, { cause: 'errors', failure: failed(2000, { overrun }), acceptedRate: 20 }, 2000);
      expect(state.rate).toBe(40); // the ceiling is 50
      expect(breaker.blocks.latest).toMatchObject({ rateBefore: 50, isOverrun: overrun });
    }
  });

  describe('that resumes a block of another process', () => {
    const status = { cause: 'errors', scope: [1, 0, 0, 0, 0, 0, 0, 0], since: 0, isPartial: false } as const;
    const known = { ...status, probeAt: 3000, expectedAt: 0, heldClient: 2, heldClientUntil: 9000 };

    test('has its scope, its next probe and its held client, and ignores a second block', () => {
      const breaker = make();
      const state = limited();
      breaker.resume(state, known, 1000);
      breaker.resume(state, { ...known, probeAt: 2000, heldClient: 5 }, 1000);
      expect([state.phase, state.rate]).toEqual(['blocked', 40]);
      expect(breaker.status(1000)).toMatchObject({
        ...{ cause: 'errors', scope: known.scope, since: 1000, probeAt: 3000, heldClient: 2, heldClientUntil: 9000 },
      });
    });

    test('has its probe no earlier than now, and no later than the longest delay', () => {
      const probeAt = (at: number): number | undefined => {
        const breaker = make();
        breaker.resume(limited(), { ...known, probeAt: at }, 1000);
        return breaker.probeAt;
      };
      expect([probeAt(500), probeAt(900_000)]).toEqual([1000, 31_000]);
    });

    test('remembers whether the limit was unlimited', () => {
      const resumed = [open(), limited()].map((state) => {
        const breaker = make();
        breaker.resume(state, known, 1000);
        return breaker.blocks.latest;
      });
      expect(resumed).toMatchObject([
        { wasUnlimited: true, isResumed: true, isOverrun: false },
        { wasUnlimited: false, isResumed: true, isOverrun: false },
      ]);
    });

    test('assumes five a second for an unlimited limit, or the minimum rate', () => {
      const rates = [0.1, 8].map((minRate) => {
        const state = open();
        make({ minRate }).resume(state, known, 1000);
        return state.rate;
      });
      expect(rates).toEqual([5, 8]);
    });

    test('returns to the state before, because the rate before the block is unknown in this process', () => {
      const breaker = make();
      const state = limited();
      breaker.resume(state, known, 1000);
      expect(breaker.endIfProven(state, 3000, 3010, REQUEST)).toMatchObject({ isPartial: true });
      expect([state.phase, state.rate, breaker.isActive, breaker.isReopenDue(900_000)]).toEqual([
        ...['cooldown', 40, false, false],
      ]);
    });
  });
});
