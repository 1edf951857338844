/** Responses and messages of a backend that arrive out of order. */
import { expect, test } from 'vitest';
import type { LimitScope } from '../../../src/core/limits/limit-state.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { LeaseClient } from '../../../src/sharing/replicas/lease-client.ts';
import type { RecoverySign } from '../../../src/sharing/replicas/replica-limit-client.ts';
import { ReplicaLimitClient } from '../../../src/sharing/replicas/replica-limit-client.ts';
import { ReplicaMeter } from '../../../src/sharing/replicas/replica-meter.ts';
import type {
  LeaseResponse,
  LeaseRequest,
  TermsBroadcast,
  ReplicaTerms,
} from '../../../src/sharing/replicas/replica-protocol.ts';
import { upstreamSettings } from '../../support/core/policy-builders.ts';

const RATE = { initialRate: 10, maxRate: 10, minRate: 0.1, cooldown: 1000 };

function terms(fields: Partial<ReplicaTerms> = {}): ReplicaTerms {
  return {
    epoch: 1,
    phase: 'restoring',
    isUnlimited: false,
    rate: 10,
    ceiling: 10,
    concurrencyLimit: undefined,
    limitsUnanswered: false,
    isLatencyTest: false,
    blockedUntil: undefined,
    block: undefined,
    expectedAt: 0,
    isProbeOut: false,
    awaitsPlace: false,
    quotaLeft: undefined,
    quotaOwner: undefined,
    isQuotaPerRequester: false,
    countsResponses: false,
    otherWeight: 0,
    otherDemandWeight: 0,
    otherUnanswered: 0,
    validFor: 100,
    inFlight: 0,
    sendCount: 0,
    replicas: 1,
    ...fields,
  };
}

function answer(fields: Partial<LeaseResponse> = {}): LeaseResponse {
  return {
    now: 0,
    terms: terms(),
    slots: [],
    askAgainAt: Number.POSITIVE_INFINITY,
    waitingReplicas: [],
    returningReplicas: [],
    decreases: [],
    shouldBroadcast: false,
    ...fields,
  };
}

function news(now: number, fields: Partial<ReplicaTerms>): TermsBroadcast {
  return { limitId: 'a limit', terms: terms(fields), now };
}

interface Process {
  now: number;
  readonly store: MemoryStore;
  readonly calls: { readonly client: LeaseClient; readonly call: LeaseRequest }[];
  /** Each report on whether the backend is unreachable, in order. */
  readonly away: boolean[];
  readonly supplied: string[];
  readonly receiveSign: (sign: RecoverySign) => void;
  /** Advances the clock. */
  readonly until: (time: number) => void;
}

/** A process with at most `maxLimits` per-client limits. @param isAway whether calls get no response at this time */
function startProcess(
  maxLimits: number,
  isAway?: (now: number) => boolean,
  chance = 0.5,
  scope: LimitScope = 'client',
): Process {
  const calls: Process['calls'] = [];
  const away: boolean[] = [];
  const supplied: string[] = [];
  let now = 0;
  const time = { now: () => now };
  const member = new ReplicaLimitClient({
    replicaId: 'a',
    clock: time,
    random: () => chance,
    call: (client, call) => void calls.push({ client, call }),
    publishHold: () => undefined,
    onDecrease: () => undefined,
    rearm: () => undefined,
    onDegraded: (each) => void away.push(each),
  });
  const store = new MemoryStore({
    upstreams: [upstreamSettings({ scope, rate: RATE })],
    maxTracked: 10,
    maxLimits,
    random: () => 0.5,
    listen: () => undefined,
    makeMeter: (ref, rate) => member.makeMeter(ref, rate),
    sharingHooks: member,
  });
  member.bind({ store, onTokensSupplied: (limit) => void supplied.push(limit.ref.key) });
  const until = (time: number): void => {
    for (; process.now < time; process.now += 10) {
      const before = calls.length;
      member.wake(process.now);
      if (isAway === undefined) continue;
      for (const { client } of calls.slice(before)) {
        if (isAway(process.now)) client.onNoResponse(process.now);
        else client.onResponse(answer({ now: process.now }), process.now);
      }
    }
  };
  const receiveSign = (sign: RecoverySign): void => member.onRecoverySign(sign, process.now);
  const process: Process = {
    get now() {
      return now;
    },
    set now(at) {
      now = at;
    },
    ...{ store, calls, away, supplied, receiveSign, until },
  };
  return process;
}

const of = (key: string): LimitRef => ({ upstream: 'up', nested: '', scope: 'client', key });

test.each(['answered', 'not answered'])(
  'a limit that is removed while a call is in flight, and %s, makes no more calls',
  (how) => {
    const process = startProcess(1);
    const { store, calls } = process;
    const called = (): string[] => calls.map(({ client }) => client.ref.key);
    store.findOrCreateLimit(of('one'));
    process.until(10);
    store.findOrCreateLimit(of('two'));
    expect(called()).toEqual(['one']);
    if (how === 'answered') calls[0]?.client.onResponse(answer({ now: 10, slots: [20, 30] }), 10);
    else calls[0]?.client.onNoResponse(10);
    process.until(5000);
    expect(called()).toEqual(['one', 'two']);
    expect(process.supplied).toEqual([]);
    expect(process.away).toEqual([]);
  },
);

