import { expect, test } from 'vitest';
import { EndpointBalancer } from '../../../src/core/endpoints/outlier-detection.ts';
import { FailingParts, MAX_PARTS } from '../../../src/core/endpoints/failing-parts.ts';
import type { AttributedRequest } from '../../../src/core/endpoints/failing-parts.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { makeRequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';

const requestOf = (client: string, path: string): AttributedRequest => ({
  attributes: makeRequestAttributes(client, client, 0, path, ''),
});

const BAD = requestOf('one', '/bad');
const GOOD = requestOf('other', '/good');

class Endpoints {
  readonly balancer: EndpointBalancer;
  readonly #count: number;
  readonly now: Millis = 1000;

  constructor(count: number) {
    this.#count = count;
    const settings = {
      consecutiveGatewayErrors: 3,
      baseEjectionTime: 10_000,
      maxEjectionTime: 35_000,
      maxEjectionPercent: 50,
    };
    this.balancer = new EndpointBalancer(
      count,
      10,
      settings,
      () => 0,
      () => undefined,
    );
  }

  fail(index: number, request?: AttributedRequest): void {
    this.balancer.onFailure(index, this.now, this.now, request);
  }

  succeed(index: number, request: AttributedRequest): void {
    this.balancer.onSuccess(index, this.now, this.now, request);
  }

  get ejected(): number[] {
    return Array.from({ length: this.#count }, (_, index) => index).filter((index) => this.balancer.isEjected(index));
  }

  /** Whether the request would be the trial of the ejected endpoint `after` its ejection. */
  isTriedBy(request: AttributedRequest, after: Millis): boolean {
    return this.balancer.isEjected(this.balancer.choose(undefined, true, this.now + after, request));
  }
}

interface FailingTraffic {
  readonly name: string;
  readonly bad: (n: number) => AttributedRequest;
  readonly good: (n: number) => AttributedRequest;
}

const FAILING_TRAFFIC: readonly FailingTraffic[] = [
  { name: 'of one client with one path', bad: () => BAD, good: () => GOOD },
  {
    name: 'of one client with many paths',
    bad: (n) => requestOf('one', `/items/${n}`),
    good: () => requestOf('other', '/items'),
  },
  {
    name: 'below one path, of many clients',
    bad: (n) => requestOf(`c${n}`, `/bad/${n}`),
    good: (n) => requestOf(`c${n}`, '/good'),
  },
  {
    name: 'of one client with one path, both of which succeed apart',
    bad: () => BAD,
    good: (n) => (n % 2 === 0 ? requestOf('one', '/good') : requestOf('other', '/bad')),
  },
];

test.each(FAILING_TRAFFIC)('requests that fail at every endpoint eject none: those $name', ({ bad, good }) => {
  const endpoints = new Endpoints(3);
  for (let n = 0; n < 20; n += 1) {
    for (let index = 0; index < 3; index += 1) endpoints.fail(index, bad(n));
    endpoints.succeed(1, good(n));
    endpoints.succeed(2, good(n));
    expect(endpoints.ejected).toEqual([]);
  }
});

test('an endpoint at which all requests fail is ejected as fast, even if all are alike', () => {
  const endpoints = new Endpoints(2);
  for (let n = 0; n < 3; n += 1) {
    expect(endpoints.ejected).toEqual([]);
    endpoints.fail(0, BAD);
    endpoints.succeed(1, BAD);
  }
  expect(endpoints.ejected).toEqual([0]);
});

test('requests in flight together count against the one endpoint at which they fail', () => {
  const endpoints = new Endpoints(2);
  for (let n = 0; n < 3; n += 1) endpoints.fail(0, BAD);
  expect(endpoints.ejected).toEqual([0]);
});

test('two failing endpoints of three are both ejected, even if all requests are alike', () => {
  const endpoints = new Endpoints(3);
  for (let n = 0; n < 6; n += 1) {
    for (const index of [n % 2, 1 - (n % 2)]) if (!endpoints.balancer.isEjected(index)) endpoints.fail(index, BAD);
    endpoints.succeed(2, BAD);
  }
  expect(endpoints.ejected).toEqual([0, 1]);
});

test('a failure without a connection counts against the endpoint, whatever else has failed', () => {
  const endpoints = new Endpoints(3);
  for (let n = 0; n < 3; n += 1) for (const index of [0, 1]) endpoints.fail(index, BAD);
  for (const index of [0, 1, 2]) endpoints.succeed(index, GOOD);
  for (let n = 0; n < 3; n += 1) endpoints.fail(1);
  expect(endpoints.ejected).toEqual([1]);
});

test('all endpoints return at once if like requests fail at all that remain', () => {
  const endpoints = new Endpoints(3);
  for (let n = 0; n < 3; n += 1) endpoints.fail(0);
  expect(endpoints.ejected).toEqual([0]);
  for (let n = 0; n < 3; n += 1) for (const index of [1, 2]) endpoints.fail(index, BAD);
  expect(endpoints.ejected).toEqual([]);
});

test('a trial prefers requests that have not failed at several endpoints', () => {
  const endpoints = new Endpoints(4);
  for (let n = 0; n < 3; n += 1) endpoints.fail(0);
  for (const index of [1, 2]) endpoints.fail(index, BAD);
  expect(endpoints.isTriedBy(BAD, 11_999)).toBe(false);
  expect(endpoints.isTriedBy(GOOD, 10_000)).toBe(true);
  expect(endpoints.isTriedBy(BAD, 12_000)).toBe(true);
  endpoints.succeed(1, BAD);
  expect(endpoints.isTriedBy(BAD, 10_000)).toBe(true);
});

test('a trial decides nothing if its request has failed elsewhere too', () => {
  const endpoints = new Endpoints(3);
  for (let n = 0; n < 3; n += 1) endpoints.fail(0);
  endpoints.fail(1, BAD);
  expect(endpoints.isTriedBy(BAD, 10_000)).toBe(true);
  endpoints.balancer.onAttemptStart(0);
  expect(endpoints.isTriedBy(GOOD, 10_000)).toBe(false);
  endpoints.balancer.onFailure(0, endpoints.now + 10_000, endpoints.now + 10_000, BAD);
  expect(endpoints.isTriedBy(GOOD, 10_000)).toBe(true);
});

test('remembers the parts that failed last, and no more than its bound', () => {
  const parts = new FailingParts();
  const first = requestOf('first', '/first');
  for (const index of [0, 1]) parts.onFailure(first, index);
  expect(parts.hasPartOf(first)).toBe(true);
  for (let n = 0; n < MAX_PARTS; n += 1) parts.onFailure(requestOf(`c${n}`, `/${n}`), 0);
  expect(parts.hasPartOf(first)).toBe(false);
  expect(parts.size).toBeLessThanOrEqual(MAX_PARTS);
});
