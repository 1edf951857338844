import { describe, expect, test } from 'vitest';
import type { EndpointChange, OutlierSettings } from '../../../src/core/endpoints/outlier-detection.ts';
import { classifyForEndpoint } from '../../../src/core/endpoints/classify-for-endpoint.ts';
import { EndpointBalancer } from '../../../src/core/endpoints/outlier-detection.ts';
import type { ErrorReason } from '../../../src/core/exchange/attempt-outcome.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';

const OUTLIERS: OutlierSettings = {
  consecutiveGatewayErrors: 3,
  baseEjectionTime: 10_000,
  maxEjectionTime: 35_000,
  maxEjectionPercent: 50,
};

class Endpoints {
  readonly rotation: EndpointBalancer;
  readonly changes: EndpointChange[] = [];
  now: Millis = 1000;
  chance = 0;

  constructor(count: number, outliers: Partial<OutlierSettings> = {}, connections = 10) {
    this.rotation = new EndpointBalancer(
      count,
      connections,
      { ...OUTLIERS, ...outliers },
      () => this.chance,
      (change) => this.changes.push(change),
    );
  }

  /** Chooses an endpoint, and sends. */
  send(failedAt: readonly number[] = [], isRepeatable = true): number {
    const index = this.rotation.choose(failedAt.length === 0 ? undefined : new Set(failedAt), isRepeatable, this.now);
    this.rotation.onAttemptStart(index);
    return index;
  }

  /** Sends to the endpoint, and fails `times` times. */
  fail(index: number, times = 1): boolean[] {
    return Array.from({ length: times }, () => this.rotation.onFailure(index, this.now, this.now));
  }

  succeed(index: number): void {
    this.rotation.onSuccess(index, this.now, this.now);
  }

  /** Ejects this many endpoints. */
  ejected(count: number): number[] {
    return Array.from({ length: count }, (_, index) => index).filter((index) => this.rotation.isEjected(index));
  }
}

describe('the choice of an endpoint', () => {
  test('prefers the fewest pending requests, and rotates among equals', () => {
    const endpoints = new Endpoints(3);
    expect([endpoints.send(), endpoints.send(), endpoints.send(), endpoints.send()]).toEqual([0, 1, 2, 0]);
    endpoints.rotation.onAttemptEnd(2);
    expect(endpoints.send()).toBe(2);
    expect([endpoints.send(), endpoints.send()]).toEqual([1, 2]);
  });

  test('rotates while all are idle', () => {
    const endpoints = new Endpoints(3);
    const chosen = Array.from({ length: 7 }, () => {
      const index = endpoints.send();
      endpoints.rotation.onAttemptEnd(index);
      return index;
    });
    expect(chosen).toEqual([0, 1, 2, 0, 1, 2, 0]);
  });

  test('avoids an endpoint at which the request has failed while there is another', () => {
    const endpoints = new Endpoints(3);
    for (let i = 0; i < 5; i += 1) endpoints.rotation.onAttemptStart(1);
    expect([endpoints.send([0, 2]), endpoints.send([0]), endpoints.send([0, 1])]).toEqual([1, 2, 2]);
    expect(endpoints.send([0, 1, 2])).toBe(0); // it has failed at every endpoint
  });

  test('counts the free connections of the endpoints in rotation', () => {
    const endpoints = new Endpoints(2, { consecutiveGatewayErrors: 1 }, 2);
    expect(endpoints.rotation.freeConnections()).toBe(4);
    for (let i = 0; i < 3; i += 1) endpoints.rotation.onAttemptStart(0);
    expect(endpoints.rotation.freeConnections()).toBe(2);
    endpoints.fail(1);
    expect(endpoints.rotation.freeConnections()).toBe(0);
  });

  test('gives most requests to an endpoint that answers at once, and keeps it if these are responses', () => {
    const endpoints = new Endpoints(2);
    const counts = [0, 0];
    const slow: number[] = [];
    for (let n = 0; n < 40; n += 1) {
      const index = endpoints.send();
      counts[index] = (counts[index] ?? 0) + 1;
      if (index === 1) slow.push(n);
      // Endpoint 0 answers before the next request arrives, endpoint 1 after two more.
      else endpoints.rotation.onAttemptEnd(0);
      if (index === 0) endpoints.succeed(0);
      if (slow[0] === n - 2) {
        slow.shift();
        endpoints.rotation.onAttemptEnd(1);
        endpoints.succeed(1);
      }
    }
    expect(counts).toEqual([27, 13]);
    expect(endpoints.changes).toEqual([]);
  });

  test('prefers an endpoint with a free connection, then the fewest pending requests', () => {
    const endpoints = new Endpoints(2, {}, 2);
    endpoints.rotation.setCapacity(1, 200); // the endpoint speaks HTTP/2
    const chosen = Array.from({ length: 10 }, () => endpoints.send());
    expect(chosen.filter((index) => index === 0)).toHaveLength(2);
    expect(endpoints.rotation.freeConnections()).toBe(192);
    expect(endpoints.rotation.totalConnections()).toBe(202);
    endpoints.rotation.setCapacity(1, 3); // the HTTP/2 connection was replaced
    expect(endpoints.rotation.freeConnections()).toBe(0);
    expect(endpoints.send()).toBe(0);
    endpoints.rotation.onAttemptEnd(0);
    endpoints.rotation.onAttemptEnd(0);
    expect(endpoints.rotation.freeConnections()).toBe(1);
  });
});