test('calls once a second with the weight of a refused client that will return, until its slot is over', () => {
  const process = startProcess(1, () => false, 0.5, 'upstream');
  const limit = process.store.findOrCreateLimit({ upstream: 'up', nested: '', scope: 'upstream', key: '' });
  process.until(500);
  limit.demand?.awaitReturn('client', 2, 3000, 500);
  const before = process.calls.length;
  process.until(10_000);
  const calls = process.calls.slice(before).map(({ call }) => [Math.round(call.now), call.want, call.weight]);
  expect(calls).toEqual([
    [1500, 0, 2],
    [2500, 0, 2],
    [3500, 0, 0],
  ]);
});

test.each([
  [0, [130, 250, 500, 1000, 1000]],
  [0.999, [250, 500, 1000, 2000, 2000]],
])(
  'retries an unreachable backend at growing intervals, with jitter between processes: random draw %d',
  (chance, pauses) => {
    const process = startProcess(1, () => true, chance);
    process.store.findOrCreateLimit(of('one'));
    const at: number[] = [];
    for (let calls = 0; at.length < 6; process.until(process.now + 10)) {
      if (process.calls.length > calls) at.push(process.now);
      calls = process.calls.length;
    }
    expect(at.slice(1).map((time, i) => time - (at[i] ?? 0))).toEqual(pauses);
  },
);

test('calls the backend at once when it is connected, though another process has just announced the backend', () => {
  const process = startProcess(1, (now) => now < 4100);
  process.store.findOrCreateLimit(of('one'));
  process.until(4000);
  process.receiveSign('announced');
  process.until(4060);
  const { length } = process.calls;
  process.receiveSign('announced'); // too soon after the previous announcement to have an effect
  process.until(4110);
  expect(process.calls).toHaveLength(length);
  process.receiveSign('connected');
  process.until(4200);
  expect(process.away).toEqual([true, false]);
});

// Regression: the limit had left the list of unreachable ones when another found the backend, and was not added again.
test('reports the backend unreachable again for a limit that was unused since an earlier outage', () => {
  let isAway = true;
  const process = startProcess(2, () => isAway);
  const [one, other] = [process.store.findOrCreateLimit(of('one')), process.store.findOrCreateLimit(of('other'))];
  process.until(3000);
  isAway = false;
  one.meter.onSent(process.now);
  one.meter.onEnded(process.now);
  process.until(12_000);
  expect(process.away).toEqual([true, false]);
  isAway = true;
  other.meter.onSent(process.now);
  process.until(13_000);
  expect(process.away).toEqual([true, false, true]);
});

test('calls an unreachable backend for one of the limits, though none is in use', () => {
  const process = startProcess(100, (now) => now < 30_000);
  for (let i = 0; i < 100; i += 1) process.store.findOrCreateLimit(of(`${i}`));
  process.until(20_000);
  const before = process.calls.length;
  process.until(30_000);
  expect(process.away).toEqual([true]);
  expect(process.calls.length - before).toBeGreaterThanOrEqual(5);
  expect(process.calls.length - before).toBeLessThanOrEqual(10);
  process.until(33_000);
  expect(process.away).toEqual([true, false]);
});

test('does not report that the backend responds again when a limit is removed', () => {
  const process = startProcess(2, (now) => now < 60_000);
  for (let i = 0; i < 5; i += 1) {
    process.store.findOrCreateLimit(of(`${i}`));
    process.until(process.now + 10_000);
  }
  expect(process.away).toEqual([true]);
  process.until(63_000);
  expect(process.away).toEqual([true, false]);
});

test('ignores the state in a response that a newer message has overtaken', () => {
  const meter = new ReplicaMeter(
    RATE,
    () => 0.5,
    () => undefined,
  );
  meter.applyResponse(terms({ epoch: 2, rate: 8 }), [], 0);
  expect(meter.applyBroadcast(terms({ epoch: 3, rate: 4, ceiling: 5 }), 10)).toBe(true);
  meter.applyResponse(terms({ epoch: 2, rate: 8 }), [15, 20], 11);
  expect(meter.inHand).toBe(0);
  expect(meter.rate(12)).toBe(4);
  expect(meter.takeReport(0, 12).known).toEqual({ epoch: 3, since: 10, rate: 4, ceiling: 5 });
});

// Regression: a client got a Retry-After of 57 years, because the backend counts from 1970.
test('ignores a message before the first response, because the clock offset is unknown until then', () => {
  const process = startProcess(10);
  const limit = process.store.findOrCreateLimit(of('one'));
  process.until(10);
  const [first] = process.calls;
  const pool = 1.8e12;
  first?.client.onBroadcast(news(pool + 10, { epoch: 2, phase: 'backoff', expectedAt: pool + 100 }), 10);
  expect([limit.meter.phase, limit.meter.expectedDelay(10)]).toEqual(['restoring', 0]);
  first?.client.onResponse(answer({ now: pool + 10, terms: terms({ epoch: 2, expectedAt: pool + 60 }) }), 10);
  first?.client.onBroadcast(news(pool + 20, { epoch: 3, phase: 'backoff', expectedAt: pool + 110 }), 20);
  expect(limit.meter.phase).toBe('backoff');
  expect(limit.meter.expectedDelay(20)).toBeGreaterThan(50);
  expect(limit.meter.expectedDelay(20)).toBeLessThan(150);
});

test('converts a message by the current clock of the backend, if that was set since its last response', () => {
  const process = startProcess(10);
  const limit = process.store.findOrCreateLimit(of('one'));
  process.until(10);
  const [first] = process.calls;
  const hour = 3_600_000;
  first?.client.onResponse(answer({ now: 10, terms: terms({ epoch: 2, expectedAt: 60 }) }), 10);
  first?.client.onBroadcast(news(hour + 20, { epoch: 3, phase: 'blocked', blockedUntil: hour + 2020 }), 20);
  expect(limit.meter.blockedUntil).toBe(2020);
});
