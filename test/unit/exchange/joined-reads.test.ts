import { describe, expect, test } from 'vitest';
import { DrivenExchange, START, type DrivenExchangeOptions } from '../../support/core/driven-exchange.ts';
import { response, SEND_ONCE } from '../../support/core/policy-builders.ts';

/** A request of a route that coalesces. */
const coalescing = ({ facts, ...options }: DrivenExchangeOptions = {}): DrivenExchange => {
  const policy = { coalesces: true, timeout: 10_000, retry: SEND_ONCE, ...options.policy };
  return new DrivenExchange({ ...options, facts: { method: 'GET', ...facts }, policy }).start();
};

describe('a read of a route that coalesces', () => {
  test.each(['GET', 'HEAD'])('%s: joins equal ones before it is admitted, for half of its timeout', (method) => {
    expect(coalescing({ facts: { method } }).effects).toEqual(['body', `join ${START + 5000}`]);
  });

  test('is sent itself without a response to an equal one', () => {
    const exchange = coalescing().at(1040, (driver) => driver.onJoined(undefined, true));
    expect(exchange.effects.slice(2)).toEqual(['send 1']);
    exchange.answer(response(200));
    expect(exchange.verdict).toMatchObject({ kind: 'forward', attempts: 1 });
    expect(exchange.driver.queued).toBe(40);
    expect(exchange.steps.slice(0, 1)).toEqual([{ what: 'joined', at: 1040, waited: 40, equalId: undefined }]);
  });

  test('is not delayed, and reports nothing, if there is no equal one', () => {
    const exchange = coalescing().at(1000, (driver) => driver.onJoined(undefined, false));
    exchange.answer(response(200));
    expect([exchange.driver.queued, exchange.steps]).toEqual([0, []]);
  });

  test('ends with the response to an equal one, without admission', () => {
    const exchange = coalescing({ isTokenTaken: true }).at(1250, (driver) => driver.onJoined('r-0', true));
    expect(exchange.verdict).toEqual({ kind: 'share', attempts: 0, retryOutcome: undefined });
    expect(exchange.effects.slice(2)).toEqual(['share']);
    expect(exchange.driver.queued).toBe(250);
    expect(exchange.steps).toEqual([{ what: 'joined', at: 1250, waited: 250, equalId: 'r-0' }]);
  });

  test('leaves the others when its client has gone', () => {
    const exchange = coalescing().at(1100, (driver) => driver.onClientGone(true));
    expect(exchange.effects.slice(2)).toEqual(['leave', 'gone']);
    expect(exchange.steps).toEqual([{ what: 'gone', at: 1100, during: 'join' }]);
    exchange.at(1200, (driver) => driver.onJoined('r-0', true));
    expect(exchange.verdict?.kind).toBe('gone');
  });

  test('is refused when the process ends', () => {
    const exchange = coalescing().at(1100, (driver) => driver.expireDrain());
    expect(exchange.effects.slice(2)).toEqual(['leave', 'refuse']);
    expect(exchange.verdict).toMatchObject({ why: 'draining', retryAfterMs: 1000 });
  });
});

test.each<[string, DrivenExchangeOptions]>([
  ['a write', { facts: { method: 'POST' } }],
  ['a POST that only reads', { facts: { method: 'POST', replaySafety: 'safe' } }],
  ['a GET that has an effect', { facts: { replaySafety: 'never' } }],
  ['a read whose body is expected later', { facts: { expectsContinue: true } }],
  ['a read of another route', { policy: { coalesces: false } }],
])('%s joins none', (_, options) => {
  expect(coalescing(options).effects.join(' ')).not.toContain('join');
});
