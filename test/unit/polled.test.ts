import { describe, expect, test } from 'vitest';
import type { Answer, Plan, Step } from '../../src/core/exchange/steps.ts';
import { live } from '../../src/core/exchange/polling-exchange.ts';
import type { PollPolicy } from '../../src/core/polling/choose-poll.ts';
import type { Millis, Outcome, RequestFacts, Verdict } from '../../src/core/exchange/attempt-outcome.ts';
import { failure, fixedDelay, planOf, pollPolicy, requestFacts, response } from '../support/policy.ts';

const NOT_READY = response(202);
const plan = { timeout: 5000, perTryTimeout: 2000 } as const;

interface Played {
  readonly steps: readonly Step[];
  readonly verdict: Verdict | undefined;
  readonly now: Millis;
}

/** An answer of its own to a step; undefined: what is usual. */
type World = (step: Step, n: number, now: Millis) => Answer | undefined;

/**
 * Plays a request whose client waits half a minute. Attempts take 10 ms and come to `outcomes`, the last of them for ever.
 */
function play(
  outcomes: readonly Outcome[],
  { world, facts, policy }: { world?: World; facts?: Partial<RequestFacts>; policy?: Partial<PollPolicy> } = {},
  more: Partial<Plan> = {},
): Played {
  const all = planOf({ ...plan, poll: pollPolicy({ backOff: fixedDelay(4000), ...policy }), ...more });
  const script = live(requestFacts({ wait: 30_000, ...facts }), all, () => 0, 0);
  const steps: Step[] = [];
  let now = 0;
  let sends = 0;
  const usual = (step: Step): Answer => {
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

describe('what is not ready is asked for again', () => {
  test('until it is ready: the answer in hand is let go only when the next poll may be begun', () => {
    const played = play([NOT_READY, NOT_READY, response(200)]);
    expect(does(played)).toBe('body admit send poll wait admit send poll wait admit send');
    expect(played.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 3, polls: 3, retryEnd: undefined });
  });

  test('until the wait ends: the last poll comes just then, and its answer goes through', () => {
    const played = play([NOT_READY]);
    expect(waits(played)).toEqual([4000, 4000, 4000, 4000, 4000, 4000, 5920]);
    expect(played.now).toBe(30_000);
    expect(played.verdict).toEqual({ kind: 'forward', unknown: false, attempts: 8, polls: 8, notReady: true });
  });

  test('for no longer than may be', () => {
    expect(play([NOT_READY], { policy: { maxWait: 10_000 } }).now).toBe(10_000);
  });

  test('until another answer comes, good or bad', () => {
    expect(play([NOT_READY, response(404)]).verdict).toMatchObject({ kind: 'forward', attempts: 2, polls: 2 });
  });

  test('not where nobody waits, where nothing is polled, or where we observe', () => {
    const once = { kind: 'forward', unknown: false, attempts: 1, retryEnd: undefined };
    const script = (facts: Partial<RequestFacts>, more: Partial<Plan>) => play([NOT_READY], { facts }, more).verdict;
    expect(play([NOT_READY], { facts: { wait: 0 } }).verdict).toMatchObject({ attempts: 1 });
    expect(script({}, { poll: undefined })).toEqual(once);
    expect(script({}, { mode: 'observe' })).toEqual(once);
  });

  test('not where its body cannot be sent again', () => {
    const world: World = (step) => (step.do === 'body' ? { kind: 'body', replayable: false, at: 0 } : undefined);
    expect(does(play([NOT_READY], { world }))).toBe('body admit send');
  });

  test('not where no poll may be begun: what is in hand goes through', () => {
    const world: World = (step, _, now) =>
      step.do === 'poll' ? { kind: 'denied', why: 'deadline', at: now } : undefined;
    const played = play([NOT_READY], { world });
    expect(does(played)).toBe('body admit send poll');
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 1, notReady: true });
  });

  test('it is not retried, whatever retries are made of', () => {
    const played = play([response(409)], { policy: { notReady: new Set([409]) }, facts: { keyed: true } });
    expect(does(played)).not.toContain('reserve');
  });
});

