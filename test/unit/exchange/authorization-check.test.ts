import { describe, expect, test } from 'vitest';
import { runAuthorizationCheck } from '../../../src/core/exchange/external-authorization.ts';
import type { ExchangeStep, StepResult } from '../../../src/core/exchange/steps.ts';
import { DrivenExchange, START } from '../../support/core/driven-exchange.ts';
import { limitedTo } from '../../support/core/policy-builders.ts';

function play(...answers: readonly StepResult[]) {
  const generator = runAuthorizationCheck(1500);
  const steps: ExchangeStep[] = [];
  let result = generator.next();
  for (const answer of answers) {
    if (result.done === true) throw new Error(`over before it could be given '${answer.kind}'`);
    steps.push(result.value);
    result = generator.next(answer);
  }
  return { steps, verdict: result.done === true ? result.value : undefined };
}

describe('a check of an ingress', () => {
  const allowed = { kind: 'forward', unknown: false, attempts: 0, retryOutcome: undefined };
  const ADMIT = { do: 'admit', deadline: 1500 };

  test('that is admitted is counted as sent, and allowed', () => {
    const played = play({ kind: 'admitted', at: 0 }, { kind: 'granted', at: 0 });
    expect(played).toEqual({ steps: [ADMIT, { do: 'grant' }], verdict: allowed });
  });

  test('that observe mode would have refused is allowed', () => {
    const wouldHave = { decision: 'refused', why: 'held' } as const;
    const played = play({ kind: 'admitted', at: 0, wouldHave }, { kind: 'granted', at: 0 });
    expect(played.verdict).toEqual(allowed);
  });

  test.each(['over_share', 'held', 'blocked', 'queue_timeout', 'queue_full'] as const)(
    'that is refused with %s gets the refusal and its Retry-After, and is not counted as sent',
    (why) => {
      const played = play({ kind: 'refused', why, retryAfterMs: 700, at: 0 });
      const verdict = { kind: 'refuse', why, retryAfterMs: 700, attempts: 0, retryOutcome: undefined };
      expect(played).toEqual({ steps: [ADMIT], verdict });
    },
  );

  test('that is queued at a shutdown is allowed: the ingress does not shut down', () => {
    const played = play({ kind: 'refused', why: 'draining', retryAfterMs: 1000, at: 0 });
    expect(played).toEqual({ steps: [ADMIT], verdict: allowed });
  });

  test('whose client has gone ends without a decision', () => {
    const verdict = { kind: 'gone', unknown: false, attempts: 0, retryOutcome: undefined };
    expect(play({ kind: 'gone', at: 0 })).toEqual({ steps: [ADMIT], verdict });
  });

  test('fails if the interpreter answers a step with another kind of result', () => {
    expect(() => play({ kind: 'waited', at: 0 })).toThrow("'admitted'");
    expect(() => play({ kind: 'admitted', at: 0 }, { kind: 'waited', at: 0 })).toThrow("'granted'");
  });
});

describe('the driver of a check', () => {
  const check = (isTokenTaken: boolean): DrivenExchange =>
    new DrivenExchange({
      generator: runAuthorizationCheck(START + 5000),
      upstream: limitedTo(1),
      isTokenTaken,
    }).start();

  test('allows it at once, having counted it as sent and no longer in flight', () => {
    const exchange = check(false);
    expect(exchange.effects).toEqual(['forward']);
    expect(exchange.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 0, retryOutcome: undefined });
    const meter = exchange.store.findLimit(exchange.ticket.limitRefs[0]!)?.meter;
    expect([meter?.sendCount, meter?.inFlight]).toEqual([1, 0]);
  });

  test('allows it when its turn in the queue comes', () => {
    const exchange = check(true);
    expect(exchange.effects).toEqual([]);
    expect(exchange.wakeGate().effects).toEqual(['forward']);
    expect(exchange.driver.queued).toBe(1000);
  });
});
