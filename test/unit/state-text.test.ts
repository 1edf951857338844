import { describe, expect, test } from 'vitest';
import type { Learned } from '../../src/store/persistence/learned-state.ts';
import type { StateContext } from '../../src/store/persistence/state-codec.ts';
import { ANYWHERE } from '../../src/core/rate/breaker/request-attributes.ts';
import { BLOCKS_LAST, RATES_LAST, readState, writeState } from '../../src/store/persistence/state-codec.ts';

const WALL = Date.parse('2026-03-01T12:00:00.000Z');
const written: StateContext = {
  wallClock: WALL,
  now: 5000,
  hashedBy: 'abc',
  origins: new Map([['api', ['https://api.example']]]),
};
const limit = {
  ref: { upstream: 'api', nested: '', scope: 'upstream', key: '' },
  rate: 84,
  ceiling: 120,
  places: 7,
  blockedUntil: 65_000,
} as const;
const ofClient = {
  ...limit,
  ref: { upstream: 'api', nested: '', scope: 'client', key: 'c1' },
  blockedUntil: undefined,
} as const;
const learned: Learned = { limits: [limit, ofClient], holds: [{ client: 'api\0c1', until: 35_000 }] };
const text = writeState(learned, written);

/** As the next process reads it, whose monotonic clock began anew. @param later milliseconds by the wall */
function readLater(later: number, context: Partial<StateContext> = {}, from = text) {
  return readState(from, { ...written, wallClock: WALL + later, now: 100, ...context });
}

function known(read: ReturnType<typeof readLater>): Learned {
  if (read.kind === 'ignored') throw new Error(read.why);
  return read.learned;
}

