/** Which requests count against a limit that latency has shown: those that wait for a response. */
import { describe, expect, test } from 'vitest';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { RATE_RULES } from '../../../src/core/rate/rules.ts';
import { response, SHARED } from '../../support/core/policy-builders.ts';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { World } from '../../support/core/world.ts';

const INNER: LimitRef = { upstream: 'up', nested: 'inner', scope: 'credential', key: 'inner' };

/** A limit of two requests without a response, for all requests, and none for those of a nested limit. */
function twoUnanswered() {
  const limits = { initialRate: undefined, minRate: 1, maxRate: Number.POSITIVE_INFINITY };
  const settings = { ...limits, cooldown: 1000, learnsFromLatency: true };
  const latencyLimiter = {
    limit: 2,
    throughput: 100,
    onAnswer: () => false,
    onTimeout: () => undefined,
    advance: () => undefined,
  };
  const rules = { ...RATE_RULES, makeLatencyLimiter: () => latencyLimiter };
  const outer = new LocalMeter(settings, () => 0.5, rules);
  const world = new World({ meters: { '': outer, inner: new LocalMeter(settings, () => 0.5) } });
  const send = (refs = [SHARED]): QueuedTicket => {
    const queued = world.arrive({ refs });
    expect(queued.admission).toEqual({ kind: 'admitted' });
    world.send(queued);
    return queued;
  };
  /** Sends a request, and receives the head of its response. */
  const download = (refs = [SHARED]): QueuedTicket => {
    const queued = send(refs);
    world.gate.onOutcome(queued.ticket, response(200), world.now);
    return queued;
  };
  const unanswered = (): number | undefined => outer.latencyLimit?.unanswered;
  world.serve(world.arrive()); // the first response begins to teach
  return { world, outer, send, download, unanswered };
}

describe('a limit that latency has shown does not count', () => {
  test('responses that are being received', () => {
    const { outer, download, unanswered } = twoUnanswered();
    for (let i = 0; i < 5; i += 1) download();
    expect([outer.inFlight, unanswered()]).toEqual([5, 0]);
  });

  test('attempts that ended without a response, while responses are being received', () => {
    const { world, outer, send, download, unanswered } = twoUnanswered();
    for (let i = 0; i < 5; i += 1) download();
    for (let i = 0; i < 20; i += 1) world.gate.onAttemptEnd(send().ticket, world.now); // its client has left
    for (let i = 0; i < 3; i += 1) {
      const failed = send();
      world.gate.onOutcome(failed.ticket, { kind: 'error', reason: 'timeout', sent: true, took: 10 }, world.now);
      expect(unanswered()).toBe(0);
      world.gate.onAttemptEnd(failed.ticket, world.now);
    }
    expect([outer.inFlight, unanswered()]).toEqual([5, 0]);
  });

  test('responses that are being received at a nested limit, and rejections there', () => {
    const { world, outer, send, download, unanswered } = twoUnanswered();
    for (let i = 0; i < 5; i += 1) download([SHARED, INNER]);
    expect([outer.inFlight, unanswered()]).toEqual([5, 0]);
    const rejected = send([SHARED, INNER]);
    expect(unanswered()).toBe(1);
    world.gate.onOutcome(rejected.ticket, response(429), world.now);
    expect(unanswered()).toBe(0);
  });

  test('a response twice: the next attempt of the same request counts again', () => {
    const { world, outer, download, unanswered } = twoUnanswered();
    const { ticket } = download();
    world.gate.onAttemptEnd(ticket, world.now);
    world.gate.onSent(ticket, world.now);
    expect([outer.inFlight, unanswered()]).toEqual([1, 1]);
  });
});
