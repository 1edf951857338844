/** Which requests count as writes without a key whose outcome is unknown if the process ends. */
import { describe, expect, test } from 'vitest';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import type { ExchangeDescription, ObservedExchange } from '../../../src/core/exchange/exchange-observer.ts';
import { OpenWriteObserver } from '../../../src/telemetry/open-write-observer.ts';
import { failure, response, retryPolicy } from '../../support/core/policy-builders.ts';

const RECORD: RequestRecord = {
  ...{ id: 'r-1', at: 0, route: '/', upstream: 'api', method: 'POST', path: '/pay', client: 'c', status: 200 },
  ...{ outcome: 'forwarded', reason: undefined, attempts: 1, queueTime: 0, sleepTime: 0, timeToHead: 5, took: 10 },
  ...{ retryAfterSeconds: undefined, isTruncated: false },
};

/** One exchange, and the writes that the log has open. */
function observe(description: Partial<ExchangeDescription> = {}) {
  const open = new Map<string, number>();
  let now = 0;
  let attempts = 0;
  const observer = new OpenWriteObserver(
    { onSent: ({ requestId, sentAt }) => open.set(requestId, sentAt), onEnd: (id) => open.delete(id) },
    () => now,
  );
  const exchange: ObservedExchange = {
    describe: () => ({
      ...{ id: 'r-1', method: 'POST', path: '/pay', route: '/', routePath: '/', upstream: 'api' },
      ...{ client: 'c', identifiedBy: 'ip', scheme: 'http', version: '1.1' },
      ...{ traceparent: undefined, tracestate: undefined, retryPolicy: retryPolicy() },
      ...description,
    }),
    lastAttempt: () => ({ endpoint: undefined, origin: undefined, outcome: undefined, cause: undefined }),
    steps: undefined,
    trace: undefined,
  };
  return {
    /** When the open write was sent; undefined if none is open. */
    sentAt: () => open.get('r-1'),
    send: (at: number) => {
      now = at;
      attempts += 1;
      observer.onSend(exchange, attempts);
    },
    receive: (outcome: AttemptOutcome) => observer.onOutcome(exchange, attempts, outcome),
    end: () => observer.onEnd(exchange, RECORD),
  };
}

const LOCKED = response(409, { lock: true });

describe('a request without a key', () => {
  test.each(['POST', 'PATCH', 'PUT', 'DELETE'])('is an open write from its send to its end: %s', (method) => {
    const { sentAt, send, end } = observe({ method });
    expect(sentAt()).toBeUndefined();
    send(7);
    expect(sentAt()).toBe(7);
    end();
    expect(sentAt()).toBeUndefined();
  });

  test.each<[string, Partial<ExchangeDescription>]>([
    ['a safe method', { method: 'GET' }],
    ['a path of retry.safePaths', { replaySafety: 'safe' }],
    ['a key', { key: 'header:idempotency-key' }],
  ])('is no open write with %s', (_, description) => {
    const { sentAt, send, receive } = observe(description);
    send(1);
    expect(sentAt()).toBeUndefined();
    receive(failure('reset', true));
    send(2);
    expect(sentAt()).toBeUndefined();
  });

  test('is an open write on a path of retry.neverPaths', () => {
    const { sentAt, send } = observe({ replaySafety: 'never' });
    send(1);
    expect(sentAt()).toBe(1);
  });
});

describe('while a write waits for its retry', () => {
  test.each<[string, AttemptOutcome]>([
    ['nothing was sent', failure('connect', false)],
    ['a 429 rejected it', response(429)],
    ['a 503 rejected it', response(503)],
    ['a lock rejected it', LOCKED],
  ])('it is not open if %s, and is open again once it is sent', (_, outcome) => {
    const { sentAt, send, receive, end } = observe();
    send(1);
    receive(outcome);
    expect(sentAt()).toBeUndefined();
    send(2);
    expect(sentAt()).toBe(2);
    end();
    expect(sentAt()).toBeUndefined();
  });

  test.each<[string, AttemptOutcome]>([
    ['the connection broke', failure('reset', true)],
    ['no response came in time', failure('timeout', true)],
    ['the upstream failed', response(500)],
  ])('it stays open if %s, whatever a later attempt gets', (_, outcome) => {
    const { sentAt, send, receive } = observe();
    send(1);
    receive(outcome);
    expect(sentAt()).toBe(1);
    send(2);
    receive(response(429));
    expect(sentAt()).toBe(1);
  });

  test('it follows the statuses that the upstream declares as not processed', () => {
    const { sentAt, send, receive } = observe({ retryPolicy: retryPolicy({ notProcessed: new Set([500]) }) });
    send(1);
    receive(response(500));
    expect(sentAt()).toBeUndefined();
    send(2);
    receive(response(503));
    expect(sentAt()).toBe(2);
  });
});

test('an answered write is open until its client has the response', () => {
  const { sentAt, send, receive, end } = observe();
  send(1);
  receive(response(201));
  expect(sentAt()).toBe(1);
  end();
  expect(sentAt()).toBeUndefined();
});
