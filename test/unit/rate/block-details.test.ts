/** The parts of a block, each tested separately and at its bounds. */
import { describe, expect, test } from 'vitest';
import type { ActiveBlock, BlockParameters } from '../../../src/core/rate/breaker/active-block.ts';
import {
  blackoutEnd,
  clientHeldUntilIn,
  createBlock,
  expectedBlockTime,
  isBlackout,
  isBlockedBy,
  isUnused,
  probeDelay,
  probeInterval,
  probeOverdueFor,
  provesRecovery,
  readBlockStatus,
  scheduleProbe,
} from '../../../src/core/rate/breaker/active-block.ts';
import { estimateRateBefore } from '../../../src/core/rate/breaker/block-trigger.ts';
import { MajorityVote } from '../../../src/core/rate/breaker/majority-vote.ts';
import { RecentSenders } from '../../../src/core/rate/breaker/recent-senders.ts';
import { RequestRecords } from '../../../src/core/rate/breaker/request-records.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import {
  addressNumberOf,
  ANY_REQUEST,
  areSameAttributes,
  attributesOfClient,
  classifyBlockedPart,
  clientNumberOf,
  commonAttributes,
  isPathOnly,
  listCandidateParts,
  makeRequestAttributes,
  matchesAttributes,
  definingAttributes,
  narrowToAddress,
  partOfSender,
  pathNumbersOf,
} from '../../../src/core/rate/breaker/request-attributes.ts';
import { hashToNumber } from '../../../src/core/quota/requester.ts';
import { rateState } from '../../support/core/rate-builders.ts';
import type { Millis } from '../../../src/core/scalars.ts';

const PARAMETERS = {
  cause: 'rejections',
  scope: [...ANY_REQUEST],
  rateBefore: 100,
  wasUnlimited: false,
  stateBefore: rateState(),
  isResumed: false,
  isOverrun: false,
  probeTimeout: 30_000,
  interval: (failedProbes: number) => 100 * 2 ** failedProbes,
} as unknown as BlockParameters;

const REQUEST: RequestAttributes = [1, 2, 3, 4, 5, 6, 7, 8];

/** A block since 1000. */
function block(changes: Partial<ActiveBlock> = {}): ActiveBlock {
  return { ...createBlock(PARAMETERS, 1000), ...changes };
}

describe('a new block', () => {
  test('blocks all requests, with a probe due at once and no client held', () => {
    expect(createBlock(PARAMETERS, 1000)).toEqual({
      ...PARAMETERS,
      since: 1000,
      isPartial: false,
      failedProbes: 0,
      lastRejectedProbeAt: 1000,
      probeAt: 1000,
      heldClient: 0,
      heldClientUntil: Number.NEGATIVE_INFINITY,
      repeatAt: 1000,
      probeSentAt: undefined,
      earlierProbes: [],
      overdueProbes: 0,
      probeSource: [],
      hasProbeSenderFailed: false,
      unansweredPaths: [],
      failedSendersPaths: [],
    });
  });

  test('reports the time of its next probe or, while one is in flight, of the loss of that probe', () => {
    expect(readBlockStatus(block({ probeAt: 1500 }), 1200)).toEqual({
      cause: 'rejections',
      scope: ANY_REQUEST,
      since: 1000,
      isPartial: false,
      probeAt: 1500,
      expectedAt: 1500,
      heldClient: 0,
      heldClientUntil: Number.NEGATIVE_INFINITY,
    });
    expect(readBlockStatus(block({ probeAt: 1500, probeSentAt: 1600, overdueProbes: 4 }), 1700)).toMatchObject({
      probeAt: 31_600,
      expectedAt: 1800, // 1600 and the interval after one failed probe
    });
  });
});

describe('a block applies', () => {
  const scope = [1, 0, 0, 0, 0, 0, 0, 0];

  test('to the requests of its scope', () => {
    expect(isBlockedBy({ scope, isPartial: true }, REQUEST)).toBe(true);
    expect(isBlockedBy({ scope, isPartial: false }, [9, 2, 3, 4, 5, 6, 7, 8])).toBe(false);
  });

  test('to requests without attributes, unless others have passed', () => {
    expect(isBlockedBy({ scope, isPartial: false })).toBe(true);
    expect(isBlockedBy({ scope, isPartial: true })).toBe(false);
  });
});

