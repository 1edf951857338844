import { describe, expect, test } from 'vitest';
import { CheckResults } from '../../../src/core/endpoints/check-results.ts';
import type { EndpointChange } from '../../../src/core/endpoints/outlier-detection.ts';
import { EndpointBalancer } from '../../../src/core/endpoints/outlier-detection.ts';
import { makeRequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';

test('the health of an endpoint changes after so many results in a row', () => {
  const results = new CheckResults({ healthy: 2, unhealthy: 3 });
  const changes = [false, false, true, false, false, false, false, true, false, true, true, true].map((isPassed) =>
    results.onResult(isPassed),
  );
  expect(changes.flatMap((isChanged, i) => (isChanged ? [i] : []))).toEqual([5, 10]);
  expect(results.isHealthy).toBe(true);
});

function balance(count: number) {
  const changes: EndpointChange[] = [];
  const settings = { consecutiveGatewayErrors: 3, baseEjectionTime: 10, maxEjectionTime: 10, maxEjectionPercent: 50 };
  const balancer = new EndpointBalancer(
    count,
    10,
    settings,
    () => 0,
    (change) => changes.push(change),
  );
  const choose = (now = 0): number => balancer.choose(undefined, true, now);
  return { balancer, changes, choose };
}

describe('an unhealthy endpoint', () => {
  test('gets no requests and no trial until it is healthy', () => {
    const { balancer, changes, choose } = balance(2);
    balancer.setHealth(0, false);
    balancer.setHealth(0, false);
    expect([choose(), choose(), choose(1_000_000)]).toEqual([1, 1, 1]);
    expect([balancer.totalConnections(), balancer.isEjected(0)]).toEqual([10, true]);
    balancer.setHealth(0, true);
    expect(choose()).toBe(0);
    expect(changes).toEqual([
      { kind: 'ejected', index: 0, cause: 'checks', time: undefined },
      { kind: 'returned', index: 0, cause: 'checks' },
    ]);
  });

  test('gets requests again while all are unhealthy', () => {
    const { balancer, choose } = balance(2);
    balancer.setHealth(0, false);
    balancer.setHealth(1, false);
    expect([choose(), choose(), balancer.totalConnections(), balancer.freeConnections()]).toEqual([0, 1, 20, 20]);
    balancer.setHealth(1, true);
    expect([choose(), choose(), balancer.totalConnections()]).toEqual([1, 1, 10]);
  });

  test('is ejected, and taken over, as a healthy one while all are unhealthy', () => {
    const { balancer, changes, choose } = balance(2);
    balancer.setHealth(0, false);
    balancer.setHealth(1, false);
    expect([1, 2, 3].map(() => balancer.onFailure(1, 0, 0))).toEqual([true, true, true]);
    expect(changes.at(-1)).toMatchObject({ kind: 'ejected', index: 1, cause: 'failures' });
    expect([choose(9), choose(9)]).toEqual([0, 0]);
    expect(choose(10)).toBe(1); // its trial
    balancer.onAttemptStart(1);
    balancer.onSuccess(1, 10, 10);
    expect(changes.at(-1)).toMatchObject({ kind: 'returned', index: 1, cause: 'trial' });
  });

  test('leaves a wait to another while all are unhealthy', () => {
    const { balancer, choose } = balance(2);
    const request = { attributes: makeRequestAttributes('a', 'a', 0, '/', '') };
    balancer.setHealth(0, false);
    balancer.setHealth(1, false);
    expect(balancer.onWaitRequested(1, 5, 0, 0, request)).toBe(true);
    expect([choose(), choose()]).toEqual([0, 0]);
  });

  test('does not count as an alternative for one that fails', () => {
    const { balancer, changes, choose } = balance(2);
    balancer.setHealth(0, false);
    expect([1, 2, 3, 4].map(() => balancer.onFailure(1, 0, 0))).toEqual([false, false, false, false]);
    expect(choose()).toBe(1);
    expect(changes).toHaveLength(1);
  });

  test('that outlier detection ejects as well comes back when both allow it', () => {
    const { balancer, choose } = balance(3);
    for (let i = 0; i < 3; i += 1) balancer.onFailure(0, 0, 0);
    balancer.setHealth(0, false);
    expect([choose(10), choose(10)]).toEqual([1, 2]);
    balancer.setHealth(0, true);
    expect(choose(10)).toBe(0); // its trial
  });
});
