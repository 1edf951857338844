/** What the members of a shared limit know about it once latency has shown how many requests may be without a response. */
import { expect, test } from 'vitest';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { LatencyLimit } from '../../../src/core/rate/in-flight-limiter.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import { LeasedMeter } from '../../../src/sharing/protocol/leased-meter.ts';
import { initialTerms } from '../../../src/sharing/protocol/limit-terms.ts';
import { MemoryAccountStore } from '../../../src/sharing/replicas/memory-backend.ts';
import { ReplicaMeter } from '../../../src/sharing/replicas/replica-meter.ts';
import { ReplicaSharedLimit } from '../../../src/sharing/replicas/replica-shared-limit.ts';
import { WORKER_LEASE_TIMING } from '../../../src/sharing/workers/lease-timing.ts';
import { LimitServer } from '../../../src/sharing/workers/limit-server.ts';
import { SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const SETTINGS = { ...upstreamSettings().rate, learnsFromLatency: true };

interface Member {
  /** Sends requests, and reports them. */
  readonly send: (count: number) => void;
  /** Receives the response to one of them, and reports it. */
  readonly receive: () => void;
  readonly latencyLimit: () => LatencyLimit | undefined;
}

interface SharedLimit {
  readonly members: readonly Member[];
  /** What latency has shown. */
  readonly found: { limit: number; throughput: number };
  /** Ends the limit by an operator's pin; absent in a replica, which has pins of its own. */
  readonly pin?: () => void;
}

function meterOf(found: SharedLimit['found']): LocalMeter {
  const limiter = Object.assign(found, {
    onAnswer: () => false,
    onTimeout: () => undefined,
    advance: () => undefined,
  });
  return new LocalMeter(SETTINGS, () => 0.5, { ...RATE_RULES, makeLatencyLimiter: () => limiter });
}

function member(meter: LeasedMeter | ReplicaMeter, report: () => void): Member {
  return {
    send: (count) => {
      for (let i = 0; i < count; i += 1) meter.onSent(0);
      report();
    },
    receive: () => {
      meter.onAccepted(0, 1, 0);
      meter.onResponse(0);
      report();
    },
    latencyLimit: () => meter.latencyLimit,
  };
}

function workers(): SharedLimit {
  const found = { limit: 2, throughput: 100 };
  const meters = [1, 2].map(() => new LeasedMeter(initialTerms(SETTINGS), () => undefined));
  const server = new LimitServer(
    {
      timing: WORKER_LEASE_TIMING,
      makeMeter: () => meterOf(found),
      listen: () => undefined,
      send: (to, { limits }) => {
        for (const update of limits) meters[to]?.applyUpdate(update);
      },
      maxLimits: 10,
    },
    [SHARED],
  );
  const members = meters.map((meter, id) => {
    server.join(id, 0);
    return member(meter, () => {
      server.onReport(id, { limits: [{ ref: SHARED, usage: meter.usageLog.take() }], holds: [] }, 0);
    });
  });
  const pin = (): void => server.applyOverride(SHARED.upstream, { action: 'pin', rate: 10 }, 0);
  return { members, found, pin };
}

function replicas(): SharedLimit {
  const found = { limit: 2, throughput: 100 };
  const shared = new ReplicaSharedLimit(meterOf(found));
  const accounts = new MemoryAccountStore();
  let now = 0;
  const members = [1, 2].map((id) => {
    const meter = new ReplicaMeter(
      SETTINGS,
      () => 0.5,
      () => undefined,
    );
    return member(meter, () => {
      now += 1000; // responses are learned from once all replicas have reported
      const own = { replicaId: String(id), now, weight: 0, roundTrip: 0, random: 0.5 };
      const request = { ...own, ...meter.takeReport(0, now), waitingGroups: [], returningGroups: [] };
      const { terms, slots } = shared.serve(request, accounts, shared.now(now), now === 1000);
      meter.applyResponse(terms, slots, now);
    });
  });
  return { members, found };
}

test.each([
  ['worker', workers],
  ['replica', replicas],
])('each %s knows how many requests may be without a response, and how many are', (_, start) => {
  const { members, found, pin } = start();
  const [first, second] = members;
  first?.send(5);
  second?.send(3);
  expect(members.map((each) => each.latencyLimit())).toEqual([undefined, undefined]);
  first?.receive();
  first?.receive();
  second?.send(1);
  expect(second?.latencyLimit()).toEqual({ size: 2, unanswered: 7, isTest: false });
  first?.send(1);
  expect(first?.latencyLimit()).toEqual({ size: 2, unanswered: 8, isTest: false });
  found.throughput = Number.POSITIVE_INFINITY;
  first?.send(1);
  expect(first?.latencyLimit()).toEqual({ size: 2, unanswered: 9, isTest: true });
  pin?.();
  if (pin !== undefined) expect(first?.latencyLimit()).toBeUndefined();
});
