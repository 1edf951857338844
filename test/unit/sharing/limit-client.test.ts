import type { LimitTerms } from '../../../src/sharing/protocol/limit-terms.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limits/limit.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { LimitScope } from '../../../src/core/limits/limit-state.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { LimitClient } from '../../../src/sharing/workers/limit-client.ts';
import { LeasedMeter } from '../../../src/sharing/protocol/leased-meter.ts';
import { initialTerms } from '../../../src/sharing/protocol/limit-terms.ts';
import type { GroupShares, UsageReport } from '../../../src/sharing/workers/worker-protocol.ts';
import { SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const SETTINGS = upstreamSettings();

/** In milliseconds, each time that a report is requested earlier than before. */
let reportTimes: number[];
let sent: UsageReport[];
let holder: LimitClient;
let meter: LeasedMeter;
let store: MemoryStore;

beforeEach(() => {
  reportTimes = [];
  sent = [];
  holder = new LimitClient({ schedule: (within) => reportTimes.push(within), send: (report) => sent.push(report) });
  store = new MemoryStore({
    upstreams: [SETTINGS],
    maxTracked: 10,
    random: () => 0.5,
    listen: () => undefined,
    makeMeter: (ref, rate) => holder.makeMeter(ref, rate),
    sharingHooks: holder,
  });
  holder.bind({ store, onTokensSupplied: () => undefined }, 0);
  const { learnedMeter } = store.findOrCreateLimit(SHARED);
  if (!(learnedMeter instanceof LeasedMeter)) throw new Error('its meter is not a leased one');
  meter = learnedMeter;
});

/** A request that is answered. */
function pass(at: number): void {
  meter.take(at);
  meter.release();
  const serial = meter.onSent(at);
  meter.onAccepted(at, serial, at + 1);
  meter.onEnded(at + 1);
}

/** Sends for a while, and reports it. */
function sendSteadily(): void {
  for (let at = -2000; at < 0; at += 200) pass(at);
  holder.flush(0);
  reportTimes = [];
  sent = [];
}

function receive(terms: Partial<LimitTerms>): void {
  const merged = { ...initialTerms(SETTINGS.rate), ...terms };
  holder.onUpdates({ limits: [{ ref: SHARED, terms: merged, slots: [] }], holds: [] }, 100);
}

describe('while no limit is met', () => {
  test('successes are reported in batches, except the first ones', () => {
    pass(0);
    expect(reportTimes).toEqual([5]);
    for (let at = 200; at <= 1000; at += 200) pass(at);
    holder.flush(1000);
    for (let at = 1000; at < 1040; at += 1) pass(at);
    expect(reportTimes).toEqual([5, 50]);
    holder.flush(1050);
    expect(sent).toHaveLength(2);
    expect(sent[1]?.limits[0]?.usage).toHaveLength(40 * 9);
    // After a pause they are the only information.
    pass(1500);
    expect(reportTimes).toEqual([5, 50, 5]);
  });

  test('a quota is reported soon, and a rejection at once, with everything before it', () => {
    sendSteadily();
    pass(0);
    meter.onQuota({ remaining: 5, limit: 10, resetIn: 1000, window: undefined }, 0, 1);
    expect(reportTimes).toEqual([50, 5]);
    const serial = meter.onSent(2);
    meter.onRejected({ sentAt: 2, inFlightAtSend: serial, retryAfterMs: undefined, activeClients: 1 }, 3);
    expect(reportTimes).toEqual([50, 5, 0]);
    pass(4);
    expect(reportTimes).toEqual([50, 5, 0]);
  });

  test('pending reports are sent as soon as any process meets the limit', () => {
    sendSteadily();
    pass(0);
    receive({ epoch: 1, phase: 'backoff', isUnlimited: false });
    expect(reportTimes).toEqual([50, 0]);
  });

  test('no report is sent when the limit is met and none is pending', () => {
    receive({ epoch: 1, phase: 'backoff', isUnlimited: false });
    expect(reportTimes).toEqual([]);
  });
});

test('while the limit is in force, requests are reported soon, and their end too if places are limited', () => {
  receive({ epoch: 1, phase: 'cooldown', isUnlimited: false });
  holder.flush(100);
  reportTimes = [];
  const serial = meter.onSent(101);
  expect(reportTimes).toEqual([5]);
  receive({ epoch: 1, phase: 'cooldown', isUnlimited: false, concurrencyLimit: 3 });
  meter.onAccepted(101, serial, 102);
  meter.onEnded(102);
  expect(reportTimes).toEqual([5, 0]);
});

test('the last usage of an upstream that a reload has removed is reported', () => {
  receive({ epoch: 1, phase: 'cooldown', isUnlimited: false });
  holder.flush(100);
  sent = [];
  const serial = meter.onSent(101);
  store.removeUpstream(SHARED.upstream);
  meter.onAccepted(101, serial, 102);
  meter.onEnded(102);
  holder.flush(103);
  expect(sent).toMatchObject([{ limits: [{ ref: SHARED }] }]);
});

describe('while refused clients are expected to return', () => {
  function weightsReported(): readonly (number | undefined)[] {
    return sent.map(({ limits }) => limits[0]?.demand?.weight);
  }

  test('their weight is reported within 200 ms, again every 2 s, and once more when their slots are over', () => {
    const { demand } = store.findOrCreateLimit(SHARED);
    demand?.awaitReturn('one', 2, 4100, 0);
    demand?.awaitReturn('two', 1, 4100, 0);
    expect(reportTimes).toEqual([200]);
    for (let at = 200; at <= 5000; at += 200) holder.flush(at);
    expect(weightsReported()).toEqual([3, 3, 0]);
    const checks = reportTimes.length;
    holder.flush(6000);
    expect(reportTimes).toHaveLength(checks);
  });

  test('a change of their weight is reported if it is more than a tenth', () => {
    const { demand } = store.findOrCreateLimit(SHARED);
    demand?.awaitReturn('many', 10, 9000, 0);
    holder.flush(200);
    demand?.awaitReturn('many', 11, 9000, 200);
    holder.flush(400);
    demand?.awaitReturn('many', 11.5, 9000, 400);
    holder.flush(600);
    expect(weightsReported()).toEqual([10, 11.5]);
  });
});

test('waiting groups are named in a report at least every 250 ms, even without a change, until none waits', () => {
  const demand = meter.limit?.demand;
  receive({ epoch: 1, phase: 'cooldown', isUnlimited: false });
  holder.flush(0);
  demand?.onQueued('one', 1);
  demand?.onQueued('two', 2);
  meter.delay(100);
  const reportsAt = (from: number, until: number): unknown[] => {
    const reports: unknown[] = [];
    for (let at = from; at < until; at += 50) {
      sent = [];
      holder.flush(at);
      for (const { limits } of sent) reports.push([at, limits[0]?.demand?.weight, limits[0]?.demand?.groups.waiting]);
    }
    return reports;
  };
  const both = ['one', 'two'];
  expect(reportsAt(100, 800)).toEqual([
    [100, 3, both],
    [350, 3, both],
    [550, 3, both],
    [750, 3, both],
  ]);
  demand?.onDequeued('one');
  demand?.onDequeued('two');
  expect(reportsAt(800, 2000)).toEqual([[950, 0, []]]);
});

test('the shares of groups apply to the limit, and the reported weight follows them', () => {
  const { limit } = meter;
  receive({ epoch: 1, phase: 'cooldown', isUnlimited: false });
  limit?.demand?.onQueued('one', 4);
  limit?.demand?.awaitReturn('two', 2, 9000, 0);
  const terms = { ...initialTerms(SETTINGS.rate), epoch: 1, isUnlimited: false };
  const update = (shares: GroupShares): void =>
    holder.onUpdates({ limits: [{ ref: SHARED, terms, slots: [], shares }], holds: [] }, 100);
  update({ waiting: [['one', 0.25]], returning: [['two', 0.5]] });
  expect(limit?.demandWeight(100)).toBe(2);
  holder.flush(200);
  expect(sent.at(-1)?.limits[0]?.demand?.weight).toBe(2);
  update({ waiting: [], returning: [] });
  expect(limit?.demandWeight(100)).toBe(6);
});

describe('a reload', () => {
  const NESTED: LimitRef = { upstream: 'up', nested: 'e', scope: 'upstream', key: '' };
  const RATE = { ...SETTINGS.rate, maxRate: 5 };
  const withNested = (scope: LimitScope = 'upstream') =>
    upstreamSettings({ nested: [{ name: 'e', scope, isKeyed: false, rate: RATE }] });
  const update = (ref: LimitRef, slots: readonly number[]): void =>
    holder.onUpdates({ limits: [{ ref, terms: initialTerms(RATE), slots }], holds: [] }, 100);
  const meterOf = (ref: LimitRef): LeasedMeter => {
    const found = store.findLimit(ref)?.learnedMeter;
    if (!(found instanceof LeasedMeter)) throw new Error('it has no leased meter');
    return found;
  };

  test('that removes a limit lets its tokens arrive while requests use it', () => {
    store.configure([withNested()], 10);
    const removed = meterOf(NESTED);
    removed.onSent(0);
    store.configure([SETTINGS], 10);
    store.sweep();
    update(NESTED, [100]);
    expect(removed.inHand).toBe(1);
  });

  test.each([
    ['a removed limit', NESTED],
    ['a limit of another scope', { ...SHARED, scope: 'client', key: 'a' } as const],
    ['a limit with a key that the configuration does not have', { ...NESTED, key: 'k' }],
  ])('ignores late terms of %s', (_, ref) => {
    store.configure([ref.nested === '' || ref.key !== '' ? withNested() : SETTINGS], 10);
    const before = [...store.limits()];
    update(ref, [100]);
    expect([...store.limits()]).toEqual(before);
    expect(before.map(({ learnedMeter }) => learnedMeter instanceof LeasedMeter && learnedMeter.inHand)).not.toContain(
      1,
    );
  });

  test('that forgets a limit keeps the one that has its name by now', () => {
    store.configure([withNested()], 10);
    const former = store.findLimit(NESTED);
    if (former === undefined) throw new Error('it does not exist');
    const replacement = new Limit(NESTED, holder.makeMeter(NESTED, RATE));
    holder.onLimitCreated(replacement);
    holder.onLimitForgotten(former);
    update(NESTED, [100]);
    expect(replacement.learnedMeter instanceof LeasedMeter && replacement.learnedMeter.inHand).toBe(1);
  });
});
