import { describe, expect, test } from 'vitest';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import { DrivenExchange, START, type DrivenExchangeOptions } from '../../support/core/driven-exchange.ts';
import { failure, response, retryPolicy, SEND_ONCE } from '../../support/core/policy-builders.ts';

/** A response that lacks a Retry-After, and whose other fields ask for this wait. */
const rejection = (status: number, impliedWait: number): AttemptOutcome =>
  ({ ...response(status), impliedWait }) as AttemptOutcome;

function endOf(outcome: AttemptOutcome, options: DrivenExchangeOptions = {}): ExchangeVerdict | undefined {
  return new DrivenExchange({ policy: { retry: SEND_ONCE }, ...options }).start().answer(outcome).verdict;
}

const FORWARDED = { kind: 'forward', unknown: false, attempts: 1, retryOutcome: 'attempts_exhausted' } as const;

describe('a rejection of the upstream', () => {
  test.each([429, 503])(
    'without a Retry-After gets one, not before the wait that its fields ask for (%i)',
    (status) => {
      const verdict = endOf(rejection(status, 42_000));
      expect(verdict).toMatchObject(FORWARDED);
      expect(verdict).toHaveProperty('retryAfterMs');
      if (verdict?.kind === 'forward') expect(verdict.retryAfterMs).toBeGreaterThanOrEqual(42_000);
    },
  );

  test.each([
    ['that has its own', response(429, { retryAfterMs: 2000 }), {}],
    ['in observe mode', rejection(429, 42_000), { mode: 'observe' }],
  ] as const)('%s is forwarded unchanged', (_, outcome, options) => {
    expect(endOf(outcome, options)).toStrictEqual(FORWARDED);
  });

  test('that hides an unknown outcome adds nothing to the report of it', () => {
    const facts = { method: 'POST', keyed: true };
    const exchange = new DrivenExchange({ facts, policy: { retry: retryPolicy({ attempts: 2 }) } }).start();
    exchange.answer(failure('reset', true)).at(START + 500, (driver) => driver.onWake());
    exchange.answer(rejection(503, 42_000));
    expect(exchange.verdict).toEqual({
      kind: 'unknown',
      reason: 'not_processed',
      status: 503,
      attempts: 2,
      retryOutcome: 'attempts_exhausted',
    });
  });
});

test('a failure, which has no response, is reported without a Retry-After', () => {
  expect(endOf(failure('connect', false))).toEqual({
    kind: 'fail',
    reason: 'connect',
    attempts: 1,
    retryOutcome: 'attempts_exhausted',
  });
});
