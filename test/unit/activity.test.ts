import { describe, expect, test } from 'vitest';
import { Activity } from '../../src/core/admission/active-clients.ts';
import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';

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

  test('what the others ask for is told on average, without one’s own', () => {
    // Each arrival is half a request a second, and fades over 2 s.
    const { activity } = new Arrivals().note('a', 0).note('b', 0).note('b', 0).note('c', 0);
    expect(activity.demandOfOthers(0.5, 0)).toBe((2 - 0.5) / 2);
    expect(activity.demandOfOthers(0.5 * Math.exp(-0.5), 1000)).toBeCloseTo(((2 - 0.5) / 2) * Math.exp(-0.5), 12);
    activity.note(1000, 0, 1);
    expect(activity.demandOfOthers(0, 1000)).toBeCloseTo((2 * Math.exp(-0.5) + 0.5) / 2, 12);
  });

  test('who is alone has no others, and nobody asks for less than nothing', () => {
    expect(new Activity().demandOfOthers(0, 0)).toBe(0);
    const { activity } = new Arrivals().note('a', 0);
    expect(activity.demandOfOthers(0.5, 0)).toBe(0);
    activity.note(0, Number.NEGATIVE_INFINITY, 1);
    expect(activity.demandOfOthers(1 + 1e-9, 0)).toBe(0);
  });

  test('a pause makes a new start', () => {
    const { activity } = new Arrivals().note('a', 0).note('b', 0);
    expect(activity.weight(6000, 1)).toBe(1);
  });
});
