import { describe, expect, test } from 'vitest';
import type { StepResult, RoutePolicy, ExchangeStep } from '../../../src/core/exchange/steps.ts';
import { runExchange } from '../../../src/core/exchange/polling-exchange.ts';
import type { PollPolicy } from '../../../src/core/polling/choose-poll.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import {
  failure,
  fixedDelay,
  routePolicy,
  pollPolicy,
  requestFacts,
  response,
} from '../../support/core/policy-builders.ts';

const NOT_READY = response(202);
const plan = { timeout: 5000, perTryTimeout: 2000 } as const;

interface Played {
  readonly steps: readonly ExchangeStep[];
  readonly verdict: ExchangeVerdict | undefined;
  readonly now: Millis;
}

/** A custom result for a step; undefined: the default result. */
type World = (step: ExchangeStep, n: number, now: Millis) => StepResult | undefined;

/** Plays a request whose client waits half a minute. Attempts take 10 ms and return `outcomes`, repeating the last. */
function play(
  outcomes: readonly AttemptOutcome[],
  { world, facts, policy }: { world?: World; facts?: Partial<RequestFacts>; policy?: Partial<PollPolicy> } = {},
  more: Partial<RoutePolicy> = {},
): Played {
  const all = routePolicy({ ...plan, poll: pollPolicy({ backOff: fixedDelay(4000), ...policy }), ...more });
  const script = runExchange(requestFacts({ preferredWait: 30_000, ...facts }), all, () => 0, 0);
  const steps: ExchangeStep[] = [];
  let now = 0;
  let sends = 0;
  const usual = (step: ExchangeStep): StepResult => {
    switch (step.do) {
      case 'body':
        return { kind: 'body', replayable: true, at: now };
      case 'admit':
        return { kind: 'admitted', at: now };
      case 'send':
        now += 10;
        sends += 1;
        return { kind: 'sent', outcome: outcomes[sends - 1] ?? outcomes.at(-1)!, at: now };
      case 'reserve':
      case 'poll':
        return { kind: 'reserved', at: now };
      case 'wait':
        now += step.ms;
        return { kind: 'waited', at: now };
      case 'claim':
      case 'join':
      case 'look':
      case 'grant':
        throw new Error('an exchange sends its own');
    }
  };
  let result = script.next();
  while (result.done !== true) {
    const step = result.value;
    steps.push(step);
    if (steps.length > 500) throw new Error('the script does not end');
    const answer = world?.(step, steps.length, now) ?? usual(step);
    now = answer.at;
    result = script.next(answer);
  }
  return { steps, verdict: result.value, now };
}

const does = ({ steps }: Played) => steps.map((step) => step.do).join(' ');
const waits = ({ steps }: Played) => steps.flatMap((step) => (step.do === 'wait' ? [step.ms] : []));

describe('an unfinished result is polled', () => {
  test('until it is ready: the response in hand is released only when the next poll may begin', () => {
    const played = play([NOT_READY, NOT_READY, response(200)]);
    expect(does(played)).toBe('body admit send poll wait admit send poll wait admit send');
    expect(played.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 3, polls: 3, retryOutcome: undefined });
  });

  test('for the rest of the wait if something delayed the request before its first poll', () => {
    const delayed: World = (step) => (step.do === 'body' ? { kind: 'body', replayable: true, at: 20_000 } : undefined);
    const played = play([NOT_READY], { world: delayed });
    expect(waits(played)).toEqual([4000, 5970]);
    expect(played.now).toBe(30_000);
  });

  test('until the wait ends: the last poll is sent just before, and its response is forwarded', () => {
    const played = play([NOT_READY]);
    expect(waits(played)).toEqual([4000, 4000, 4000, 4000, 4000, 4000, 5920]);
    expect(played.now).toBe(30_000);
    expect(played.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 8, polls: 8, notReady: true });
  });

  test('for no longer than the maximum wait', () => {
    expect(play([NOT_READY], { policy: { maxWait: 10_000 } }).now).toBe(10_000);
  });

  test('until another response arrives, whether success or failure', () => {
    expect(play([NOT_READY, response(404)]).verdict).toMatchObject({ kind: 'forward', attempts: 2, polls: 2 });
  });

  test('but not if the client does not wait, polling is off, or the mode is observe', () => {
    const once = { kind: 'forward', unknown: false, attempts: 1, retryOutcome: undefined };
    const script = (facts: Partial<RequestFacts>, more: Partial<RoutePolicy>) =>
      play([NOT_READY], { facts }, more).verdict;
    expect(play([NOT_READY], { facts: { preferredWait: 0 } }).verdict).toMatchObject({ attempts: 1 });
    expect(script({}, { poll: undefined })).toEqual(once);
    expect(script({}, { mode: 'observe' })).toEqual(once);
  });

  test('but not if it must never be sent twice', () => {
    const played = play([NOT_READY], { facts: { method: 'GET', replaySafety: 'never' } });
    expect(does(played)).toBe('body admit send');
    expect(played.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 1, retryOutcome: undefined });
  });

  test('but not if its body cannot be sent again', () => {
    const world: World = (step) => (step.do === 'body' ? { kind: 'body', replayable: false, at: 0 } : undefined);
    expect(does(play([NOT_READY], { world }))).toBe('body admit send');
  });

  test('but not if no poll may begin: the response in hand is forwarded', () => {
    const world: World = (step, _, now) =>
      step.do === 'poll' ? { kind: 'denied', why: 'deadline', at: now } : undefined;
    const played = play([NOT_READY], { world });
    expect(does(played)).toBe('body admit send poll');
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 1, notReady: true });
  });

  test('and not retried, whatever the retry conditions', () => {
    const played = play([response(409)], { policy: { notReady: new Set([409]) }, facts: { keyed: true } });
    expect(does(played)).not.toContain('reserve');
  });
});

