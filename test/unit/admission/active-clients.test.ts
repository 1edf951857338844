import { describe, expect, test } from 'vitest';
import { ActiveClients } from '../../../src/core/admission/active-clients.ts';
import type { Millis } from '../../../src/core/scalars.ts';

/** Clients by name, each with its weight: records their arrivals as a store would. */
class Arrivals {
  readonly activity = new ActiveClients();
  readonly #last = new Map<string, Millis>();

  note(name: string, now: Millis, weight = 1): this {
    this.activity.onArrival(name, now, this.#last.get(name) ?? Number.NEGATIVE_INFINITY, weight);
    this.#last.set(name, now);
    return this;
  }
}

describe('active clients', () => {
  test('counts each client of the current two-second window once, with its weight', () => {
    const { activity } = new Arrivals().note('a', 0).note('a', 10).note('b', 20, 4).note('a', 1999);
    expect(activity.count(1999)).toBe(2);
    expect(activity.totalWeight(1999, 1)).toBe(5);
  });

  test('uses the previous window if that had more', () => {
    const arrivals = new Arrivals().note('a', 0).note('b', 20, 4);
    arrivals.note('a', 2000);
    expect(arrivals.activity.totalWeight(2000, 1)).toBe(5);
    expect(arrivals.activity.count(3999)).toBe(2);
    expect(arrivals.activity.totalWeight(4000, 1)).toBe(1);
    expect(arrivals.activity.count(4000)).toBe(1);
  });

  test('counts a client that arrived in both windows', () => {
    const { activity } = new Arrivals().note('a', 1999).note('a', 2001).note('b', 2002);
    expect(activity.count(2002)).toBe(2);
  });

  test('counts the requesting client as active', () => {
    expect(new ActiveClients().totalWeight(0, 4)).toBe(4);
    expect(new ActiveClients().count(0)).toBe(1);
  });

  test("reports the mean demand of the other clients, excluding the requester's own", () => {
    // Each arrival is half a request a second, and decays over 2 s.
    const { activity } = new Arrivals().note('a', 0).note('b', 0).note('b', 0).note('c', 0);
    expect(activity.meanDemandOfOthers(0.5, 0)).toBe((2 - 0.5) / 2);
    expect(activity.meanDemandOfOthers(0.5 * Math.exp(-0.5), 1000)).toBeCloseTo(((2 - 0.5) / 2) * Math.exp(-0.5), 12);
    activity.onArrival('a', 1000, 0, 1);
    expect(activity.meanDemandOfOthers(0, 1000)).toBeCloseTo((2 * Math.exp(-0.5) + 0.5) / 2, 12);
  });

  test('reports the demand of all clients, without arrivals at the time that a Retry-After named', () => {
    const { activity } = new Arrivals().note('a', 0).note('b', 0);
    expect(activity.freshDemand(0)).toBe(1);
    activity.onArrival('a', 1000, 0, 1, true);
    expect(activity.freshDemand(1000)).toBeCloseTo(Math.exp(-0.5), 12);
    activity.onArrival('a', 2000, 1000, 1);
    expect(activity.freshDemand(2000)).toBeCloseTo(Math.exp(-1) + 0.5, 12);
    expect(new ActiveClients().freshDemand(0)).toBe(0);
  });

  test('reports no others for a lone client, and no negative demand', () => {
    expect(new ActiveClients().meanDemandOfOthers(0, 0)).toBe(0);
    const { activity } = new Arrivals().note('a', 0);
    expect(activity.meanDemandOfOthers(0.5, 0)).toBe(0);
    activity.onArrival('b', 0, Number.NEGATIVE_INFINITY, 1);
    expect(activity.meanDemandOfOthers(1 + 1e-9, 0)).toBe(0);
  });

  test('knows when others than a client asked last', () => {
    const { activity } = new Arrivals();
    expect(activity.lastArrivalOfOthers('a')).toBe(Number.NEGATIVE_INFINITY);
    const arrivals = new Arrivals().note('a', 0).note('a', 10);
    expect(arrivals.activity.lastArrivalOfOthers('a')).toBe(Number.NEGATIVE_INFINITY);
    arrivals.note('b', 20).note('b', 30).note('a', 40).note('a', 50);
    expect(['a', 'b', 'c'].map((key) => arrivals.activity.lastArrivalOfOthers(key))).toEqual([30, 50, 50]);
  });

  test('drops all counts after a pause', () => {
    const { activity } = new Arrivals().note('a', 0).note('b', 0);
    expect(activity.totalWeight(6000, 1)).toBe(1);
  });
});