describe('each poll is a request of its own', () => {
  test('its time begins when it does', () => {
    const { steps } = play([NOT_READY, NOT_READY, response(200)]);
    expect(steps.flatMap((step) => (step.do === 'admit' ? [step.deadline] : []))).toEqual([5000, 9010, 13_020]);
    expect(steps.flatMap((step) => (step.do === 'poll' ? [step.deadline] : []))).toEqual([9010, 13_020]);
  });

  test('it fails as others do: retried as often, counted from 1', () => {
    const played = play([NOT_READY, response(503), response(503), NOT_READY, response(503), response(200)]);
    expect(does(played)).toBe(
      'body admit send poll wait admit send reserve wait admit send reserve wait admit send poll wait admit send reserve wait admit send',
    );
    expect(played.steps.flatMap((step) => (step.do === 'send' ? [step.attempt] : []))).toEqual([1, 1, 2, 3, 1, 2]);
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 6, polls: 3, retryEnd: 'success' });
  });

  test('its error goes through when it is not retried any more', () => {
    const failing = [NOT_READY, ...Array.from({ length: 4 }, () => response(503))];
    expect(play(failing).verdict).toMatchObject({
      kind: 'forward',
      attempts: 5,
      polls: 2,
      retryEnd: 'attempts_exhausted',
    });
    const broken = [NOT_READY, ...Array.from({ length: 4 }, () => failure('reset', true))];
    expect(play(broken).verdict).toMatchObject({ kind: 'fail', reason: 'reset', polls: 2 });
  });

  test('a retry before it that went well is told as that', () => {
    expect(play([response(503), NOT_READY, response(200)]).verdict).toMatchObject({ retryEnd: 'success', polls: 2 });
  });

  test('turned away, it comes back when it was told to', () => {
    let refusals = 0;
    const world: World = (step, n, now) => {
      if (step.do !== 'admit' || n < 4 || refusals === 2) return undefined;
      refusals += 1;
      return { kind: 'refused', why: 'over_share', retryAfter: 3000, at: now };
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
    ['because we go away', 'draining', 1000],
  ] as const)('turned away %s, it says so', (_, why, retryAfter) => {
    const world: World = (step, n, now) =>
      step.do === 'admit' && n > 3 ? { kind: 'refused', why, retryAfter, at: now } : undefined;
    expect(play([NOT_READY], { world }).verdict).toMatchObject({ kind: 'refuse', why, retryAfter, attempts: 1 });
  });
});

describe('the wait is broken off', () => {
  test('at once when its client has gone', () => {
    const world: World = (step, _, now) => (step.do === 'wait' ? { kind: 'gone', at: now } : undefined);
    const played = play([NOT_READY], { world });
    expect(does(played)).toBe('body admit send poll wait');
    expect(played.verdict).toMatchObject({ kind: 'gone', attempts: 1 });
  });

  test('when we go away: by one poll more, whose answer goes through', () => {
    const world: World = (step, _, now) => (step.do === 'wait' ? { kind: 'draining', at: now + 700 } : undefined);
    const played = play([NOT_READY], { world });
    expect(does(played)).toBe('body admit send poll wait admit send');
    expect(played.verdict).toMatchObject({ kind: 'forward', attempts: 2, polls: 2, notReady: true });
  });

  test('when we go away, without another poll where the upstream has asked for none so soon', () => {
    const world: World = (step, _, now) => (step.do === 'wait' ? { kind: 'draining', at: now + 700 } : undefined);
    const played = play([response(202, { retryAfter: 9000 })], { world });
    expect(does(played)).toBe('body admit send poll wait');
    expect(played.verdict).toMatchObject({ kind: 'refuse', why: 'draining', retryAfter: 8300, attempts: 1 });
  });
});