describe('each poll is a separate request', () => {
  test('with a deadline from its own start', () => {
    const { steps } = play([NOT_READY, NOT_READY, response(200)]);
    expect(steps.flatMap((step) => (step.do === 'admit' ? [step.deadline] : []))).toEqual([5000, 9010, 13_020]);
    expect(steps.flatMap((step) => (step.do === 'poll' ? [step.deadline] : []))).toEqual([9010, 13_020]);
  });

  test('with its own attempts, counted from 1', () => {
    const played = play([NOT_READY, response(503), response(503), NOT_READY, response(503), response(200)]);
    expect(does(played)).toBe(
      'body admit send poll wait admit send reserve wait admit send reserve wait admit send poll wait admit send reserve wait admit send',
    );
    expect(played.steps.flatMap((step) => (step.do === 'send' ? [step.attempt] : []))).toEqual([1, 1, 2, 3, 1, 2]);
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 6, polls: 3, retryOutcome: 'success' });
  });

  test('whose error is forwarded when its retries end', () => {
    const failing = [NOT_READY, ...Array.from({ length: 4 }, () => response(503))];
    expect(play(failing).verdict).toMatchObject({
      kind: 'forward',
      attempts: 5,
      polls: 2,
      retryOutcome: 'attempts_exhausted',
    });
    const broken = [NOT_READY, ...Array.from({ length: 4 }, () => failure('reset', true))];
    expect(play(broken).verdict).toMatchObject({ kind: 'fail', reason: 'reset', polls: 2 });
  });

  test('which reports its earlier retry as a success', () => {
    expect(play([response(503), NOT_READY, response(200)]).verdict).toMatchObject({
      retryOutcome: 'success',
      polls: 2,
    });
  });

  test('which is repeated at its Retry-After if it is refused', () => {
    let refusals = 0;
    const world: World = (step, n, now) => {
      if (step.do !== 'admit' || n < 4 || refusals === 2) return undefined;
      refusals += 1;
      return { kind: 'refused', why: 'over_share', retryAfterMs: 3000, at: now };
    };
    const played = play([NOT_READY, response(200)], { world });
    expect(does(played)).toBe('body admit send poll wait admit poll wait admit poll wait admit send');
    expect(waits(played)).toEqual([4000, 3000, 3000]);
    expect(played.steps.flatMap((step) => (step.do === 'poll' ? [step.after] : []))).toEqual([
      'not_ready',
      'refused',
      'refused',
    ]);
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 2, polls: 2 });
  });

  test.each([
    ['beyond the wait', 'over_share', 40_000],
    ['on shutdown', 'draining', 1000],
  ] as const)('which reports a refusal %s', (_, why, retryAfterMs) => {
    const world: World = (step, n, now) =>
      step.do === 'admit' && n > 3 ? { kind: 'refused', why, retryAfterMs, at: now } : undefined;
    expect(play([NOT_READY], { world }).verdict).toMatchObject({ kind: 'refuse', why, retryAfterMs, attempts: 1 });
  });
});

describe('the wait ends early', () => {
  test('at once when its client leaves', () => {
    const world: World = (step, _, now) => (step.do === 'wait' ? { kind: 'gone', at: now } : undefined);
    const played = play([NOT_READY], { world });
    expect(does(played)).toBe('body admit send poll wait');
    expect(played.verdict).toMatchObject({ kind: 'gone', attempts: 1 });
  });

  test('on shutdown, with one more poll, whose response is forwarded', () => {
    const world: World = (step, _, now) => (step.do === 'wait' ? { kind: 'draining', at: now + 700 } : undefined);
    const played = play([NOT_READY], { world });
    expect(does(played)).toBe('body admit send poll wait admit send');
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 2, polls: 2, notReady: true });
  });

  test('on shutdown, without another poll if the upstream does not allow one so soon', () => {
    const world: World = (step, _, now) => (step.do === 'wait' ? { kind: 'draining', at: now + 700 } : undefined);
    const played = play([response(202, { retryAfterMs: 9000 })], { world });
    expect(does(played)).toBe('body admit send poll wait');
    expect(played.verdict).toMatchObject({ kind: 'refuse', why: 'draining', retryAfterMs: 8300, attempts: 1 });
  });
});
