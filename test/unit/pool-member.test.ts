/** What a process does with answers and news of a pool that come when something else has come first. */
import { expect, test } from 'vitest';
import { MemoryStore } from '../../src/state/memory.ts';
import type { Borrower } from '../../src/state/pool/borrower.ts';
import { PoolMember } from '../../src/state/pool/pool-member.ts';
import { PooledMeter } from '../../src/state/pool/pooled-meter.ts';
import type { Answer, Call, PoolTerms } from '../../src/state/pool/words.ts';

const RATE = { initialRate: 10, maxRate: 10, minRate: 0.1, cooldown: 1000 };

function terms(told: Partial<PoolTerms> = {}): PoolTerms {
  return {
    epoch: 1,
    phase: 'restoring',
    isFree: false,
    rate: 10,
    ceiling: 10,
    places: undefined,
    blockedUntil: undefined,
    expectedAt: 0,
    isProbeOut: false,
    quotaLeft: undefined,
    others: 0,
    validFor: 100,
    inFlight: 0,
    sends: 0,
    holders: 1,
    ...told,
  };
}

function answer(told: Partial<Answer> = {}): Answer {
  return {
    now: 0,
    terms: terms(),
    slots: [],
    againAt: Number.POSITIVE_INFINITY,
    waitsWith: [],
    cuts: [],
    isNews: false,
    ...told,
  };
}

test.each(['answered', 'not answered'])(
  'a limit that is forgotten while a call is under way, and %s, calls no more',
  (how) => {
    let now = 0;
    const calls: { borrower: Borrower; call: Call }[] = [];
    const away: boolean[] = [];
    const member = new PoolMember({
      holder: 'a',
      clock: { now: () => now },
      random: () => 0.5,
      call: (borrower, call) => void calls.push({ borrower, call }),
      hold: () => undefined,
      onCut: () => undefined,
      rearm: () => undefined,
      onAway: (isAway) => void away.push(isAway),
    });
    const queue = { maxWait: 1000, maxDepth: 10 };
    const store = new MemoryStore({
      upstreams: [{ name: 'api', scope: 'client', rate: RATE, queue, budget: { ratio: 0.2, burst: 10 } }],
      maxTracked: 10,
      maxLimits: 1,
      random: () => 0.5,
      listen: () => undefined,
      makeMeter: (ref, rate) => member.makeMeter(ref, rate),
      sharing: member,
    });
    const supplied: string[] = [];
    member.wire({ store, supply: (limit) => void supplied.push(limit.ref.key) });
    store.make({ upstream: 'api', scope: 'client', key: 'one' });
    member.wake(now);
    store.make({ upstream: 'api', scope: 'client', key: 'two' });
    expect(calls.map(({ borrower }) => borrower.ref.key)).toEqual(['one']);
    now = 10;
    if (how === 'answered') calls[0]?.borrower.hear(answer({ now, slots: [20, 30] }), now);
    else calls[0]?.borrower.miss(now);
    for (; now < 5000; now += 10) member.wake(now);
    expect(calls.map(({ borrower }) => borrower.ref.key)).toEqual(['one', 'two']);
    expect(supplied).toEqual([]);
    expect(away).toEqual([]);
  },
);

test('an answer that news has overtaken tells nothing of how the limit stands', () => {
  const meter = new PooledMeter(
    RATE,
    () => 0.5,
    () => undefined,
  );
  meter.hear(terms({ epoch: 2, rate: 8 }), [], 0);
  expect(meter.hearNews(terms({ epoch: 3, rate: 4, ceiling: 5 }), 10)).toBe(true);
  meter.hear(terms({ epoch: 2, rate: 8 }), [15, 20], 11);
  expect(meter.inHand).toBe(0);
  expect(meter.rate(12)).toBe(4);
  expect(meter.tell(0, 12).known).toEqual({ epoch: 3, since: 10, rate: 4, ceiling: 5 });
});
