import { describe, expect, test } from 'vitest';
import type { LearnedState } from '../../../src/store/persistence/learned-state.ts';
import type { StateContext } from '../../../src/store/persistence/state-codec.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import { BLOCK_MAX_AGE, RATE_MAX_AGE, decodeState, encodeState } from '../../../src/store/persistence/state-codec.ts';

const WALL = Date.parse('2026-03-01T12:00:00.000Z');
const written: StateContext = {
  wallClock: WALL,
  now: 5000,
  secretFingerprint: 'abc',
  origins: new Map([['api', ['https://api.example']]]),
  unitOf: () => undefined,
};
const limit = {
  ref: { upstream: 'api', nested: '', scope: 'upstream', key: '' },
  rate: 84,
  ceiling: 120,
  concurrencyLimit: 7,
  blockedUntil: 65_000,
} as const;
const ofClient = {
  ...limit,
  ref: { upstream: 'api', nested: '', scope: 'client', key: 'c1' },
  blockedUntil: undefined,
} as const;
const learned: LearnedState = { limits: [limit, ofClient], holds: [{ client: 'api\0c1', until: 35_000 }] };
const text = encodeState(learned, written);

/** Decodes as the next process does, with a new monotonic clock. @param later milliseconds by the wall clock */
function readLater(later: number, context: Partial<StateContext> = {}, from = text) {
  return decodeState(from, { ...written, wallClock: WALL + later, now: 100, ...context });
}

function known(read: ReturnType<typeof readLater>): LearnedState {
  if (read.kind === 'ignored') throw new Error(read.reason);
  return read.learned;
}

