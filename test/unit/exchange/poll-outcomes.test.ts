import { describe, expect, test } from 'vitest';
import type { PollOutcome } from '../../../src/core/events/event-labels.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { PollWaitAccounting } from '../../../src/core/exchange/poll-session.ts';
import type { RoutePolicy } from '../../../src/core/exchange/steps.ts';
import { DrivenExchange, START } from '../../support/core/driven-exchange.ts';
import { failure, fixedDelay, pollPolicy, response, SEND_ONCE } from '../../support/core/policy-builders.ts';

const NOT_READY = response(202);

class Accounting implements PollWaitAccounting {
  readonly outcomes: PollOutcome[] = [];
  readonly #hasPlace: boolean;
  entered = 0;

  constructor(hasPlace = true) {
    this.#hasPlace = hasPlace;
  }

  tryEnter(): boolean {
    this.entered += 1;
    return this.#hasPlace;
  }

  onPollOutcome(outcome: PollOutcome): void {
    this.outcomes.push(outcome);
  }

  leave(): void {}
}

/** A request that polls half a second after each response that is not ready; its first response has come. */
function polling(pollWait: PollWaitAccounting | undefined, policy: Partial<RoutePolicy> = {}): DrivenExchange {
  const exchange = new DrivenExchange({
    facts: { preferredWait: 20_000 },
    policy: { poll: pollPolicy({ backOff: fixedDelay(500) }), ...policy },
    ...(pollWait === undefined ? {} : { pollWait }),
  });
  return exchange.start();
}

/** The poll is under way. */
function polled(pollWait: PollWaitAccounting, policy: Partial<RoutePolicy> = {}): DrivenExchange {
  return polling(pollWait, policy)
    .answer(NOT_READY)
    .at(START + 510, (driver) => driver.onWake());
}

describe('a poll ends as', () => {
  test.each<[PollOutcome, string, AttemptOutcome]>([
    ['ready', 'a result', response(200)],
    ['ready', 'a redirect to it', response(303)],
    ['failed', 'a client error', response(400)],
    ['failed', 'a server error', response(500)],
    ['failed', 'no response', failure('reset', true)],
  ])('%s after %s', (outcome, _, answer) => {
    const accounting = new Accounting();
    polled(accounting, { retry: SEND_ONCE }).answer(answer);
    expect(accounting.outcomes).toEqual([outcome]);
  });

  test('not_ready if the last response still is', () => {
    const accounting = new Accounting();
    const poll = pollPolicy({ backOff: fixedDelay(500), maxPolls: 2 });
    const exchange = polling(accounting, { poll }).answer(NOT_READY);
    exchange.at(START + 30_000, (driver) => driver.onWake()).answer(NOT_READY);
    expect(exchange.verdict).toMatchObject({ kind: 'forward', notReady: true, polls: 2 });
    expect(accounting.outcomes).toEqual(['not_ready']);
  });

  test('refused if the shutdown refuses it', () => {
    const accounting = new Accounting();
    const exchange = polled(accounting).answer(response(503));
    exchange.at(exchange.now + 1, (driver) => driver.drain(exchange.now));
    expect(exchange.verdict).toMatchObject({ kind: 'refuse', why: 'draining' });
    expect(accounting.outcomes).toEqual(['refused']);
  });

  test.each([404, 303])('failed if its outcome is unknown after a %i', (status) => {
    const accounting = new Accounting();
    const exchange = new DrivenExchange({
      facts: { method: 'POST', keyed: true, preferredWait: 20_000 },
      policy: { poll: pollPolicy({ backOff: fixedDelay(500) }) },
      pollWait: accounting,
    }).start();
    exchange.answer(NOT_READY).at(START + 510, (driver) => driver.onWake());
    exchange.answer(failure('reset', true)).at(exchange.now + 200, (driver) => driver.onWake());
    exchange.answer(response(status));
    expect(exchange.verdict).toMatchObject({ kind: 'unknown', reason: 'rejected', status });
    expect(accounting.outcomes).toEqual(['failed']);
  });
});

describe('a poll is reported as a step', () => {
  test('with its plan, once it may begin', () => {
    const exchange = polling(new Accounting()).answer(NOT_READY);
    const poll = { delay: 500, source: 'backoff', requestedDelay: 0, memory: 0 };
    expect(exchange.steps).toEqual([{ what: 'poll', at: START + 10, poll, after: 'not_ready' }]);
    exchange.at(START + 510, (driver) => driver.onWake()).answer(response(200));
    expect(exchange.observed).toEqual(['start', 'send 1', 'outcome 1 202 1010', 'send 2', 'outcome 2 200 1520']);
    expect(exchange.ofType('attempt').map(({ attempt }) => attempt)).toEqual([1, 1]);
  });

  const unpolled = (exchange: DrivenExchange) => {
    exchange.answer(NOT_READY);
    expect(exchange.verdict).toMatchObject({ kind: 'forward', attempts: 1, notReady: true });
    return exchange.steps;
  };

  test('that is not made, because too many clients wait', () => {
    const steps = unpolled(polling(new Accounting(false)));
    expect(steps).toEqual([{ what: 'unpolled', at: START + 10, why: 'too_many_waiting' }]);
  });

  test('that is not made, because the proxy shuts down', () => {
    const accounting = new Accounting();
    const exchange = polling(accounting);
    exchange.driver.drain(START + 100_000);
    expect(unpolled(exchange)).toEqual([{ what: 'unpolled', at: START + 10, why: 'draining' }]);
    expect(accounting.entered).toBe(0);
  });

  test('that is not made, because the client is held for longer than the poll may wait', () => {
    const accounting = new Accounting();
    const exchange = polling(accounting, { timeout: 2000 });
    const other = new DrivenExchange().ticket;
    exchange.gate.requestAdmission(other, exchange.now + 5000, exchange.now);
    exchange.gate.onSent(other, exchange.now);
    exchange.gate.onOutcome(other, response(429, { retryAfterMs: 10_000 }), exchange.now);
    expect(unpolled(exchange)).toEqual([{ what: 'unpolled', at: START + 10, why: 'deadline' }]);
    expect(accounting.entered).toBe(0);
  });

  test('that is not made, because nothing counts the clients that wait', () => {
    expect(unpolled(polling(undefined))).toEqual([{ what: 'unpolled', at: START + 10, why: 'deadline' }]);
  });
});

test('a retry within a poll is not a wait for a poll: a later shutdown does not cut it', () => {
  const exchange = polled(new Accounting()).answer(response(503));
  expect(exchange.effects.slice(-2)).toEqual(['discard', 'sleep 100']);
  const before = [...exchange.effects];
  exchange.driver.drain(START + 100_000);
  expect(exchange.effects).toEqual(before);
});