describe('what was learned', () => {
  test('comes back with its times on the clock of the process that reads it', () => {
    const read = readLater(10_000);
    expect(read).toMatchObject({ kind: 'learned', leftOut: [] });
    expect(known(read)).toEqual({
      limits: [{ ...limit, blockedUntil: 100 + 50_000 }, ofClient],
      holds: [{ client: 'api\0c1', until: 100 + 20_000 }],
    });
  });

  test('holds and blocks end at their time, by the wall', () => {
    const { limits, holds } = known(readLater(61_000));
    expect(limits[0]?.blockedUntil).toBeUndefined();
    expect(holds).toEqual([]);
  });

  test('rates are too old after an hour, but what is blocked is blocked', () => {
    const long = writeState({ limits: [{ ...limit, blockedUntil: 5000 + 2 * RATES_LAST }], holds: [] }, written);
    const read = readLater(RATES_LAST + 1, {}, long);
    expect(read).toMatchObject({ leftOut: ['rates: they are too old'] });
    expect(known(read).limits).toEqual([
      { ...limit, rate: undefined, ceiling: undefined, places: undefined, blockedUntil: 100 + RATES_LAST - 1 },
    ]);
  });

  describe('of a quota that is spent', () => {
    const blockedBy = (credential: number | undefined, isCommon: boolean) => {
      const quotaOwner = { credential, client: 7, isCommon, isSpent: true, until: 65_000 };
      return writeState({ limits: [{ ...limit, quotaOwner }], holds: [] }, written);
    };
    const stopIn = (from: string, context: Partial<StateContext> = {}) => {
      const [read] = known(readLater(10_000, context, from)).limits;
      return [read?.rate, read?.blockedUntil, read?.quotaOwner];
    };

    test('comes back with whom that is about', () => {
      const quotaOwner = { credential: 12, client: 7, isCommon: false, isSpent: true, until: 50_100 };
      expect(stopIn(blockedBy(12, false))).toEqual([84, 50_100, quotaOwner]);
    });

    test('is left out where nobody knows any more whom it is about, and the rate is not', () => {
      for (const [credential, isCommon] of [
        [12, true],
        [12, false],
        [0, false],
      ] as const) {
        expect(stopIn(blockedBy(credential, isCommon), { hashedBy: 'other' })).toEqual([84, undefined, undefined]);
      }
      expect(stopIn(blockedBy(0, true), { hashedBy: undefined })[1]).toBe(50_100);
    });
  });

  describe('of what is blocked', () => {
    const block = {
      ...{ cause: 'errors' as const, since: 1000, isPartial: true, probeAt: 35_000, expectedAt: 35_000 },
      ...{ asked: 3, askedUntil: 305_000 },
    } as const;
    const ofPath = [0, 0, 0, 11, 12, 0, 0, 0];
    const blockIn = (scope: readonly number[], later: number, context: Partial<StateContext> = {}) => {
      const from = writeState(
        { limits: [{ ...limit, blockedUntil: undefined, block: { ...block, scope } }], holds: [] },
        written,
      );
      return known(readLater(later, context, from)).limits[0]?.block;
    };

    test('comes back with what that is, and when it is tried next', () => {
      const times = { since: 100 - 14_000, probeAt: 20_100, expectedAt: 20_100, askedUntil: 290_100 };
      expect(blockIn(ofPath, 10_000)).toEqual({ ...block, ...times, scope: ofPath });
    });

    test('is left out where its hashes mean nothing any more, unless it is about all', () => {
      expect(blockIn(ofPath, 10_000, { hashedBy: 'other' })).toBeUndefined();
      expect(blockIn([...ANYWHERE], 10_000, { hashedBy: 'other' })).toMatchObject({ scope: ANYWHERE });
    });

    test('is left out a minute after it was to be tried again', () => {
      expect(blockIn(ofPath, 30_000 + BLOCKS_LAST)).toMatchObject({ scope: ofPath });
      expect(blockIn(ofPath, 30_001 + BLOCKS_LAST)).toBeUndefined();
    });

    test('of nobody who was asked to wait, comes back so', () => {
      const nobody = { ...block, asked: 0, askedUntil: Number.NEGATIVE_INFINITY, scope: ofPath };
      const from = writeState({ limits: [{ ...limit, block: nobody }], holds: [] }, written);
      expect(known(readLater(0, {}, from)).limits[0]?.block?.askedUntil).toBe(Number.NEGATIVE_INFINITY);
    });
  });

  test('is of an upstream at one of the places where it was; elsewhere it is another', () => {
    const elsewhere = readLater(0, { origins: new Map([['api', ['https://other.example']]]) });
    expect(elsewhere).toMatchObject({ leftOut: ['api: it is elsewhere now'] });
    expect(known(elsewhere)).toEqual({ limits: [], holds: [] });
    const more = readLater(0, { origins: new Map([['api', ['https://b.example', 'https://api.example']]]) });
    expect(known(more).limits).toHaveLength(2);
    expect(readLater(0, { origins: new Map() })).toMatchObject({ leftOut: ['api: no upstream has this name'] });
  });

  test('of clients nothing is known where they are called by another secret, nor written where that is made up', () => {
    const other = readLater(0, { hashedBy: 'xyz' });
    expect(other).toMatchObject({ leftOut: ['clients: the secret is another'] });
    expect(known(other)).toMatchObject({ limits: [{ ref: limit.ref }], holds: [] });
    const madeUp = writeState(learned, { ...written, hashedBy: undefined });
    expect(madeUp).not.toContain('c1');
    expect(known(readLater(0, { hashedBy: undefined }, madeUp)).limits).toHaveLength(1);
  });
});

describe('a state that cannot be used is ignored, and says why', () => {
  test.each([
    ['empty', '', 'it is broken'],
    ['cut off', text.slice(0, 100), 'it is broken'],
    ['of other bytes', '\0\0\0', 'it is broken'],
    ['a list', '[]', 'it is broken'],
    ['with a rate below zero', text.replace('"rate":84', '"rate":-84'), 'it is broken'],
    ['with a rate that is text', text.replace('"rate":84', '"rate":"84"'), 'it is broken'],
    [
      'of another version',
      text.replace('"version":1', '"version":2'),
      'it is of another version of Tidegate than this',
    ],
  ])('%s', (_, broken, why) => {
    expect(readLater(0, {}, broken)).toEqual({ kind: 'ignored', why });
  });

  test('written later than now', () => {
    expect(readLater(-120_000)).toEqual({
      kind: 'ignored',
      why: 'it was written later than now: a clock has been set',
    });
  });
});
