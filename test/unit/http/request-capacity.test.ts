import { describe, expect, test } from 'vitest';
import type { OverloadMonitor } from '../../../src/http/overload/overload-monitor.ts';
import { RequestCapacity } from '../../../src/http/overload/request-capacity.ts';

function start(maxRequests: number) {
  const overload = { shouldShed: () => false } as unknown as OverloadMonitor;
  const capacity = new RequestCapacity({ maxRequests, overload, random: () => 0.5 });
  const isFull = (address: string | undefined): boolean => capacity.problemIfFull(() => address) !== undefined;
  /** Requests that begin until one is refused, at most `count`. */
  const fill = (address: string | undefined, count = maxRequests): number => {
    let begun = 0;
    for (; begun < count && !isFull(address); begun += 1) capacity.enter(address);
    return begun;
  };
  return { capacity, isFull, fill };
}

describe('one address', () => {
  test('leaves a ninth of the requests to others, and has room again when a request ends', () => {
    const { capacity, isFull, fill } = start(9000);
    expect(fill('busy')).toBe(8000);
    expect(capacity.bound).toMatchObject({ name: 'requests', used: 8000 / 9000, reached: 1 });
    expect(fill('calm', 100)).toBe(100);
    expect(isFull('busy')).toBe(true);
    for (let i = 0; i < 1000; i += 1) capacity.leave('busy');
    expect(fill('busy', 100)).toBe(100);
  });

  test('is refused with a time to retry, as if the bound were full', () => {
    const { capacity, fill } = start(9000);
    fill('busy');
    const refusal = capacity.problemIfFull(() => 'busy');
    expect(refusal).toMatchObject({ status: 503, reason: 'too_many_requests', unknown: false });
    expect(refusal?.retryAfterMs).toBeGreaterThanOrEqual(1000);
  });

  test.each([
    [1, 1],
    [3, 3],
    [8, 8],
    [9, 8],
    [100, 89],
  ])('has, of a bound of %i, at most %i', (maxRequests, most) => {
    expect(start(maxRequests).fill('alone')).toBe(most);
  });

  test('is computed only while so many requests are in progress that one address may have too many', () => {
    const { capacity, fill } = start(9000);
    fill('a', 4000);
    fill('b', 3999);
    let computed = 0;
    const address = (): string => {
      computed += 1;
      return 'c';
    };
    expect([capacity.problemIfFull(address), computed]).toEqual([undefined, 0]);
    capacity.enter('c');
    expect([capacity.problemIfFull(address), computed]).toEqual([undefined, 1]);
  });
});

test('several addresses can use the whole bound', () => {
  const { fill } = start(90);
  const parts = ['a', 'b', 'c', 'd'].map((address) => fill(address));
  expect(parts).toEqual([80, 9, 1, 0]);
});

test('requests whose address is unknown, such as those of a proxy for many clients, can use the whole bound', () => {
  const { fill } = start(90);
  expect([fill(undefined), fill('a')]).toEqual([90, 0]);
});

test('the requests that this bound refuses take no room from others, and show in the used part', () => {
  const { capacity, isFull, fill } = start(90);
  fill('busy');
  const excess = Array.from({ length: 20 }, () => capacity.enterRefused());
  expect(capacity.bound.used).toBe(100 / 90);
  expect(isFull('calm')).toBe(false);
  for (const leave of excess) leave();
  expect(capacity.bound.used).toBe(80 / 90);
});
