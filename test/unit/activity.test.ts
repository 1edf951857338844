import { describe, expect, test } from 'vitest';
import { Activity } from '../../src/policy/activity.ts';
import type { Millis } from '../../src/policy/types.ts';

/** Clients by name, each with its weight: notes their arrivals as a store would. */
class Arrivals {
  readonly activity = new Activity();
  readonly #last = new Map<string, Millis>();

  note(name: string, now: Millis, weight = 1): this {
    this.activity.note(now, this.#last.get(name) ?? Number.NEGATIVE_INFINITY, weight);
    this.#last.set(name, now);
    return this;
  }
}

describe('who is active', () => {
  test('each client that came in this window of two seconds counts once, with its weight', () => {
    const { activity } = new Arrivals().note('a', 0).note('a', 10).note('b', 20, 4).note('a', 1999);
    expect(activity.clients(1999)).toBe(2);
    expect(activity.weight(1999, 1)).toBe(5);
  });

  test('or in the last, if that were more', () => {
    const arrivals = new Arrivals().note('a', 0).note('b', 20, 4);
    arrivals.note('a', 2000);
    expect(arrivals.activity.weight(2000, 1)).toBe(5);
    expect(arrivals.activity.clients(3999)).toBe(2);
    expect(arrivals.activity.weight(4000, 1)).toBe(1);
    expect(arrivals.activity.clients(4000)).toBe(1);
  });

  test('nobody is forgotten for coming in both', () => {
    const { activity } = new Arrivals().note('a', 1999).note('a', 2001).note('b', 2002);
    expect(activity.clients(2002)).toBe(2);
  });

  test('who asks is active', () => {
    expect(new Activity().weight(0, 4)).toBe(4);
    expect(new Activity().clients(0)).toBe(1);
  });

  test('a pause makes a new start', () => {
    const { activity } = new Arrivals().note('a', 0).note('b', 0);
    expect(activity.weight(6000, 1)).toBe(1);
  });
});
