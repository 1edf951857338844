/** What an exchange shows about the timeout of its client, and how a known timeout bounds it. */
import { describe, expect, test } from 'vitest';
import type { AttemptOutcome, ErrorOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import { ClientTimeouts } from '../../../src/core/exchange/client-timeouts.ts';
import { ClientWait } from '../../../src/core/exchange/client-wait.ts';
import { exchange } from '../../../src/core/exchange/exchange.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import type { RoutePolicy, StepResult } from '../../../src/core/exchange/steps.ts';
import { LatencyEstimate } from '../../../src/core/retry/latency-estimates.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { DrivenExchange, START, type DrivenExchangeOptions } from '../../support/core/driven-exchange.ts';
import { limitedTo, requestFacts, response, retryPolicy, routePolicy } from '../../support/core/policy-builders.ts';

const CLIENT = { upstream: 'up', client: 'client' };

/** The timeouts of clients, of which one abandoned two requests after a second. */
function nearlyKnown(): ClientTimeouts {
  const timeouts = new ClientTimeouts();
  for (const at of [1, 2]) timeouts.onAbandoned(CLIENT, 1000, at);
  return timeouts;
}

function start(options: DrivenExchangeOptions): DrivenExchange {
  return new DrivenExchange(options).start();
}

const timeoutAfter = (timeouts: ClientTimeouts): Millis => timeouts.timeoutOf(CLIENT, START);

describe('a request that its client abandons shows a timeout', () => {
  test.each<[string, DrivenExchangeOptions]>([
    ['during an attempt', {}],
    ['in the queue', { upstream: limitedTo(1), isTokenTaken: true }],
    ['while it waits for its key', { facts: { method: 'POST', keyed: true }, policy: { claims: true } }],
  ])('%s', (_, options) => {
    const clientTimeouts = nearlyKnown();
    const begun = start({ ...options, clientTimeouts });
    begun.at(START + 1000, (driver) => driver.onClientGone(true));
    expect(timeoutAfter(clientTimeouts)).toBe(1000);
  });

  test('but not if its request cannot be read, nor if the exchange is over', () => {
    const clientTimeouts = nearlyKnown();
    start({ clientTimeouts }).at(START + 1000, (driver) => driver.onClientGone());
    const over = start({ clientTimeouts }).answer(response(200), START + 5);
    over.at(START + 1000, (driver) => driver.onClientGone(true));
    expect(timeoutAfter(clientTimeouts)).toBe(Number.POSITIVE_INFINITY);
  });

  test('counted from the end of its body', () => {
    const clientTimeouts = nearlyKnown();
    const facts = { method: 'POST', expectsContinue: true };
    const uploading = start({ facts, clientTimeouts }).at(START + 500, (driver) => driver.onBodyRead(true));
    uploading.at(START + 1500, (driver) => driver.onClientGone(true));
    expect(timeoutAfter(clientTimeouts)).toBe(1000);
  });

  test('but not while its body may still be arriving', () => {
    const clientTimeouts = nearlyKnown();
    const facts = { method: 'POST', expectsContinue: true };
    const uploading = start({ facts, clientTimeouts }).at(START, (driver) => driver.onBodyRead(false));
    uploading.at(START + 1000, (driver) => driver.onClientGone(true));
    expect(timeoutAfter(clientTimeouts)).toBe(Number.POSITIVE_INFINITY);
  });

  test('and its write that is finished without it, which has no client then', () => {
    const clientTimeouts = nearlyKnown();
    const alone = start({ clientTimeouts }).at(START + 1000, (driver) => driver.clientWait?.onDetached(START + 1000));
    expect(timeoutAfter(clientTimeouts)).toBe(1000);
    alone.answer(response(200), START + 5000);
    expect(timeoutAfter(clientTimeouts)).toBe(1000);
  });
});

test('a response after a longer time disproves a timeout', () => {
  const clientTimeouts = nearlyKnown();
  clientTimeouts.onAbandoned(CLIENT, 1000, 3);
  start({ clientTimeouts }).answer(response(200), START + 1000);
  expect(timeoutAfter(clientTimeouts)).toBe(1000);
  start({ clientTimeouts }).answer(response(503), START + 1500);
  expect(timeoutAfter(clientTimeouts)).toBe(1000); // it is retried
  start({ clientTimeouts, policy: { retry: retryPolicy({ attempts: 1 }) } }).answer(response(503), START + 1500);
  expect(timeoutAfter(clientTimeouts)).toBe(Number.POSITIVE_INFINITY);
});

describe('the outcome of an attempt', () => {
  const ABORTED: ErrorOutcome = { kind: 'error', reason: 'aborted', sent: true, took: 900 };
  const outcomes = (clientTimeouts: ClientTimeouts, age: Millis): (AttemptOutcome | undefined)[] => {
    const begun = start({ clientTimeouts }).at(START + age, (driver) => driver.onClientGone(true));
    return [begun.driver.outcome];
  };

  test('says that its client had a timeout, if that is known', () => {
    expect(outcomes(nearlyKnown(), 1000)).toEqual([{ ...ABORTED, took: 1000, isClientTimeout: true }]);
    expect(outcomes(nearlyKnown(), 900)).toEqual([ABORTED]);
  });

  test('counts for the latency of the upstream as at least the time that it took', () => {
    const times = new LatencyEstimate();
    for (let i = 0; i < 9; i += 1) times.onAnswer(100);
    const timeouts = nearlyKnown();
    const wait = new ClientWait(timeouts, CLIENT, times);
    wait.begin(0);
    wait.onAborted(ABORTED, 700); // at random
    expect(times.slow()).toBe(100);
    for (let i = 0; i < 3; i += 1) timeouts.onAbandoned(CLIENT, 1000, 2);
    for (const took of [900, 800, 20]) wait.onAborted({ ...ABORTED, took }, 1000);
    wait.onAborted({ ...ABORTED, took: 950, sent: false }, 1000);
    expect(times.slow()).toBe(800);
  });
});

describe('a known timeout of the client', () => {
  interface Known {
    readonly facts?: Partial<RequestFacts>;
    readonly policy?: Partial<RoutePolicy>;
    readonly latency?: Millis;
    readonly clientTimeout?: Millis;
  }

  /** The first steps of an exchange whose body is read at 100. */
  const stepsOf = ({ facts = { method: 'GET' }, policy, latency = 0, clientTimeout }: Known, results: StepResult[]) => {
    const retry = retryPolicy({ minAttemptTime: 250 });
    const settings = routePolicy({ timeout: 5000, perTryTimeout: 5000, retry, ...policy });
    const script = exchange(
      requestFacts(facts),
      settings,
      () => 0,
      0,
      () => latency,
      clientTimeout,
    );
    script.next();
    return [{ kind: 'body', replayable: true, at: 100 } as const, ...results].map((each) => script.next(each).value);
  };
  const admitOf = (known: Known): unknown => stepsOf(known, [])[0];

  test('is the time in which a request waits and is answered, and at least half of it stays for the wait', () => {
    const clientTimeout = 1000;
    expect(admitOf({ clientTimeout })).toEqual({ do: 'admit', deadline: 1100, clientTimeout });
    expect(admitOf({ clientTimeout, latency: 200 })).toEqual({ do: 'admit', deadline: 900, clientTimeout });
    expect(admitOf({ clientTimeout, latency: 4000 })).toEqual({ do: 'admit', deadline: 600, clientTimeout });
    const facts = { method: 'POST', keyed: true };
    expect(admitOf({ clientTimeout, facts })).toEqual({ do: 'admit', deadline: 850, clientTimeout });
  });

  test('changes nothing if it is longer than the configured one', () => {
    expect(admitOf({ clientTimeout: 6000, latency: 200 })).toEqual(admitOf({ latency: 200 }));
  });

  test('does not bound the wait for a key, whose response may be kept', () => {
    const facts = { method: 'POST', keyed: true };
    const policy = { claims: true };
    expect(admitOf({ clientTimeout: 1000, facts, policy })).toEqual({ do: 'claim', deadline: 4850 });
  });

  test('does not bound a write that is finished without its client', () => {
    const facts = { method: 'POST', keyed: true };
    const policy = { retry: retryPolicy({ onClientGone: 'finish' }) };
    expect(admitOf({ clientTimeout: 1000, facts, policy })).toEqual(admitOf({ facts, policy }));
  });

  test('bounds the send and the retry too', () => {
    const [, send, reserve] = stepsOf({ clientTimeout: 1000, latency: 200 }, [
      { kind: 'admitted', at: 300 },
      { kind: 'sent', outcome: response(503), at: 400 },
    ]);
    expect(send).toMatchObject({ do: 'send', startBy: 900, timeout: 4800 });
    expect(reserve).toMatchObject({ do: 'reserve', deadline: 900, attemptTime: 200, clientTimeout: 1000 });
  });
});