describe('a failing endpoint', () => {
  test('is ejected after the configured number of failures in a row, and not before', () => {
    const endpoints = new Endpoints(3);
    endpoints.fail(1, 2);
    endpoints.succeed(1);
    endpoints.fail(1, 2);
    expect(endpoints.ejected(3)).toEqual([]);
    endpoints.fail(1);
    expect(endpoints.ejected(3)).toEqual([1]);
    expect(endpoints.changes).toEqual([{ kind: 'ejected', index: 1, cause: 'failures', time: 10_000 }]);
    const chosen = new Set(Array.from({ length: 20 }, () => endpoints.send()));
    expect(chosen).toEqual(new Set([0, 2]));
  });

  test('does not count against the upstream while another endpoint works', () => {
    const endpoints = new Endpoints(3);
    expect(endpoints.fail(1, 5)).toEqual([true, true, true, true, true]);
    endpoints.fail(0);
    expect(endpoints.fail(2)).toEqual([false]); // 0 has failed as well, 1 is ejected
    endpoints.succeed(0);
    expect(endpoints.fail(2)).toEqual([true]);
  });

  test('is re-admitted after one successful trial', () => {
    const endpoints = new Endpoints(2);
    endpoints.fail(1, 3);
    endpoints.now += 9999;
    expect([endpoints.send(), endpoints.send()]).toEqual([0, 0]);
    endpoints.now += 1;
    expect([endpoints.send(), endpoints.send(), endpoints.send()]).toEqual([1, 0, 0]);
    endpoints.succeed(1);
    expect(endpoints.changes.at(-1)).toEqual({ kind: 'returned', index: 1, cause: 'trial' });
    expect(endpoints.send()).toBe(1);
  });

  test('is ejected for longer, up to a bound, if its trial fails', () => {
    const endpoints = new Endpoints(2);
    endpoints.fail(1, 3);
    const times = [20_000, 30_000, 35_000, 35_000];
    for (const time of times) {
      endpoints.now += 40_000;
      expect(endpoints.send()).toBe(1);
      endpoints.fail(1);
      expect(endpoints.changes.at(-1)).toEqual({ kind: 'ejected', index: 1, cause: 'failures', time });
    }
  });

  test('is ejected no longer by a request that can only go there, and fails before the trial is due', () => {
    const endpoints = new Endpoints(2);
    endpoints.fail(1, 3);
    endpoints.now += 9999;
    endpoints.rotation.onAttemptStart(1);
    endpoints.fail(1);
    expect(endpoints.changes).toEqual([{ kind: 'ejected', index: 1, cause: 'failures', time: 10_000 }]);
    endpoints.now += 1;
    expect(endpoints.send()).toBe(1);
  });

  test('has its trial delayed by up to a fifth at random', () => {
    const endpoints = new Endpoints(2);
    endpoints.chance = 0.5;
    endpoints.fail(1, 3);
    expect(endpoints.changes).toEqual([{ kind: 'ejected', index: 1, cause: 'failures', time: 11_000 }]);
  });

  test('gets another trial after an inconclusive one', () => {
    const endpoints = new Endpoints(2);
    endpoints.fail(1, 3);
    endpoints.now += 10_000;
    expect([endpoints.send(), endpoints.send()]).toEqual([1, 0]);
    endpoints.rotation.onInconclusive(1, endpoints.now);
    expect(endpoints.send()).toBe(1);
  });

  test('is tried with a repeatable request, unless none arrives for two seconds', () => {
    const endpoints = new Endpoints(2);
    endpoints.fail(1, 3);
    endpoints.now += 11_999;
    expect(endpoints.send([], false)).toBe(0);
    endpoints.now += 1;
    expect(endpoints.send([], false)).toBe(1);
  });

  test('is not tried by a request that has failed there', () => {
    const endpoints = new Endpoints(2);
    endpoints.fail(1, 3);
    endpoints.now += 10_000;
    expect(endpoints.send([1])).toBe(0);
    expect(endpoints.send()).toBe(1);
  });

  test('stays ejected, whatever the outcome of earlier requests', () => {
    const endpoints = new Endpoints(2);
    const before = endpoints.now;
    endpoints.now += 100;
    endpoints.fail(1, 3);
    endpoints.rotation.onSuccess(1, before, endpoints.now);
    endpoints.rotation.onFailure(1, before, endpoints.now);
    expect(endpoints.ejected(2)).toEqual([1]);
    expect(endpoints.changes).toHaveLength(1);
  });

  test('has its past ejections dropped after it has worked for long', () => {
    const endpoints = new Endpoints(2);
    const failAgain = (after: Millis): number => {
      endpoints.now += after;
      endpoints.fail(1, 3);
      const change = endpoints.changes.at(-1);
      endpoints.now += 100_000;
      endpoints.send();
      endpoints.succeed(1);
      return change?.kind === 'ejected' ? (change.time ?? 0) : 0;
    };
    expect([failAgain(0), failAgain(0), failAgain(9999), failAgain(10_000), failAgain(100_000)]).toEqual([
      10_000, 20_000, 30_000, 30_000, 10_000,
    ]);
  });
});

