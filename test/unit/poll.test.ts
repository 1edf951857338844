import { describe, expect, test } from 'vitest';
import { makeBackOff } from '../../src/core/backoff/strategies.ts';
import type { Poll, PollsSoFar } from '../../src/core/polling/choose-poll.ts';
import { choosePoll, isNotReady, LEAST_DELAY, putOffPoll } from '../../src/core/polling/choose-poll.ts';
import type { Hints } from '../../src/core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../src/core/exchange/attempt-outcome.ts';
import { failure, pollPolicy, response } from '../support/policy.ts';

const doubling = makeBackOff({ strategy: 'exponential', baseInterval: 1000, multiplier: 2, maxInterval: 16_000 });

function choose(soFar: Partial<PollsSoFar>, hints: Partial<Hints> = {}, chance = 0): Poll | undefined {
  const policy = pollPolicy({ backOff: doubling });
  const all = { polls: 1, left: 30_000, took: 10, memory: 0, ...soFar };
  return choosePoll(policy, { ...NO_HINTS, ...hints }, all, () => chance);
}

test('only a status that is listed is not ready', () => {
  const policy = pollPolicy({ notReady: new Set([202, 404]) });
  expect([200, 202, 404, 429, 503].filter((status) => isNotReady(policy, response(status)))).toEqual([202, 404]);
  expect(isNotReady(policy, failure('timeout', true))).toBe(false);
});

describe('the delay', () => {
  test.each([
    [1, 1000],
    [2, 2000],
    [3, 4000],
    [4, 8000],
    [9, 16_000],
  ])('before poll %d + 1 is the back-off’s', (polls, delay) => {
    expect(choose({ polls, left: 60_000 })).toEqual({ delay, source: 'backoff', asked: 0, memory: 0 });
  });

  test('is never shorter than the upstream asks for: chance adds to that, and takes nothing', () => {
    expect(choose({}, { retryAfter: 5000 })).toMatchObject({ delay: 5000, source: 'hint', asked: 5000 });
    expect(choose({}, { retryAfter: 5000 }, 0.5)).toMatchObject({ delay: 5250, source: 'hint', asked: 5000 });
    expect(choose({ polls: 4 }, { retryAfter: 5000 })).toMatchObject({ delay: 8000, source: 'backoff', asked: 5000 });
  });

  test('is never nothing', () => {
    const policy = pollPolicy({ backOff: makeBackOff({ strategy: 'full-jitter' }) });
    const chosen = choosePoll(policy, NO_HINTS, { polls: 1, left: 30_000, took: 0, memory: 0 }, () => 0);
    expect(chosen?.delay).toBe(LEAST_DELAY);
  });
});

test('none is made where the upstream asks for no other attempt', () => {
  expect(choose({}, { verdict: 'never' })).toBeUndefined();
  expect(choose({}, { verdict: 'retry' })).toBeDefined();
});

describe('the last one', () => {
  test('is put at the end of the wait, as long before it as the one before took', () => {
    expect(choose({ polls: 5, left: 10_000, took: 400 })).toEqual({ delay: 9600, source: 'end', asked: 0, memory: 0 });
  });

  test('comes a little later than the back-off has it, where another would follow it at once', () => {
    expect(choose({ left: 1500 })).toMatchObject({ delay: 1490, source: 'end' });
    expect(choose({ left: 1520 })).toMatchObject({ delay: 1000, source: 'backoff' });
  });

  test('is none where what is in hand is as fresh', () => {
    expect(choose({ polls: 5, left: 4010 })).toMatchObject({ delay: 4000, source: 'end' });
    expect(choose({ polls: 5, left: 4000 })).toBeUndefined();
    expect(choose({ left: 90 })).toBeUndefined();
    expect(choose({ left: -5 })).toBeUndefined();
    expect(choose({ left: 5000, took: 5000 })).toBeUndefined();
  });

  test('does not come before the upstream has asked for it', () => {
    expect(choose({ left: 10_010 }, { retryAfter: 10_000 })).toMatchObject({ delay: 10_000, source: 'end' });
    expect(choose({ left: 10_010 }, { retryAfter: 10_001 })).toBeUndefined();
  });

  test('of as many as may be is put at the end too', () => {
    const policy = pollPolicy({ backOff: doubling, maxPolls: 3 });
    const soFar = { left: 30_000, took: 0, memory: 0 };
    expect(choosePoll(policy, NO_HINTS, { ...soFar, polls: 1 }, () => 0)).toMatchObject({ delay: 1000 });
    expect(choosePoll(policy, NO_HINTS, { ...soFar, polls: 2 }, () => 0)).toMatchObject({
      delay: 30_000,
      source: 'end',
    });
    expect(choosePoll(policy, NO_HINTS, { ...soFar, polls: 3 }, () => 0)).toBeUndefined();
  });

  test('is none where the back-off has given up', () => {
    const policy = pollPolicy({ backOff: { name: 'done', next: () => undefined } });
    expect(choosePoll(policy, NO_HINTS, { polls: 1, left: 30_000, took: 0, memory: 0 }, () => 0)).toBeUndefined();
  });
});

test('one that was turned away comes back when it was told to, in whole seconds at least, if that is within the wait', () => {
  expect(putOffPoll(3000, 10_000, 7)).toEqual({ delay: 3000, source: 'refusal', asked: 3000, memory: 7 });
  expect(putOffPoll(20, 10_000, 0)).toMatchObject({ delay: 1000 });
  expect(putOffPoll(10_000, 10_000, 0)).toBeUndefined();
});
