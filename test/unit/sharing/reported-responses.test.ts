/** A member reports when its requests have their responses, so that a limit which latency has shown counts only those that wait. */
import { expect, test } from 'vitest';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import { AuthoritativeLimit } from '../../../src/sharing/protocol/authoritative-limit.ts';
import { LeasedMeter } from '../../../src/sharing/protocol/leased-meter.ts';
import { initialTerms, termsFromMeter } from '../../../src/sharing/protocol/limit-terms.ts';
import { WorkerAccount } from '../../../src/sharing/workers/worker-account.ts';

const SETTINGS = { initialRate: undefined, minRate: 1, maxRate: Number.POSITIVE_INFINITY, cooldown: 1000 };

function twoMembers(learnsFromLatency: boolean) {
  const timeouts: [latency: number, isAbandoned: boolean | undefined][] = [];
  const latencyLimiter = {
    limit: 2,
    throughput: 100,
    onAnswer: () => false,
    onTimeout: (latency: number, _unanswered: number, _at: number, _isRejecting: boolean, isAbandoned?: boolean) =>
      void timeouts.push([latency, isAbandoned]),
    advance: () => undefined,
  };
  const rules = { ...RATE_RULES, makeLatencyLimiter: () => latencyLimiter };
  const shared = new AuthoritativeLimit<number>(
    new LocalMeter({ ...SETTINGS, learnsFromLatency }, () => 0.5, rules),
    1,
    10,
  );
  const common = termsFromMeter(shared.meter, 1, 0, 0);
  const members = [1, 2].map((id) => {
    const terms = { ...initialTerms(SETTINGS), ...common };
    const meter = new LeasedMeter(terms, () => undefined);
    const account = new WorkerAccount(id, 1, 0);
    const report = (now = 0): unknown => shared.applyUsage(meter.usageLog.take(), account, now);
    return { meter, account, report };
  });
  return { shared, members, timeouts };
}

test('a shared limit counts the requests of all members that have no response', () => {
  const { shared, members } = twoMembers(true);
  for (const { meter, report } of members) {
    const serials = Array.from({ length: 5 }, () => meter.onSent(0));
    for (const serial of serials.slice(2)) {
      meter.onAccepted(0, serial, 0);
      meter.onResponse(0); // its body is being received
    }
    meter.onResponse(0); // its client has left
    meter.onEnded(0);
    report();
  }
  expect([shared.meter.inFlight, shared.meter.latencyLimit?.unanswered]).toEqual([8, 2]);
});

test('a member that leaves takes its requests without a response with it', () => {
  const { shared, members } = twoMembers(true);
  for (const { meter, report } of members) {
    const [serial] = [meter.onSent(0), meter.onSent(0)];
    meter.onAccepted(0, serial, 0);
    meter.onResponse(0);
    report();
  }
  for (const { account } of members.slice(1)) shared.removeMember(account);
  expect([shared.meter.inFlight, shared.meter.latencyLimit?.unanswered]).toEqual([2, 1]);
});

test('a member reports the requests that their clients abandoned, for a limit that learns from latency', () => {
  const { shared, members, timeouts } = twoMembers(true);
  for (const { meter, report } of members) {
    const serial = meter.onSent(0);
    meter.onAccepted(0, serial, 50);
    meter.onSent(10);
    meter.onFailed({ sentAt: 10, retryAfterMs: undefined, isAbandoned: true }, 900);
    expect(meter.needsAttributes).toBe(false);
    meter.onResponse(900);
    meter.onEnded(900);
    report(900);
  }
  expect(timeouts).toEqual([
    [890, true],
    [890, true],
  ]);
  expect(shared.meter.phase).toBe('open');
});

test('a member reports none of them while nothing is learned from latency', () => {
  const { members } = twoMembers(false);
  for (const { meter } of members) {
    meter.onFailed({ sentAt: 10, retryAfterMs: undefined, isAbandoned: true }, 900);
    expect(meter.usageLog.isEmpty).toBe(true);
  }
});

test('a member reports no responses while nothing is learned from latency', () => {
  const { members } = twoMembers(false);
  for (const { meter } of members) {
    meter.onResponse(0);
    expect(meter.usageLog.isEmpty).toBe(true);
  }
});
