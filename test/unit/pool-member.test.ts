/** What a process does with answers and news of a pool that come when something else has come first. */
import { expect, test } from 'vitest';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import type { Borrower } from '../../src/sharing/replicas/lease-client.ts';
import type { PoolSign } from '../../src/sharing/replicas/replica-limit-client.ts';
import { PoolMember } from '../../src/sharing/replicas/replica-limit-client.ts';
import { PooledMeter } from '../../src/sharing/replicas/replica-meter.ts';
import type { Answer, Call, News, PoolTerms } from '../../src/sharing/replicas/replica-protocol.ts';
import { upstreamSettings } from '../support/policy.ts';

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
    block: undefined,
    expectedAt: 0,
    isProbeOut: false,
    quotaLeft: undefined,
    quotaOwner: undefined,
    isQuotaApart: false,
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

function news(now: number, told: Partial<PoolTerms>): News {
  return { name: 'a limit', terms: terms(told), now };
}

interface Process {
  now: number;
  readonly store: MemoryStore;
  readonly calls: { readonly borrower: Borrower; readonly call: Call }[];
  /** Whether the pool was said to be away, each time that it was. */
  readonly away: boolean[];
  readonly supplied: string[];
  readonly hearSign: (sign: PoolSign) => void;
  /** Lets time go by. */
  readonly until: (time: number) => void;
}

/** A process with limits of clients, as many as may be. @param isAway calls are not answered by then */
function startProcess(maxLimits: number, isAway?: (now: number) => boolean, chance = 0.5): Process {
  const calls: Process['calls'] = [];
  const away: boolean[] = [];
  const supplied: string[] = [];
  const member = new PoolMember({
    holder: 'a',
    clock: { now: () => process.now },
    random: () => chance,
    call: (borrower, call) => void calls.push({ borrower, call }),
    hold: () => undefined,
    onCut: () => undefined,
    rearm: () => undefined,
    onAway: (each) => void away.push(each),
  });
  const store = new MemoryStore({
    upstreams: [upstreamSettings({ scope: 'client', rate: RATE })],
    maxTracked: 10,
    maxLimits,
    random: () => 0.5,
    listen: () => undefined,
    makeMeter: (ref, rate) => member.makeMeter(ref, rate),
    sharing: member,
  });
  member.wire({ store, supply: (limit) => void supplied.push(limit.ref.key) });
  const until = (time: number): void => {
    for (; process.now < time; process.now += 10) {
      const before = calls.length;
      member.wake(process.now);
      if (isAway === undefined) continue;
      for (const { borrower } of calls.slice(before)) {
        if (isAway(process.now)) borrower.miss(process.now);
        else borrower.hear(answer({ now: process.now }), process.now);
      }
    }
  };
  const hearSign = (sign: PoolSign): void => member.hearSign(sign, process.now);
  const process: Process = { now: 0, store, calls, away, supplied, hearSign, until };
  return process;
}

const of = (key: string): LimitRef => ({ upstream: 'up', nested: '', scope: 'client', key });

test.each(['answered', 'not answered'])(
  'a limit that is forgotten while a call is under way, and %s, calls no more',
  (how) => {
    const process = startProcess(1);
    const { store, calls } = process;
    const called = (): string[] => calls.map(({ borrower }) => borrower.ref.key);
    store.make(of('one'));
    process.until(10);
    store.make(of('two'));
    expect(called()).toEqual(['one']);
    if (how === 'answered') calls[0]?.borrower.hear(answer({ now: 10, slots: [20, 30] }), 10);
    else calls[0]?.borrower.miss(10);
    process.until(5000);
    expect(called()).toEqual(['one', 'two']);
    expect(process.supplied).toEqual([]);
    expect(process.away).toEqual([]);
  },
);