describe('the client that the upstream asked to wait', () => {
  const held = { heldClient: 2, heldClientUntil: 7000 };

  test('is no probe before its time, and every other client may be', () => {
    expect(clientHeldUntilIn(held, REQUEST)).toBe(7000);
    expect(clientHeldUntilIn(held, [1, 9, 3, 4, 5, 6, 7, 8])).toBe(Number.NEGATIVE_INFINITY);
    expect(clientHeldUntilIn(held)).toBe(Number.NEGATIVE_INFINITY);
    expect(clientHeldUntilIn({ heldClient: 0, heldClientUntil: 7000 }, ANY_REQUEST)).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe('the time until a request may be sent as a probe', () => {
  test('is that of the next probe, of the hold of its client, or of repeated senders', () => {
    const waiting = block({ probeAt: 1500, repeatAt: 1900, heldClient: 2, heldClientUntil: 2500 });
    expect(probeDelay(waiting, 1200, [1, 9])).toBe(300);
    expect(probeDelay(waiting, 1200, [1, 9], 0)).toBe(700);
    expect(probeDelay(waiting, 1200, [1, 9], 0.5)).toBe(900);
    expect(probeDelay(block({ probeAt: 1500, repeatAt: 99_000 }), 1200, [1, 9], 1)).toBe(98_800);
    expect(probeDelay(waiting, 1200, REQUEST)).toBe(1300);
    expect(probeDelay(waiting, 1500)).toBe(0);
    expect(probeDelay(waiting, 1600)).toBe(0);
    expect(probeDelay(block({ probeAt: 1500, probeSentAt: 1500, overdueProbes: 4 }), 1600)).toBe(29_900);
  });

  test('is overdue only while no probe is in flight', () => {
    expect(probeOverdueFor(block({ probeAt: 1500 }), 1800)).toBe(300);
    expect(probeOverdueFor(block({ probeAt: 1500 }), 1400)).toBe(0);
    expect(probeOverdueFor(block({ probeAt: 1500, probeSentAt: 1500 }), 1800)).toBe(0);
  });

  test('is expected to end with the next probe, and later while one is overdue, until that counts as lost', () => {
    expect(expectedBlockTime(block({ probeAt: 1500 }), 1200)).toBe(300);
    expect(expectedBlockTime(block({ probeAt: 1500 }), 1700)).toBe(0);
    const inFlight = block({ probeAt: 1500, probeSentAt: 1600, failedProbes: 1 }); // the next one is due at 2000
    expect(expectedBlockTime(inFlight, 1700)).toBe(300);
    expect(expectedBlockTime(inFlight, 2000)).toBe(0);
    expect(expectedBlockTime(inFlight, 2100)).toBe(100);
    expect(expectedBlockTime(inFlight, 3500)).toBe(100);
    expect(expectedBlockTime({ ...inFlight, overdueProbes: 4 }, 31_000)).toBe(600);
    expect(expectedBlockTime(block({ ...inFlight, repeatAt: 2400 }), 1700, REQUEST, true)).toBe(700);
    expect(expectedBlockTime(block({ ...inFlight, repeatAt: 2400 }), 1700, REQUEST)).toBe(300);
    expect(expectedBlockTime({ ...inFlight, overdueProbes: 4 }, 2001)).toBe(29_599); // until that one counts as lost
    expect(expectedBlockTime({ ...inFlight, overdueProbes: 4 }, 2000)).toBe(0);
  });

  test('is up to 2 s longer for a path that has a probe without a response', () => {
    const inFlight = block({ probeAt: 1500, probeSentAt: 1600, failedProbes: 1, probeSource: REQUEST });
    const same: RequestAttributes = [9, 9, 9, 4, 5, 6, 7, 8];
    expect([same, REQUEST, undefined].map((each) => probeDelay(inFlight, 1700, each))).toEqual([3900, 3900, 1900]);
    // The next one is expected after this one fails. From 2800 on, this one counts as slow.
    expect([1700, 2799, 2800].map((now) => expectedBlockTime(inFlight, now, same))).toEqual([300, 799, 2800]);
    const ofFailed = { ...inFlight, hasProbeSenderFailed: true };
    expect(probeDelay(ofFailed, 1700, same)).toBe(1900);
    expect(expectedBlockTime(ofFailed, 2800, same)).toBe(800);
    expect(expectedBlockTime(block({ probeAt: 1500, probeSource: REQUEST }), 1200, same)).toBe(300);
  });
});

describe('a partial block expires', () => {
  test('five minutes after its probe was due and its client may return', () => {
    const partial = block({ isPartial: true, probeAt: 1500 });
    expect(isUnused(partial, 301_500)).toBe(false);
    expect(isUnused(partial, 301_501)).toBe(true);
    expect(isUnused(block({ ...partial, heldClientUntil: 2000 }), 301_501)).toBe(false);
    expect(isUnused(block({ ...partial, heldClientUntil: 2000 }), 302_001)).toBe(true);
    expect(isUnused(block({ ...partial, probeSentAt: 1600 }), 900_000)).toBe(false);
    expect(isUnused(block({ probeAt: 1500 }), 900_000)).toBe(false);
  });
});

describe('recovery is proven', () => {
  test('by any request sent since the block began, after rejections', () => {
    expect([1000, 1001].map((sentAt) => provesRecovery(block({ probeAt: 5000 }), sentAt))).toEqual([false, true]);
  });

  test('by a probe alone, after errors', () => {
    const errors = block({ cause: 'errors', probeAt: 5000 });
    expect([4999, 5000].map((sentAt) => provesRecovery(errors, sentAt))).toEqual([false, true]);
  });

  test('but by no request outside the scope', () => {
    expect(provesRecovery(block({ scope: [9, 0, 0, 0, 0, 0, 0, 0] }), 9000, REQUEST)).toBe(false);
  });

  test('from the middle between the last failed probe and the accepted one on', () => {
    expect(blackoutEnd(block({ lastRejectedProbeAt: 2000 }), 3000)).toBe(2500);
  });

  test('and required after three rejections in a row', () => {
    const of = (consecutiveRejections: number) => isBlackout(rateState({ consecutiveRejections }));
    expect([2, 3, 4].map(of)).toEqual([false, true, true]);
  });
});

describe('the next probe', () => {
  const LATEST = 10_000;
  const schedule = (
    changes: Partial<ActiveBlock>,
    retryAfterMs?: number,
    attributes?: RequestAttributes,
    { random = 0.5, hasFailedBefore = false, latest = LATEST, sentAt = 2000 } = {},
  ): ActiveBlock => {
    const made = block({ probeSentAt: 1000, ...changes });
    scheduleProbe(made, { sentAt, retryAfterMs, attributes }, latest, 2000, () => random, hasFailedBefore);
    return made;
  };

  test('comes after the interval, more or less by a quarter', () => {
    expect([0, 0.5, 1].map((random) => schedule({}, undefined, undefined, { random }).probeAt)).toEqual([
      2075, 2100, 2125,
    ]);
    expect(schedule({ failedProbes: 3 }).probeAt).toBe(2800);
    expect(schedule({ failedProbes: 20 }).probeAt).toBe(2000 + LATEST);
    expect(schedule({}).probeSentAt).toBeUndefined();
  });

  test('comes after the Retry-After of the failed probe, and ten milliseconds', () => {
    const failed = schedule({ failedProbes: 1 }, 3000, REQUEST);
    expect([failed.probeAt, failed.heldClient, failed.heldClientUntil]).toEqual([5010, 2, 5010]);
    expect(schedule({ failedProbes: 1 }, 50, REQUEST).probeAt).toBe(2200);
    expect(schedule({ failedProbes: 1 }, 60_000, REQUEST)).toMatchObject({ probeAt: 12_000, heldClientUntil: 62_010 });
  });

  test('is delayed by a Retry-After from before the block only for that client, if it is known', () => {
    expect(schedule({}, 3000, REQUEST)).toMatchObject({ probeAt: 2100, heldClient: 2, heldClientUntil: 5010 });
    expect(schedule({}, 3000)).toMatchObject({ probeAt: 5010, heldClient: 0 });
    expect(schedule({}, undefined, REQUEST)).toMatchObject({ probeAt: 2100, heldClient: 0 });
  });

  test('comes after the interval for other senders, if the sender had failed before', () => {
    const failed = schedule({ failedProbes: 1 }, 3000, REQUEST, { hasFailedBefore: true });
    expect([failed.probeAt, failed.repeatAt]).toEqual([2200, 5010]);
    expect(schedule({ failedProbes: 20 }, 3000, REQUEST, { hasFailedBefore: true }).probeAt).toBe(12_000);
  });

  test('of such a sender comes a quarter of the delay later, or two seconds at most', () => {
    expect(schedule({ failedProbes: 1 }).repeatAt).toBe(2250);
    expect(schedule({ failedProbes: 20 }).repeatAt).toBe(2000 + LATEST + 2000);
  });

  test('of such a sender comes a quarter of the time later that it took to fail, or two seconds at most', () => {
    expect(schedule({ failedProbes: 1 }, undefined, undefined, { sentAt: -3000 }).repeatAt).toBe(2200 + 1250);
    expect(schedule({ failedProbes: 1 }, undefined, undefined, { sentAt: -28_000 }).repeatAt).toBe(2200 + 2000);
  });

  test('is never moved to an earlier time', () => {
    expect(schedule({ probeAt: 9000, repeatAt: 9900 })).toMatchObject({ probeAt: 9000, repeatAt: 9900 });
  });

  test('comes after an interval that grows by half with each failure, from 50 ms to 5 s', () => {
    expect([0, 1, 2].map((failed) => probeInterval(failed, 100))).toEqual([50, 75, 112.5]);
    expect([probeInterval(0, 10), probeInterval(1, 10)]).toEqual([100, 150]);
    expect([probeInterval(0, 0.1), probeInterval(30, 100)]).toEqual([5000, 5000]);
  });
});

describe('the rate before a block', () => {
  const estimate = (
    state: Parameters<typeof rateState>[0],
    { acceptedRate = 0, overrun = false, unlimited = false, recovered = 0, recovering = false } = {},
  ) =>
    estimateRateBefore(
      rateState(state),
      { cause: 'errors', failure: { sentAt: 0, retryAfterMs: undefined, overrun }, acceptedRate },
      unlimited,
      recovered,
      recovering,
    );

  test('is that of the limit, or its ceiling if the rate was not the cause', () => {
    expect(estimate({ rate: 40, ceiling: 50 })).toBe(40);
    expect(estimate({ rate: 40, ceiling: 50 }, { overrun: true })).toBe(50);
    expect(estimate({ rate: 40, ceiling: 50 }, { recovering: true })).toBe(50);
  });

  test('without a limit is what was accepted or had recovered, and at least 5', () => {
    const rate = Number.POSITIVE_INFINITY;
    expect(estimate({ rate, ceiling: rate })).toBe(5);
    expect(estimate({ rate, ceiling: rate }, { acceptedRate: 30 })).toBe(30);
    expect(estimate({ rate, ceiling: rate }, { acceptedRate: 30, recovered: 35 })).toBe(35);
    expect(estimate({ rate: 40, ceiling: 50 }, { unlimited: true, acceptedRate: 30 })).toBe(30);
    expect(estimate({ rate: 20, ceiling: 50 }, { unlimited: true, acceptedRate: 30 })).toBe(20);
  });
});

describe('the attributes of a request', () => {
  const hash = hashToNumber;

  test('are the address, the client, the credential, four path prefixes and the whole path', () => {
    expect(makeRequestAttributes('a', 'c', 7, '/1/2/3/4/5', 's')).toEqual(
      [hash('a'), hash('c'), 7, 's/1', 's/1/2', 's/1/2/3', 's/1/2/3/4', 's/1/2/3/4/5'].map((each) =>
        typeof each === 'string' ? hash(each) : each,
      ),
    );
    expect(makeRequestAttributes('a', 'c', 7, '/1/2', 's')).toEqual([
      ...[hash('a'), hash('c'), 7, hash('s/1'), hash('s/1/2'), 0, 0, hash('s/1/2')],
    ]);
    expect(makeRequestAttributes('a', 'c', 7, undefined, 's')).toEqual([hash('a'), hash('c'), 7, 0, 0, 0, 0, 0]);
    expect(attributesOfClient('c')).toEqual([0, hash('c'), 0, 0, 0, 0, 0, 0]);
  });

  test('match a scope in each attribute that it names', () => {
    expect(matchesAttributes(ANY_REQUEST, REQUEST)).toBe(true);
    expect(matchesAttributes([], REQUEST)).toBe(true);
    expect(matchesAttributes([0, 2, 0, 0, 0, 0, 0, 8], REQUEST)).toBe(true);
    expect(matchesAttributes([0, 2, 0, 0, 0, 0, 0, 9], REQUEST)).toBe(false);
    expect(matchesAttributes([9], REQUEST)).toBe(false);
  });

  test('are the same if all of them are equal', () => {
    expect(areSameAttributes(REQUEST, [...REQUEST])).toBe(true);
    expect(areSameAttributes(REQUEST, [...REQUEST.slice(0, 7), 9])).toBe(false);
    expect(areSameAttributes(REQUEST, [9, ...REQUEST.slice(1)])).toBe(false);
  });

  test('in common with another request are the equal ones', () => {
    expect(commonAttributes(REQUEST, [1, 9, 3, 4, 9, 0, 7, 8])).toEqual([1, 0, 3, 4, 0, 0, 7, 8]);
    expect(commonAttributes(REQUEST, [])).toEqual(ANY_REQUEST);
    expect(commonAttributes([], REQUEST)).toEqual(ANY_REQUEST);
  });

  test('include the address and the client, if these are known', () => {
    expect([addressNumberOf(REQUEST), clientNumberOf(REQUEST)]).toEqual([1, 2]);
    expect([addressNumberOf(ANY_REQUEST), clientNumberOf(ANY_REQUEST), clientNumberOf([])]).toEqual([undefined, 0, 0]);
  });

  test('define the parts by path, by address, client and credential, and by these with a path', () => {
    expect(listCandidateParts(REQUEST)).toEqual([
      [0, 0, 0, 4, 0, 0, 0, 0],
      [0, 0, 0, 4, 5, 0, 0, 0],
      [0, 0, 0, 4, 5, 6, 0, 0],
      [0, 0, 0, 4, 5, 6, 7, 0],
      [0, 0, 0, 4, 5, 6, 7, 8],
      [1, 0, 0, 0, 0, 0, 0, 0],
      [0, 2, 0, 0, 0, 0, 0, 0],
      [0, 0, 3, 0, 0, 0, 0, 0],
      [1, 0, 0, 4, 5, 6, 7, 8],
      [0, 2, 0, 4, 5, 6, 7, 8],
    ]);
    expect(listCandidateParts([0, 2, 0, 4, 0, 0, 0, 8])).toEqual([
      [0, 0, 0, 4, 0, 0, 0, 0],
      [0, 0, 0, 4, 0, 0, 0, 8],
      [0, 2, 0, 0, 0, 0, 0, 0],
      [0, 2, 0, 4, 0, 0, 0, 8],
    ]);
    expect(listCandidateParts(ANY_REQUEST)).toEqual([]);
    expect(listCandidateParts([])).toEqual([]);
  });

  test('restrict a part to their address', () => {
    expect(narrowToAddress([0, 0, 0, 4, 0, 0, 0, 0], REQUEST)).toEqual([1, 0, 0, 4, 0, 0, 0, 0]);
    expect(narrowToAddress([1, 0, 0, 4, 0, 0, 0, 0], [])).toEqual([0, 0, 0, 4, 0, 0, 0, 0]);
  });

  test('define the part of a sender by its address or else its client', () => {
    expect(partOfSender(REQUEST, 1)).toEqual([1, 0, 0, 0, 0, 0, 0, 0]);
    expect(partOfSender(REQUEST, 2)).toEqual([0, 2, 0, 0, 0, 0, 0, 0]);
  });

  test('include each prefix of the path, and the path, once', () => {
    expect([REQUEST, [1, 2, 3, 4, 5, 0, 0, 5], [1, 2, 3, 0, 0, 0, 0, 0]].map(pathNumbersOf)).toEqual([
      ...[[4, 5, 6, 7, 8], [4, 5], []],
    ]);
  });

  test('include the whole path, however many segments it has', () => {
    const [deep, deeper] = ['/a/b/c/d/e', '/a/b/c/d/e/f'].map((path) => makeRequestAttributes('', '', 0, path, ''));
    expect(deeper?.slice(3, 7)).toEqual(deep?.slice(3, 7));
    expect(deeper?.at(-1)).toBe(hashToNumber('/a/b/c/d/e/f'));
  });

  test('define a part by path alone only without an address, a client and a credential', () => {
    expect([0, 1, 2].map((i) => isPathOnly(ANY_REQUEST.with(i, 5)))).toEqual([false, false, false]);
    expect([3, 7].map((i) => isPathOnly(ANY_REQUEST.with(i, 5)))).toEqual([true, true]);
  });

  test.each<[string, RequestAttributes]>([
    ['upstream', ANY_REQUEST],
    ['path', [0, 0, 0, 4, 0, 0, 0, 0]],
    ['path', [0, 0, 0, 0, 0, 0, 0, 8]],
    ['address', [1, 0, 3, 0, 0, 0, 0, 0]],
    ['address_path', [1, 0, 0, 4, 0, 0, 0, 0]],
    ['address_path', [1, 0, 0, 0, 0, 0, 0, 8]],
    ['client', [1, 2, 3, 0, 0, 0, 0, 0]],
    ['client_path', [1, 2, 3, 4, 0, 0, 0, 0]],
    ['credential', [0, 0, 3, 0, 0, 0, 0, 0]],
    ['credential_path', [0, 0, 3, 4, 0, 0, 0, 0]],
  ])('define a part of the kind %s: %j', (kind, scope) => {
    expect(classifyBlockedPart(scope)).toBe(kind);
  });
});

describe('the records of requests', () => {
  const results = (records: RequestRecords): number[] =>
    Array.from({ length: records.count }, (_, i) => records.resultAt(i));

  test('are in order, the oldest first, up to their capacity', () => {
    const records = new RequestRecords(3);
    for (let i = 1; i <= 2; i += 1) records.add(i, [10 + i]);
    expect(results(records)).toEqual([1, 2]);
    for (let i = 3; i <= 8; i += 1) records.add(i, [10 + i]);
    expect(results(records)).toEqual([6, 7, 8]);
    expect([15, 16, 18].map((address) => records.tally([address], 8))).toEqual([
      { all: 0, withResult: 0 },
      { all: 1, withResult: 0 },
      { all: 1, withResult: 1 },
    ]);
    records.clear();
    expect(records.count).toBe(0);
    records.add(9, [1]);
    expect([results(records), records.tally([1], 9)]).toEqual([[9], { all: 1, withResult: 1 }]);
  });

  test('are within each scope whose attributes they have', () => {
    const records = new RequestRecords(3);
    records.add(1, [1, 2]);
    const countWithin = (scopes: number[][]): number[] => scopes.map((scope) => records.tally(scope, 1).all);
    expect(countWithin([[], [1], [0, 2], [1, 2]])).toEqual([1, 1, 1, 1]);
    expect(countWithin([[2], [1, 3], [1, 2, 3]])).toEqual([0, 0, 0]);
  });

  test('are within a path if they have its longest prefix', () => {
    expect(definingAttributes([7, 0, 0, 1, 2, 0, 0, 0])).toEqual([0, 4]);
    expect(definingAttributes([0, 0, 3, 1, 2, 3, 4, 5])).toEqual([2, 7]);
    expect(definingAttributes([])).toEqual([]);
  });

  test('name the part that some of their attributes define, unless they lack one of them', () => {
    const records = new RequestRecords(3);
    records.add(1, [1, 2, 0, 4]);
    expect(records.partAt(0, [0, 3])).toBe(5);
    expect(records.partAt(0, [0, 2])).toBeUndefined();
  });

  test('within a scope that lack a result have in common what all of them share, if they are enough', () => {
    const records = new RequestRecords(6);
    const commonOf = (min: number, scope: RequestAttributes = [1]): number[] | undefined =>
      records.commonWithout(1, scope, min);
    expect(commonOf(0)).toBeUndefined();
    records.add(2, [1, 2, 0, 4]);
    expect([commonOf(1), commonOf(2)]).toEqual([[1, 2, 0, 4, 0, 0, 0, 0], undefined]);
    records.add(3, [1, 3, 0, 4]);
    records.add(1, [1, 9, 9, 9]); // has the result
    records.add(2, [5, 2, 0, 4]); // is outside
    expect([commonOf(2), commonOf(3)]).toEqual([[1, 0, 0, 4, 0, 0, 0, 0], undefined]);
    expect([commonOf(3, []), commonOf(4, [])]).toEqual([[0, 0, 0, 4, 0, 0, 0, 0], undefined]);
  });
});

describe('the senders that failed last', () => {
  const EVERYONE = { scope: ANY_REQUEST, since: 20_000 };
  /** Of an address and a client. */
  const of = (address: number, client = 0): RequestAttributes => [address, client];

  test('are stored with the time of their last failure', () => {
    const failures = new RecentSenders();
    const hasFailed = (address: number, since: Millis): boolean =>
      failures.includes(of(address), { ...EVERYONE, since: 10_000 + since });
    failures.add(of(7), 100);
    failures.add(of(8), 200);
    failures.add(of(7), 300);
    expect([hasFailed(7, 300), hasFailed(7, 301)]).toEqual([true, false]);
    expect([hasFailed(8, 200), hasFailed(9, 0)]).toEqual([true, false]);
    failures.add(of(0), 400);
    expect(hasFailed(0, 0)).toBe(false);
  });

  test('are any if one failed since ten seconds before the block', () => {
    const failures = new RecentSenders();
    const hasAny = (): boolean => failures.hasAny({ since: 20_000 });
    expect(hasAny()).toBe(false);
    failures.add(of(7), 9999);
    expect(hasAny()).toBe(false);
    failures.add(of(7), 10_000);
    expect(hasAny()).toBe(true);
  });

  test('are clients if an address is blocked', () => {
    const failures = new RecentSenders();
    failures.add(of(7, 70), 20_000);
    const block = { scope: of(7), since: 20_000 };
    expect([of(7, 70), of(7, 71), of(8, 70)].map((each) => failures.includes(each, block))).toEqual([
      ...[true, false, true],
    ]);
    expect(failures.includes(of(7, 70), { scope: of(7, 70), since: 20_000 })).toBe(false);
  });

  test('are 64 at most', () => {
    const failures = new RecentSenders();
    const hasFailed = (address: number): boolean => failures.includes(of(address), EVERYONE);
    for (let address = 1; address <= 64; address += 1) failures.add(of(address), 20_000);
    expect([1, 64].map(hasFailed)).toEqual([true, true]);
    failures.add(of(65), 20_000);
    failures.add(of(65), 20_001);
    expect([1, 2, 65].map(hasFailed)).toEqual([false, true, true]);
  });
});

describe('a majority vote', () => {
  const voted = (margin: number, ...values: readonly number[]): number => {
    const vote = new MajorityVote(margin);
    for (const value of values) vote.add([value]);
    return vote.common[0] ?? -1;
  };

  test('selects the value of a clear majority', () => {
    expect([voted(0.5, 5, 5, 5, 6), voted(0.5, 5, 5, 6), voted(0.2, 5, 5, 5, 6, 6), voted(0.2, 5, 5, 6)]).toEqual([
      5, 0, 5, 5,
    ]);
    expect(voted(0.5, 6, 5, 5, 5, 5, 5)).toBe(5);
  });

  test('is empty until the first request, and after a reset', () => {
    const vote = new MajorityVote(0.5);
    expect(vote.isEmpty).toBe(true);
    vote.add(undefined);
    expect([vote.isEmpty, vote.common]).toEqual([false, ANY_REQUEST]);
    vote.add([5]);
    vote.clear();
    expect([vote.isEmpty, vote.common]).toEqual([true, ANY_REQUEST]);
    vote.add([6]);
    expect(vote.common).toEqual([6, 0, 0, 0, 0, 0, 0, 0]);
  });

  test('counts halved votes as half', () => {
    const vote = new MajorityVote(0.5);
    for (let i = 0; i < 4; i += 1) vote.add([5]);
    vote.halve();
    vote.add([6]);
    expect(vote.common[0]).toBe(0); // a lead of 1 of 3
    vote.add([5]);
    expect(vote.common[0]).toBe(5); // of 2 of 4
    const other = new MajorityVote(0.5);
    other.add([5]);
    other.halve();
    other.add([6]);
    expect(other.common[0]).toBe(0); // a lead of half a vote of 1.5
  });
});
