import { describe, expect, test } from 'vitest';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { Limit } from '../../../src/core/limits/limit.ts';
import type { WaitingRequest } from '../../support/core/connection-limited-gate.ts';
import { ConnectionLimitedGate } from '../../support/core/connection-limited-gate.ts';
import { limitedTo, SHARED, upstreamSettings } from '../../support/core/policy-builders.ts';

const limitOf = (at: ConnectionLimitedGate): Limit => [...at.gate.limits(at.now)][0]!;
const awaited = (at: ConnectionLimitedGate) =>
  at.gate.connections.awaitedEnds('up', at.now).map(({ limit, count }) => [limit?.ref.scope ?? 'connection', count]);
const retryAfterOf = ({ admission }: WaitingRequest) =>
  admission?.kind === 'refused' ? admission.retryAfterMs : undefined;

/** An upstream that allows two requests in flight, which `flood` uses; of its 100 connections, 98 are free. */
function fullPlaces(upstream = {}): ConnectionLimitedGate {
  const at = new ConnectionLimitedGate(100, upstream);
  limitOf(at).learnedMeter.resume?.(50, 50, 0, 2);
  for (const guest of at.arriveTimes(2, 'flood')) at.send(guest);
  at.pass(100);
  return at;
}

describe('a queue awaits the end of requests in flight', () => {
  test('for a place, if all places are taken', () => {
    const at = fullPlaces();
    expect(awaited(at)).toEqual([]);
    at.arriveTimes(3, 'calm');
    expect(awaited(at)).toEqual([['upstream', 3]]);
  });

  test('but not if the next request is observed, because it was sent at once', () => {
    const at = fullPlaces();
    at.arrive('calm', 60_000, 'observe');
    expect(awaited(at)).toEqual([]);
  });

  test('for a place, counting the requests in flight beyond a lowered limit', () => {
    const at = fullPlaces();
    limitOf(at).learnedMeter.resume?.(50, 50, at.now, 1);
    at.arrive('calm');
    expect(awaited(at)).toEqual([['upstream', 2]]);
  });

  test('for a connection, if all are busy', () => {
    const at = new ConnectionLimitedGate(2);
    for (const guest of at.arriveTimes(2, 'flood')) at.send(guest);
    at.arriveTimes(3, 'calm');
    expect(awaited(at)).toEqual([['connection', 3]]);
  });

  test('for no more connections than it can use within a second', () => {
    const at = new ConnectionLimitedGate(1, { ...limitedTo(2), queue: { maxWait: 60_000, maxDepth: 100 } });
    at.send(at.arrive('flood'));
    at.arriveTimes(5, 'calm');
    expect(awaited(at)).toEqual([]); // the next token is due in half a second
    at.pass(500);
    expect(awaited(at)).toEqual([['connection', 2]]);
  });

  test('but not while it waits for the rate, or while its limit is blocked', () => {
    const paced = new ConnectionLimitedGate(2, limitedTo(2));
    paced.send(paced.arrive('calm'));
    paced.arrive('calm');
    expect(awaited(paced)).toEqual([]);
    const stopped = fullPlaces({ queue: { maxWait: 60_000, maxDepth: 100 } });
    stopped.arrive('calm');
    limitOf(stopped).meter.stop(stopped.now + 5000);
    expect(awaited(stopped)).toEqual([]);
    stopped.pass(5000);
    expect(awaited(stopped)).toEqual([['upstream', 1]]);
  });
});

describe('while all places in flight are taken', () => {
  test('the Retry-After doubles the time without a free place, instead of naming the next second', () => {
    const at = fullPlaces();
    const delays: number[] = [];
    while (at.now < 20_000) {
      const guest = at.arrive('calm');
      while (guest.admission === undefined) at.pass(1000);
      const wait = retryAfterOf(guest) ?? Number.NaN;
      delays.push(Math.round(wait / 1000));
      at.pass(Math.max(1, wait));
    }
    expect(delays).toEqual([1, 8, 22]);
  });

  test('requests wait if stalled clients give way to them, even at a low rate', () => {
    const at = fullPlaces();
    limitOf(at).learnedMeter.resume?.(0.1, 0.1, at.now, 2);
    expect(at.arriveTimes(2, 'calm').map(({ admission }) => admission?.kind)).toEqual(['refused', 'refused']);
    at.stalled = 2;
    expect(at.arriveTimes(3, 'calm').map(({ admission }) => admission?.kind)).toEqual([
      undefined,
      undefined,
      'refused',
    ]);
  });
});

test('a request of a nested limit awaits a place of that limit if none is free there', () => {
  const { rate } = upstreamSettings();
  const at = new ConnectionLimitedGate(100, { nested: [{ name: 'inner', scope: 'upstream', isKeyed: false, rate }] });
  const inner: LimitRef = { ...SHARED, nested: 'inner' };
  const ask = (): Ticket => {
    const ticket = new Ticket('up', 'client', 1, [SHARED, inner], () => undefined);
    if (at.gate.requestAdmission(ticket, at.now + 60_000, at.now) !== undefined) at.gate.onSent(ticket, at.now);
    return ticket;
  };
  const nested = [...at.gate.limits(at.now)].find(({ ref }) => ref.nested === 'inner');
  nested?.learnedMeter.resume?.(50, 50, 0, 1);
  const [sent, waits] = [ask(), ask()];
  expect(sent.inFlightLimits).toContain(nested);
  expect(waits.waitingLimit).toBe(nested);
  expect(at.gate.connections.awaitedEnds('up', at.now)).toEqual([{ limit: nested, count: 1 }]);
  at.gate.onAttemptEnd(sent, at.now);
  expect(at.gate.connections.awaitedEnds('up', at.now)).toEqual([]);
});
