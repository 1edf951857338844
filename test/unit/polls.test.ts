import { describe, expect, test } from 'vitest';
import { makeBackOff } from '../../src/core/backoff/strategies.ts';
import { Polls } from '../../src/core/polling/poll-registry.ts';
import { heldBytes } from '../support/heap.ts';

const backOff = makeBackOff({ strategy: 'exponential', baseInterval: 1000, multiplier: 2, maxInterval: 16_000 });
const asked = { key: 'k', answer: 'a', polls: 1, backOff };
const half = () => 0.5;

describe('a client that asks again for what is not ready', () => {
  test('is told to wait for longer each time', () => {
    const polls = new Polls();
    const told = Array.from({ length: 6 }, (_, n) => polls.slow(asked, 10_000 * n, half));
    expect(told).toEqual([1000, 2000, 4000, 8000, 16_000, 16_000]);
  });

  test('gains nothing by coming early', () => {
    const polls = new Polls();
    const told = Array.from({ length: 4 }, (_, n) => polls.slow(asked, n, half));
    expect(told).toEqual([1000, 2000, 4000, 8000]);
  });

  test('begins anew when the answer changes', () => {
    const polls = new Polls();
    polls.slow(asked, 0, half);
    expect(polls.slow(asked, 1, half)).toBe(2000);
    expect(polls.slow({ ...asked, answer: 'b' }, 2, half)).toBe(1000);
    expect(polls.slow(asked, 3, half)).toBe(1000);
  });

  test('begins anew when it was ready meanwhile', () => {
    const polls = new Polls();
    polls.slow(asked, 0, half);
    polls.forget('k');
    expect(polls.isEmpty).toBe(true);
    expect(polls.slow(asked, 1, half)).toBe(1000);
  });

  test('begins anew when it has not asked for five minutes longer than it was told', () => {
    const polls = new Polls();
    polls.slow(asked, 0, half);
    expect(polls.slow(asked, 301_000, half)).toBe(2000);
    expect(polls.slow(asked, 301_000 + 302_001, half)).toBe(1000);
  });

  test('is told as much later as it was polled for', () => {
    const polls = new Polls();
    expect(polls.slow({ ...asked, polls: 4 }, 0, half)).toBe(8000);
    expect(polls.slow(asked, 1, half)).toBe(16_000);
  });

  test('is one of its own for each resource', () => {
    const polls = new Polls();
    polls.slow(asked, 0, half);
    expect(polls.slow({ ...asked, key: 'other' }, 1, half)).toBe(1000);
  });

  test('goes on being told the same where the back-off has given up, and its memory is handed on', () => {
    const polls = new Polls();
    const remembering = {
      name: 'spy',
      next: (n: number, memory: number) => (n > 2 ? undefined : { delay: memory + 100, memory: memory + 100 }),
    };
    const told = Array.from({ length: 5 }, (_, n) => polls.slow({ ...asked, backOff: remembering }, n, half));
    expect(told).toEqual([100, 200, 300, 300, 300]);
  });
});

describe('the bounds', () => {
  const reached = (polls: Polls, name: string) => polls.bounds.find((bound) => bound.name === name);

  test('the least recently asked is forgotten for a new one', () => {
    const polls = new Polls(2);
    for (const key of ['a', 'b', 'a', 'c']) polls.slow({ ...asked, key }, 0, half);
    expect(reached(polls, 'polled_resources')).toEqual({ name: 'polled_resources', used: 1, reached: 1 });
    expect(polls.slow({ ...asked, key: 'a' }, 1, half)).toBe(4000);
    expect(polls.slow({ ...asked, key: 'b' }, 1, half)).toBe(1000);
  });

  test('no more are waited for on a route than may be', () => {
    const polls = new Polls();
    expect([1, 2, 3].map(() => polls.enter('/a', 2))).toEqual([true, true, false]);
    expect(polls.enter('/b', 2)).toBe(true);
    expect(reached(polls, 'polls_waiting')).toEqual({ name: 'polls_waiting', used: 1, reached: 1 });
    polls.leave('/a');
    expect(polls.enter('/a', 2)).toBe(true);
    expect(polls.enter('/none', 0)).toBe(false);
  });

  test('a reload may change how many', () => {
    const polls = new Polls();
    polls.enter('/a', 2);
    expect(polls.enter('/a', 1)).toBe(false);
    expect(polls.enter('/a', 2)).toBe(true);
  });

  test('one that is remembered takes no more than 350 B', () => {
    const many = 10_000;
    const before = heldBytes();
    const polls = new Polls(many);
    for (let n = 0; n < 2 * many; n += 1) {
      const key = Buffer.from(`${n}-----------`).toString('latin1', 0, 12);
      const answer = Buffer.from(`${n}===========`).toString('latin1', 0, 12);
      polls.slow({ key, answer, polls: 1, backOff }, n + 0.5, half);
    }
    const each = (heldBytes() - before) / many;
    expect(reached(polls, 'polled_resources')?.used).toBe(1);
    expect(each).toBeGreaterThan(50);
    expect(each).toBeLessThan(350);
  });
});
