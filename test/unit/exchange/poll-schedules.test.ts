import { describe, expect, test } from 'vitest';
import { makeBackOff } from '../../../src/core/backoff/strategies.ts';
import { PollRegistry } from '../../../src/core/polling/poll-registry.ts';
import { heldBytes } from '../../support/heap.ts';

const backOff = makeBackOff({ strategy: 'exponential', baseInterval: 1000, multiplier: 2, maxInterval: 16_000 });
const request = { key: 'k', answer: 'a', polls: 1, backOff };
const half = () => 0.5;
/** A client that waits, at this address. */
const at = (fairnessKey: string, client = fairnessKey) => ({ fairnessKey, client });
const one = at('10.0.0.1');
const other = at('10.0.0.2');

describe('a client that polls an unfinished result', () => {
  test('gets a longer delay for each request', () => {
    const polls = new PollRegistry();
    const delays = Array.from({ length: 6 }, (_, n) => polls.nextRetryAfter(request, 10_000 * n, half));
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 16_000]);
  });

  test('gains nothing by an early request', () => {
    const polls = new PollRegistry();
    const delays = Array.from({ length: 4 }, (_, n) => polls.nextRetryAfter(request, n, half));
    expect(delays).toEqual([1000, 2000, 4000, 8000]);
  });

  test('starts with the first delay after the response has changed', () => {
    const polls = new PollRegistry();
    polls.nextRetryAfter(request, 0, half);
    expect(polls.nextRetryAfter(request, 1, half)).toBe(2000);
    expect(polls.nextRetryAfter({ ...request, answer: 'b' }, 2, half)).toBe(1000);
    expect(polls.nextRetryAfter(request, 3, half)).toBe(1000);
  });

  test('starts with the first delay after the result was ready in between', () => {
    const polls = new PollRegistry();
    polls.nextRetryAfter(request, 0, half);
    polls.forget('k');
    expect(polls.isEmpty).toBe(true);
    expect(polls.nextRetryAfter(request, 1, half)).toBe(1000);
  });

  test('starts with the first delay after five minutes beyond its delay', () => {
    const polls = new PollRegistry();
    polls.nextRetryAfter(request, 0, half);
    expect(polls.nextRetryAfter(request, 301_000, half)).toBe(2000);
    expect(polls.nextRetryAfter(request, 301_000 + 302_001, half)).toBe(1000);
  });

  test('gets a delay that includes the polls made for it', () => {
    const polls = new PollRegistry();
    expect(polls.nextRetryAfter({ ...request, polls: 4 }, 0, half)).toBe(8000);
    expect(polls.nextRetryAfter(request, 1, half)).toBe(16_000);
  });

  test('has a separate schedule for each resource', () => {
    const polls = new PollRegistry();
    polls.nextRetryAfter(request, 0, half);
    expect(polls.nextRetryAfter({ ...request, key: 'other' }, 1, half)).toBe(1000);
  });

  test('keeps its last delay after the backoff has given up', () => {
    const polls = new PollRegistry();
    const remembering = {
      name: 'spy',
      next: (n: number, memory: number) => (n > 2 ? undefined : { delay: memory + 100, memory: memory + 100 }),
    };
    const delays = Array.from({ length: 5 }, (_, n) =>
      polls.nextRetryAfter({ ...request, backOff: remembering }, n, half),
    );
    expect(delays).toEqual([100, 200, 300, 300, 300]);
  });
});

describe('the bounds', () => {
  const reached = (polls: PollRegistry, name: string) => polls.bounds.find((bound) => bound.name === name);

  test('evict the least recently polled schedule for a new one', () => {
    const polls = new PollRegistry(2);
    for (const key of ['a', 'b', 'a', 'c']) polls.nextRetryAfter({ ...request, key }, 0, half);
    expect(reached(polls, 'polled_resources')).toEqual({ name: 'polled_resources', used: 1, reached: 1 });
    expect(polls.nextRetryAfter({ ...request, key: 'a' }, 1, half)).toBe(4000);
    expect(polls.nextRetryAfter({ ...request, key: 'b' }, 1, half)).toBe(1000);
  });

  test('limit the waits on a route', () => {
    const polls = new PollRegistry();
    expect([1, 2, 3].map(() => polls.tryAddWaiter('/a', one, 2))).toEqual([true, true, false]);
    expect(polls.tryAddWaiter('/b', one, 2)).toBe(true);
    expect(reached(polls, 'polls_waiting')).toEqual({ name: 'polls_waiting', used: 1, reached: 1 });
    polls.removeWaiter('/a', one);
    expect(polls.tryAddWaiter('/a', one, 2)).toBe(true);
    expect(polls.tryAddWaiter('/none', one, 0)).toBe(false);
  });

  test('leave a ninth of the waits on a route to other addresses, whatever the keys of one', () => {
    const polls = new PollRegistry();
    const added = (maxWaiting: number, waiter: (n: number) => typeof one): number =>
      Array.from({ length: 2 * maxWaiting }, (_, n) => polls.tryAddWaiter('/a', waiter(n), maxWaiting)).filter(Boolean)
        .length;
    expect(added(900, (n) => at('10.0.0.1', `key-${n}`))).toBe(800);
    expect(polls.tryAddWaiter('/b', one, 900)).toBe(true);
    expect(polls.tryAddWaiter('/a', other, 900)).toBe(true);
    expect(polls.tryAddWaiter('/a', one, 900)).toBe(false);
    polls.removeWaiter('/a', other);
    polls.removeWaiter('/a', at('10.0.0.1', 'key-7'));
    expect(polls.tryAddWaiter('/a', one, 900)).toBe(true);
    expect(polls.tryAddWaiter('/a', one, 900)).toBe(false);
    expect(added(900, (n) => at(`10.0.1.${n}`))).toBe(100);
    expect(reached(polls, 'polls_waiting')?.used).toBe(1);
  });

  test('follow a reload', () => {
    const polls = new PollRegistry();
    polls.tryAddWaiter('/a', one, 2);
    expect(polls.tryAddWaiter('/a', one, 1)).toBe(false);
    expect(polls.tryAddWaiter('/a', one, 2)).toBe(true);
  });

  test('include at most 350 B for a schedule', () => {
    const many = 10_000;
    const before = heldBytes();
    const polls = new PollRegistry(many);
    for (let n = 0; n < 2 * many; n += 1) {
      const key = Buffer.from(`${n}-----------`).toString('latin1', 0, 12);
      const answer = Buffer.from(`${n}===========`).toString('latin1', 0, 12);
      polls.nextRetryAfter({ key, answer, polls: 1, backOff }, n + 0.5, half);
    }
    const each = (heldBytes() - before) / many;
    expect(reached(polls, 'polled_resources')?.used).toBe(1);
    expect(each).toBeGreaterThan(50);
    expect(each).toBeLessThan(350);
  });
});