test.each([
  [0, [130, 250, 500, 1000, 1000]],
  [0.999, [250, 500, 1000, 2000, 2000]],
])(
  'a pool that is away is tried again later and later, and not by all at the same time: by chance %d',
  (chance, pauses) => {
    const process = startProcess(1, () => true, chance);
    process.store.make(of('one'));
    const at: number[] = [];
    for (let calls = 0; at.length < 6; process.until(process.now + 10)) {
      if (process.calls.length > calls) at.push(process.now);
      calls = process.calls.length;
    }
    expect(at.slice(1).map((time, i) => time - (at[i] ?? 0))).toEqual(pauses);
  },
);

test('a pool that can be reached is asked at once, though another process has told of it a moment ago', () => {
  const process = startProcess(1, (now) => now < 4100);
  process.store.make(of('one'));
  process.until(4000);
  process.hearSign('told');
  process.until(4060);
  const { length } = process.calls;
  process.hearSign('told'); // it comes too often to be believed each time
  process.until(4110);
  expect(process.calls).toHaveLength(length);
  process.hearSign('connected');
  process.until(4200);
  expect(process.away).toEqual([true, false]);
});

// Seen: it had been dropped from those that are alone when another had found the pool, and was not counted again.
test('that the pool is away is told again by a limit that nobody had used since it was away before', () => {
  let isAway = true;
  const process = startProcess(2, () => isAway);
  const [one, other] = [process.store.make(of('one')), process.store.make(of('other'))];
  process.until(3000);
  isAway = false;
  one.meter.sent(process.now);
  one.meter.ended(process.now);
  process.until(12_000);
  expect(process.away).toEqual([true, false]);
  isAway = true;
  other.meter.sent(process.now);
  process.until(13_000);
  expect(process.away).toEqual([true, false, true]);
});

test('that the pool is back is found though nobody uses any limit, and by one of them', () => {
  const process = startProcess(100, (now) => now < 30_000);
  for (let i = 0; i < 100; i += 1) process.store.make(of(`${i}`));
  process.until(20_000);
  const before = process.calls.length;
  process.until(30_000);
  expect(process.away).toEqual([true]);
  expect(process.calls.length - before).toBeGreaterThanOrEqual(5);
  expect(process.calls.length - before).toBeLessThanOrEqual(10);
  process.until(33_000);
  expect(process.away).toEqual([true, false]);
});

test('that a limit is forgotten does not say that the pool is back', () => {
  const process = startProcess(2, (now) => now < 60_000);
  for (let i = 0; i < 5; i += 1) {
    process.store.make(of(`${i}`));
    process.until(process.now + 10_000);
  }
  expect(process.away).toEqual([true]);
  process.until(63_000);
  expect(process.away).toEqual([true, false]);
});

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

// Seen: a client was told to come back in 57 years, for the pool counts from 1970.
test('news that comes before the first answer is not believed: its times are no times of ours yet', () => {
  const process = startProcess(10);
  const limit = process.store.make(of('one'));
  process.until(10);
  const [first] = process.calls;
  const pool = 1.8e12;
  first?.borrower.hearNews(news(pool + 10, { epoch: 2, phase: 'backoff', expectedAt: pool + 100 }), 10);
  expect([limit.meter.phase, limit.meter.expected(10)]).toEqual(['restoring', 0]);
  first?.borrower.hear(answer({ now: pool + 10, terms: terms({ epoch: 2, expectedAt: pool + 60 }) }), 10);
  first?.borrower.hearNews(news(pool + 20, { epoch: 3, phase: 'backoff', expectedAt: pool + 110 }), 20);
  expect(limit.meter.phase).toBe('backoff');
  expect(limit.meter.expected(20)).toBeGreaterThan(50);
  expect(limit.meter.expected(20)).toBeLessThan(150);
});

test('news of a pool whose clock was set since it answered is read by the clock as it is now', () => {
  const process = startProcess(10);
  const limit = process.store.make(of('one'));
  process.until(10);
  const [first] = process.calls;
  const hour = 3_600_000;
  first?.borrower.hear(answer({ now: 10, terms: terms({ epoch: 2, expectedAt: 60 }) }), 10);
  first?.borrower.hearNews(news(hour + 20, { epoch: 3, phase: 'blocked', blockedUntil: hour + 2020 }), 20);
  expect(limit.meter.blockedUntil).toBe(2020);
});