describe('learned state', () => {
  test('is restored with its times on the clock of the process that reads it', () => {
    const read = readLater(10_000);
    expect(read).toMatchObject({ kind: 'learned', leftOut: [] });
    expect(known(read)).toEqual({
      limits: [{ ...limit, blockedUntil: 100 + 50_000 }, ofClient],
      holds: [{ client: 'api\0c1', until: 100 + 20_000 }],
    });
  });

  test('has its holds and blocks ended at their time, by the wall clock', () => {
    const { limits, holds } = known(readLater(61_000));
    expect(limits[0]?.blockedUntil).toBeUndefined();
    expect(holds).toEqual([]);
  });

  test('has rates dropped after an hour, but blocks kept', () => {
    const long = encodeState({ limits: [{ ...limit, blockedUntil: 5000 + 2 * RATE_MAX_AGE }], holds: [] }, written);
    const read = readLater(RATE_MAX_AGE + 1, {}, long);
    expect(read).toMatchObject({ leftOut: ['rates: older than an hour'] });
    expect(known(read).limits).toEqual([
      {
        ...limit,
        rate: undefined,
        ceiling: undefined,
        concurrencyLimit: undefined,
        blockedUntil: 100 + RATE_MAX_AGE - 1,
      },
    ]);
  });

  describe('the state of a spent quota', () => {
    const blockedBy = (credential: number | undefined, isCommon: boolean) => {
      const quotaOwner = { credential, client: 7, isCommon, isSpent: true, until: 65_000 };
      return encodeState({ limits: [{ ...limit, quotaOwner }], holds: [] }, written);
    };
    const stopIn = (from: string, context: Partial<StateContext> = {}) => {
      const [read] = known(readLater(10_000, context, from)).limits;
      return [read?.rate, read?.blockedUntil, read?.quotaOwner];
    };

    test('is restored with its owner', () => {
      const quotaOwner = { credential: 12, client: 7, isCommon: false, isSpent: true, until: 50_100 };
      expect(stopIn(blockedBy(12, false))).toEqual([84, 50_100, quotaOwner]);
    });

    test('is dropped if its owner is unknown, and the rate is kept', () => {
      for (const [credential, isCommon] of [
        [12, true],
        [12, false],
        [0, false],
      ] as const) {
        expect(stopIn(blockedBy(credential, isCommon), { secretFingerprint: 'other' })).toEqual([
          84,
          undefined,
          undefined,
        ]);
      }
      expect(stopIn(blockedBy(0, true), { secretFingerprint: undefined })[1]).toBe(50_100);
    });
  });

  describe('the state of a block', () => {
    const block = {
      ...{ cause: 'errors' as const, since: 1000, isPartial: true, probeAt: 35_000, expectedAt: 35_000 },
      ...{ heldClient: 3, heldClientUntil: 305_000 },
    } as const;
    const ofPath = [0, 0, 0, 11, 12, 0, 0, 0];
    const blockIn = (scope: readonly number[], later: number, context: Partial<StateContext> = {}) => {
      const from = encodeState(
        { limits: [{ ...limit, blockedUntil: undefined, block: { ...block, scope } }], holds: [] },
        written,
      );
      return known(readLater(later, context, from)).limits[0]?.block;
    };

    test('is restored with its part, and its next probe', () => {
      const times = { since: 100 - 14_000, probeAt: 20_100, expectedAt: 20_100, heldClientUntil: 290_100 };
      expect(blockIn(ofPath, 10_000)).toEqual({ ...block, ...times, scope: ofPath });
    });

    test('is dropped if its hashes are of another secret, unless it concerns all requests', () => {
      expect(blockIn(ofPath, 10_000, { secretFingerprint: 'other' })).toBeUndefined();
      expect(blockIn([...ANY_REQUEST], 10_000, { secretFingerprint: 'other' })).toMatchObject({ scope: ANY_REQUEST });
    });

    test('is dropped a minute after its probe was due', () => {
      expect(blockIn(ofPath, 30_000 + BLOCK_MAX_AGE)).toMatchObject({ scope: ofPath });
      expect(blockIn(ofPath, 30_001 + BLOCK_MAX_AGE)).toBeUndefined();
    });

    test('without a held client is restored without one', () => {
      const nobody = { ...block, heldClient: 0, heldClientUntil: Number.NEGATIVE_INFINITY, scope: ofPath };
      const from = encodeState({ limits: [{ ...limit, block: nobody }], holds: [] }, written);
      expect(known(readLater(0, {}, from)).limits[0]?.block?.heldClientUntil).toBe(Number.NEGATIVE_INFINITY);
    });
  });

  test('drops rates in other units than those of the configuration, and keeps blocks', () => {
    const changed = readLater(0, { unitOf: () => '5' });
    if (changed.kind !== 'learned') throw new Error('was ignored');
    expect(changed.leftOut).toEqual(['rates: what requests cost has changed']);
    expect(changed.learned.limits.map(({ rate }) => rate).every((rate) => rate === undefined)).toBe(true);
  });

  test('is restored for an upstream with one of its earlier endpoints, and for no other', () => {
    const elsewhere = readLater(0, { origins: new Map([['api', ['https://other.example']]]) });
    expect(elsewhere).toMatchObject({ leftOut: ['api: its origins have changed'] });
    expect(known(elsewhere)).toEqual({ limits: [], holds: [] });
    const more = readLater(0, { origins: new Map([['api', ['https://b.example', 'https://api.example']]]) });
    expect(known(more).limits).toHaveLength(2);
    expect(readLater(0, { origins: new Map() })).toMatchObject({ leftOut: ['api: no upstream has this name'] });
  });

  test('excludes clients that were hashed with another secret, or with a random one', () => {
    const other = readLater(0, { secretFingerprint: 'xyz' });
    expect(other).toMatchObject({ leftOut: ['clients: the secret has changed'] });
    expect(known(other)).toMatchObject({ limits: [{ ref: limit.ref }], holds: [] });
    const madeUp = encodeState(learned, { ...written, secretFingerprint: undefined });
    expect(madeUp).not.toContain('c1');
    expect(known(readLater(0, { secretFingerprint: undefined }, madeUp)).limits).toHaveLength(1);
  });
});

describe('unusable state is ignored, with a reason', () => {
  test.each([
    ['empty', '', 'its content is invalid'],
    ['cut off', text.slice(0, 100), 'its content is invalid'],
    ['of other bytes', '\0\0\0', 'its content is invalid'],
    ['a list', '[]', 'its content is invalid'],
    ['with a rate below zero', text.replace('"rate":84', '"rate":-84'), 'its content is invalid'],
    ['with a rate that is text', text.replace('"rate":84', '"rate":"84"'), 'its content is invalid'],
    [
      'of another version',
      text.replace('"version":1', '"version":2'),
      'it was written by a version of Tidegate with another format',
    ],
  ])('%s', (_, broken, reason) => {
    expect(readLater(0, {}, broken)).toEqual({ kind: 'ignored', reason });
  });

  test('with a time in the future', () => {
    expect(readLater(-120_000)).toEqual({
      kind: 'ignored',
      reason: 'it is dated in the future: a clock was set',
    });
  });
});
