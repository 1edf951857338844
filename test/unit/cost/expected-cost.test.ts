import { describe, expect, test } from 'vitest';
import { boundCost, type CostRule } from '../../../src/core/cost/cost-rule.ts';
import { ExpectedCost, ExpectedCosts } from '../../../src/core/cost/expected-cost.ts';
import { RequestCosts } from '../../../src/core/cost/request-costs.ts';

const RULE: CostRule = { limit: '', expected: 5, min: 1, max: 100, isSettled: true };

describe('an expected cost', () => {
  test('is exactly a cost that never changes, without a spread', () => {
    const expected = new ExpectedCost();
    for (let i = 0; i < 100; i += 1) expected.record(7, 5);
    expect([expected.mean, expected.spread]).toEqual([7, 0]);
  });

  test('has the mean and the standard deviation of its costs', () => {
    const expected = new ExpectedCost();
    for (let i = 0; i < 1000; i += 1) expected.record(i % 2 === 0 ? 10 : 30, 5);
    expect(expected.mean).toBeCloseTo(20, 0);
    expect(expected.spread).toBeCloseTo(10, 0);
  });

  test('follows costs that have changed', () => {
    const expected = new ExpectedCost();
    for (let i = 0; i < 1000; i += 1) expected.record(10, 5);
    for (let i = 0; i < 200; i += 1) expected.record(100, 5);
    expect(expected.mean).toBeGreaterThan(99);
  });

  test('is learned for each route and limit, up to a bound', () => {
    const costs = new ExpectedCosts();
    for (let i = 0; i < 2000; i += 1) costs.record(`route ${i}`, '', 'client', 3, 5);
    costs.record('route 0', 'tokens', 'client', 9, 5);
    expect(costs.mean('route 0', '', 'client')).toBe(3);
    expect(costs.mean('route 0', 'tokens', 'client')).toBeUndefined();
    expect(costs.ofRoute('route 1999', '')).toBeUndefined();
  });

  test('is that of the client once it has had three responses, and that of the route for others', () => {
    const costs = new ExpectedCosts();
    for (let i = 0; i < 100; i += 1) costs.record('route', '', 'cheap', 2, 5);
    costs.record('route', '', 'dear', 50, 5);
    costs.record('route', '', 'dear', 50, 5);
    expect(costs.mean('route', '', 'dear')).toBeLessThan(5);
    costs.record('route', '', 'dear', 50, 5);
    expect([costs.mean('route', '', 'dear'), costs.mean('route', '', 'cheap')]).toEqual([50, 2]);
    expect(costs.mean('route', '', 'new')).toBe(costs.ofRoute('route', '')?.mean);
  });

  test('is raised by one cost tenfold at most', () => {
    const costs = new ExpectedCosts();
    costs.record('route', '', 'client', 1e9, 5);
    expect(costs.mean('route', '', 'other')).toBe(50);
    for (let i = 0; i < 100; i += 1) costs.record('route', '', 'client', 5, 5);
    costs.record('route', '', 'client', 1e9, 5);
    expect(costs.mean('route', '', 'other')).toBeLessThan(10);
  });

  test('is that of the route again for a client that hides what its requests cost', () => {
    const costs = new ExpectedCosts();
    for (let i = 0; i < 100; i += 1) costs.record('route', '', 'others', 40, 5);
    for (let i = 0; i < 3; i += 1) costs.record('route', '', 'buyer', 1, 5);
    expect(costs.mean('route', '', 'buyer')).toBe(1);
    costs.forgetClient('route', '', 'buyer');
    expect(costs.mean('route', '', 'buyer')).toBeGreaterThan(30);
  });

  test('forgets the client without a response for longest', () => {
    const costs = new ExpectedCosts();
    for (let i = 0; i < 3; i += 1) costs.record('route', '', 'first', 50, 5);
    for (let i = 0; i < 10_000; i += 1) costs.record('route', '', `client ${i}`, 1, 5);
    expect(costs.mean('route', '', 'first')).toBeLessThan(2);
  });
});

describe('the charge of a request', () => {
  test('is the configured cost before any was learned, then the mean', () => {
    const expected = new ExpectedCosts();
    const charge = (): number => {
      const costs = new RequestCosts('route', [RULE], () => undefined);
      costs.estimate(expected, 'client');
      return costs.at('');
    };
    expect(charge()).toBe(5);
    for (let i = 0; i < 1000; i += 1) expected.record('route', '', 'client', i % 2 === 0 ? 10 : 30, 5);
    expect(charge()).toBeCloseTo(20, 0);
  });

  test('is what the request names, within the bounds', () => {
    const charge = (named: number): number => new RequestCosts('route', [RULE], () => named).at('');
    expect([charge(50), charge(999_999_999), charge(0.001)]).toEqual([50, 100, 1]);
  });

  test('is the configured cost if the request names none, or no valid one', () => {
    for (const named of [undefined, Number.NaN, -1, Number.NEGATIVE_INFINITY]) {
      expect(new RequestCosts('route', [RULE], () => named).at('')).toBe(5);
    }
  });

  test('is one unit at a limit without a cost', () => {
    expect(new RequestCosts('route', [RULE], () => 50).at('other')).toBe(1);
  });

  test('bounds also an infinite cost', () => {
    expect(boundCost(Number.POSITIVE_INFINITY, RULE)).toBe(100);
  });
});
