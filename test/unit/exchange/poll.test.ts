import { describe, expect, test } from 'vitest';
import { makeBackOff } from '../../../src/core/backoff/strategies.ts';
import type { PlannedPoll, PollProgress } from '../../../src/core/polling/choose-poll.ts';
import { choosePoll, isNotReady, MIN_POLL_DELAY, postponePoll } from '../../../src/core/polling/choose-poll.ts';
import type { Hints } from '../../../src/core/hints/hints.ts';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import { failure, pollPolicy, response } from '../../support/core/policy-builders.ts';

const doubling = makeBackOff({ strategy: 'exponential', baseInterval: 1000, multiplier: 2, maxInterval: 16_000 });

function choose(soFar: Partial<PollProgress>, hints: Partial<Hints> = {}, chance = 0): PlannedPoll | undefined {
  const policy = pollPolicy({ backOff: doubling });
  const all = { polls: 1, waitLeft: 30_000, lastPollTime: 10, memory: 0, ...soFar };
  return choosePoll(policy, { ...NO_HINTS, ...hints }, all, () => chance);
}

test('only a listed status means that the result is not ready', () => {
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
  ])('before poll %d + 1 is that of the backoff', (polls, delay) => {
    expect(choose({ polls, waitLeft: 60_000 })).toEqual({ delay, source: 'backoff', requestedDelay: 0, memory: 0 });
  });

  test('is never shorter than the upstream requests: jitter only adds to it', () => {
    expect(choose({}, { retryAfterMs: 5000 })).toMatchObject({ delay: 5000, source: 'hint', requestedDelay: 5000 });
    expect(choose({}, { retryAfterMs: 5000 }, 0.5)).toMatchObject({
      delay: 5250,
      source: 'hint',
      requestedDelay: 5000,
    });
    expect(choose({ polls: 4 }, { retryAfterMs: 5000 })).toMatchObject({
      delay: 8000,
      source: 'backoff',
      requestedDelay: 5000,
    });
  });

  test('is never zero', () => {
    const policy = pollPolicy({ backOff: makeBackOff({ strategy: 'full-jitter' }) });
    const chosen = choosePoll(policy, NO_HINTS, { polls: 1, waitLeft: 30_000, lastPollTime: 0, memory: 0 }, () => 0);
    expect(chosen?.delay).toBe(MIN_POLL_DELAY);
  });
});

test('is undefined if the upstream requests no further attempt', () => {
  expect(choose({}, { retryAdvice: 'never' })).toBeUndefined();
  expect(choose({}, { retryAdvice: 'retry' })).toBeDefined();
});

describe('the last poll', () => {
  test('is sent at the end of the wait, less the time that the previous poll took', () => {
    expect(choose({ polls: 5, waitLeft: 10_000, lastPollTime: 400 })).toEqual({
      delay: 9600,
      source: 'end',
      requestedDelay: 0,
      memory: 0,
    });
  });

  test('is sent a little later than the backoff if another would follow it at once', () => {
    expect(choose({ waitLeft: 1500 })).toMatchObject({ delay: 1490, source: 'end' });
    expect(choose({ waitLeft: 1520 })).toMatchObject({ delay: 1000, source: 'backoff' });
  });

  test('is skipped if the response in hand is as fresh', () => {
    expect(choose({ polls: 5, waitLeft: 4010 })).toMatchObject({ delay: 4000, source: 'end' });
    expect(choose({ polls: 5, waitLeft: 4000 })).toBeUndefined();
    expect(choose({ waitLeft: 90 })).toBeUndefined();
    expect(choose({ waitLeft: -5 })).toBeUndefined();
    expect(choose({ waitLeft: 5000, lastPollTime: 5000 })).toBeUndefined();
  });

  test('is not sent before the upstream allows it', () => {
    expect(choose({ waitLeft: 10_010 }, { retryAfterMs: 10_000 })).toMatchObject({ delay: 10_000, source: 'end' });
    expect(choose({ waitLeft: 10_010 }, { retryAfterMs: 10_001 })).toBeUndefined();
  });

  test('is sent at the end also if the number of polls is exhausted', () => {
    const policy = pollPolicy({ backOff: doubling, maxPolls: 3 });
    const soFar = { waitLeft: 30_000, lastPollTime: 0, memory: 0 };
    expect(choosePoll(policy, NO_HINTS, { ...soFar, polls: 1 }, () => 0)).toMatchObject({ delay: 1000 });
    expect(choosePoll(policy, NO_HINTS, { ...soFar, polls: 2 }, () => 0)).toMatchObject({
      delay: 30_000,
      source: 'end',
    });
    expect(choosePoll(policy, NO_HINTS, { ...soFar, polls: 3 }, () => 0)).toBeUndefined();
  });

  test('is skipped if the backoff has given up', () => {
    const policy = pollPolicy({ backOff: { name: 'done', next: () => undefined } });
    expect(
      choosePoll(policy, NO_HINTS, { polls: 1, waitLeft: 30_000, lastPollTime: 0, memory: 0 }, () => 0),
    ).toBeUndefined();
  });
});

test('a refused poll is sent at its Retry-After, after a second at least, if that is within the wait', () => {
  expect(postponePoll(3000, 10_000, 7)).toEqual({ delay: 3000, source: 'refusal', requestedDelay: 3000, memory: 7 });
  expect(postponePoll(20, 10_000, 0)).toMatchObject({ delay: 1000 });
  expect(postponePoll(10_000, 10_000, 0)).toBeUndefined();
});