describe('of all endpoints', () => {
  test('no more than a share is ejected, rounded up', () => {
    for (const [count, percent, most] of [
      [3, 50, 2],
      [4, 50, 2],
      [10, 10, 1],
      [10, 100, 9],
      [3, 0, 0],
    ] as const) {
      const endpoints = new Endpoints(count, { maxEjectionPercent: percent });
      for (let index = 0; index < count - 1; index += 1) endpoints.fail(index, 3);
      expect(endpoints.ejected(count)).toHaveLength(most);
    }
  });

  test('none is ejected if none works: all return, and their failures count against the upstream', () => {
    const endpoints = new Endpoints(3);
    endpoints.fail(0, 3);
    endpoints.fail(1, 3);
    expect(endpoints.ejected(3)).toEqual([0, 1]);
    expect(endpoints.fail(2, 3)).toEqual([false, false, false]);
    expect(endpoints.ejected(3)).toEqual([]);
    expect(endpoints.changes.slice(2)).toEqual([
      { kind: 'returned', index: 0, cause: 'panic' },
      { kind: 'returned', index: 1, cause: 'panic' },
    ]);
    expect([...endpoints.fail(0, 3), ...endpoints.fail(1, 3)]).toEqual(Array(6).fill(false));
    expect(endpoints.ejected(3)).toEqual([]);
    // One works again: the others are ejected as they fail.
    endpoints.succeed(0);
    expect(endpoints.fail(1)).toEqual([true]);
    expect(endpoints.ejected(3)).toEqual([1]);
  });

  test('none stays ejected if the remaining ones fail as well, whatever the bound', () => {
    const endpoints = new Endpoints(4, { maxEjectionPercent: 25 });
    for (let index = 0; index < 4; index += 1) endpoints.fail(index, 3);
    expect(endpoints.ejected(4)).toEqual([]);
  });

  test('a single one is never ejected, and its failures count against the upstream', () => {
    const endpoints = new Endpoints(1);
    expect(endpoints.fail(0, 10)).toEqual(Array(10).fill(false));
    expect(endpoints.ejected(1)).toEqual([]);
  });

  test('none is ejected while detection is off', () => {
    const endpoints = new Endpoints(2, { consecutiveGatewayErrors: 0 });
    endpoints.fail(1, 100);
    expect(endpoints.ejected(2)).toEqual([]);
  });
});

test('connection errors, timeouts and gateway statuses count against an endpoint', () => {
  const response = (status: number) => classifyForEndpoint({ kind: 'response', status, hints: NO_HINTS, took: 1 });
  expect([200, 404, 429, 500, 501, 502, 503, 504].map(response)).toEqual([
    'works',
    'works',
    'works',
    'works',
    'works',
    'fails',
    'fails',
    'fails',
  ]);
  const error = (reason: ErrorReason, sent: boolean, stale = false) =>
    classifyForEndpoint({ kind: 'error', reason, sent, took: 1, isStaleConnection: stale });
  expect([error('connect', false), error('reset', true), error('timeout', true)]).toEqual(Array(3).fill('fails'));
  expect([
    error('timeout', false),
    error('aborted', true),
    error('too_many_files', false),
    error('reset', true, true),
  ]).toEqual(Array(4).fill('nothing'));
});
