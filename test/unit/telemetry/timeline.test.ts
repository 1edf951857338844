import { expect, test } from 'vitest';
import { Timeline } from '../../../src/telemetry/history/timeline.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';

function begin() {
  let now = 0;
  const timeline = new Timeline(() => now);
  const at = (time: number, event: ProxyEvent): void => {
    now = time;
    timeline.listen(event);
  };
  const texts = (): string[] => timeline.since(0).map(({ text }) => text);
  return { timeline, at, texts };
}

const cut = (from: number, to: number, upstream = 'till'): ProxyEvent => {
  return { type: 'cut', upstream, scope: 'upstream', cause: 'small', from, to };
};

test('successive cuts are one entry, which is extended and evicts nothing', () => {
  const { timeline, at, texts } = begin();
  at(0, { type: 'endpoint-ejected', upstream: 'till', endpoint: 'a:443', cause: 'failures', time: 5000 });
  for (let i = 0; i < 2000; i += 1) at(10 + i, cut(120 - i / 100, 119 - i / 100));
  expect(texts()).toEqual(['a:443 ejected for 5 s', 'rate cut 2000 times from 120/s to 99/s: a few 429s']);
  const [, moment] = timeline.since(0);
  expect(moment).toMatchObject({ at: 2009, number: 2, order: 2001 });
  // A client that has the entry receives it again when it changes, under the same number.
  at(3000, cut(99, 98));
  expect(timeline.since(2001)).toMatchObject([{ number: 2, kind: 'cut' }]);
});

test('a cut ten seconds later is a separate entry, as is that of another upstream', () => {
  const { at, texts } = begin();
  at(0, cut(Number.POSITIVE_INFINITY, 84));
  at(1000, cut(50, 45, 'ledger'));
  at(10_001, cut(84, 80));
  expect(texts()).toEqual([
    'rate cut to 84/s: a few 429s',
    'rate cut from 50/s to 45/s: a few 429s',
    'rate cut from 84/s to 80/s: a few 429s',
  ]);
});

test('a rate that is restored because a part is rejected alone is reported as such', () => {
  const { at, texts } = begin();
  at(0, cut(29, Number.POSITIVE_INFINITY));
  at(20_000, cut(29, 50));
  expect(texts()).toEqual([
    'rate unlimited again: only a part of the requests is rejected',
    'rate restored to 50/s: only a part of the requests is rejected',
  ]);
});

test('no text contains an infinite rate', () => {
  const { at, texts } = begin();
  const unlimited = {
    type: 'cut',
    upstream: 'till',
    from: Number.POSITIVE_INFINITY,
    to: Number.POSITIVE_INFINITY,
  } as const;
  at(0, { ...unlimited, scope: 'upstream', cause: 'errors' });
  at(20_000, { ...unlimited, scope: 'client', cause: 'blocked', limit: 'charges' });
  expect(texts()).toEqual([
    'rate still unlimited: only a part of the requests fails',
    'rate of a client at charges still unlimited: only a part of the requests is rejected',
  ]);
});

test('successive cuts from a rate that has grown between them do not count as a restored rate', () => {
  const { at, texts } = begin();
  at(0, cut(20, 19));
  at(1000, cut(40, 36));
  expect(texts()).toEqual(['rate cut 2 times from 20/s to 36/s: a few 429s']);
});

test('a cut of a small part shows the digits that differ, or the new rate only', () => {
  const { at, texts } = begin();
  at(0, cut(56.4, 55.8));
  at(20_000, cut(1200.04, 1200.02));
  at(40_000, cut(7, 7));
  expect(texts()).toEqual([
    'rate cut from 56.4/s to 55.8/s: a few 429s',
    'rate cut from 1200.04/s to 1200.02/s: a few 429s',
    'rate cut to 7/s: a few 429s',
  ]);
});

test('cuts for different causes are separate entries, as are different changes of state', () => {
  const { at, texts } = begin();
  at(0, cut(100, 90));
  at(1, { type: 'cut', upstream: 'till', scope: 'upstream', cause: 'heavy', from: 90, to: 45 });
  at(2, { type: 'cut', upstream: 'till', scope: 'client', limit: 'charges', cause: 'small', from: 9, to: 8 });
  at(3, { type: 'limit-state', upstream: 'till', scope: 'upstream', from: 'backoff', to: 'cooldown', rate: 10 });
  at(4, { type: 'limit-state', upstream: 'till', scope: 'upstream', from: 'cooldown', to: 'restoring', rate: 10 });
  at(5, { type: 'limit-state', upstream: 'till', scope: 'upstream', from: 'backoff', to: 'cooldown', rate: 10 });
  at(6, { type: 'cut', upstream: 'till', scope: 'client', limit: 'charges', cause: 'small', from: 7, to: 6 });
  expect(texts().toSorted()).toEqual([
    'backoff → cooldown (2 times)',
    'cooldown → restoring',
    'rate cut from 100/s to 90/s: a few 429s',
    'rate cut from 90/s to 45/s: many 429s',
    'rates of clients at charges cut 2 times, last from 7/s to 6/s: a few 429s',
  ]);
});

test('keeps five hundred entries', () => {
  const { timeline, at } = begin();
  for (let i = 0; i < 700; i += 1) {
    at(i, { type: 'endpoint-returned', upstream: 'till', endpoint: `${i}`, cause: 'trial' });
  }
  expect(timeline.since(0)).toHaveLength(500);
  expect(timeline.since(0)[0]?.text).toContain('200 re-admitted');
});

test('keeps a hundred changes of state, which evict no other entries', () => {
  const { timeline, at } = begin();
  at(0, cut(120, 100));
  for (let i = 1; i <= 700; i += 1) {
    at(i * 20_000, {
      type: 'limit-state',
      upstream: 'till',
      scope: 'upstream',
      from: 'backoff',
      to: 'cooldown',
      rate: 10,
    });
  }
  expect(timeline.since(0)).toHaveLength(101);
  expect(timeline.since(0)[0]?.kind).toBe('cut');
  expect(timeline.since(0)[1]?.at).toBe(601 * 20_000);
});

test('reports an open limit as one that is not in force', () => {
  const { at, texts } = begin();
  const change = { type: 'limit-state', rate: Number.POSITIVE_INFINITY, upstream: 'till', scope: 'upstream' } as const;
  at(0, { ...change, from: 'restoring', to: 'open' });
  at(20_000, { ...change, from: 'restoring', to: 'open' });
  at(20_001, { ...change, from: 'restoring', to: 'open' });
  at(20_002, { ...change, from: 'cooldown', to: 'open', limit: 'charges' });
  at(20_003, { ...change, from: 'blocked', to: 'open' });
  at(20_004, { ...change, from: 'open', to: 'backoff' });
  expect(texts()).toEqual([
    'limit no longer in force',
    'limit no longer in force (2 times)',
    'charges: limit no longer in force',
    'no longer blocked: no limit in force',
    'open → backoff',
  ]);
});

test('omits states of single clients, and repeated reports of a block', () => {
  const { at, texts } = begin();
  at(0, { type: 'limit-state', upstream: 'till', scope: 'client', from: 'open', to: 'backoff', rate: 20 });
  at(1, { type: 'operator', by: '10.0.0.1', action: 'block', upstream: 'till', time: 5000 });
  at(2, { type: 'limit-state', upstream: 'till', scope: 'upstream', from: 'open', to: 'blocked', rate: 20 });
  at(3, { type: 'operator', by: '10.0.0.1', action: 'unblock', upstream: 'till' });
  at(4, { type: 'limit-state', upstream: 'till', scope: 'upstream', from: 'blocked', to: 'open', rate: 20 });
  at(5, { type: 'limit-state', upstream: 'till', scope: 'upstream', from: 'open', to: 'blocked', rate: 20 });
  expect(texts()).toEqual([
    'blocked for 5 s, by 10.0.0.1',
    'unblocked, by 10.0.0.1',
    'blocked: only one probe at a time is sent',
  ]);
});

test('a block is reported with its cause', () => {
  let failure: string | undefined = 'unreachable: connection refused';
  const timeline = new Timeline(
    () => 0,
    () => failure,
  );
  const block = {
    type: 'limit-state',
    rate: 0,
    upstream: 'till',
    scope: 'upstream',
    from: 'open',
    to: 'blocked',
  } as const;
  timeline.listen({ ...block, blocked: 'upstream', blockedCause: 'errors' });
  failure = undefined;
  timeline.listen({ ...block, blocked: 'upstream', blockedCause: 'errors' });
  timeline.listen({ ...block, blocked: 'address', blockedCause: 'rejections' });
  expect(timeline.since(0).map(({ text }) => text)).toEqual([
    'blocked (unreachable: connection refused): only one probe at a time is sent',
    'blocked (requests fail): only one probe at a time is sent',
    'blocked for one address (every request is rejected): only one probe at a time is sent',
  ]);
});

test.each([
  ['till', 'upstreams.till'],
  ['till.v2', 'upstreams["till.v2"]'],
])(
  'a block of %s by the upstream is reported after a reload removed an operator’s block of that name',
  (upstream, path) => {
    const { at, texts } = begin();
    at(0, { type: 'operator', by: '10.0.0.1', action: 'block', upstream, time: undefined });
    at(1, { type: 'limit-state', upstream, scope: 'upstream', from: 'open', to: 'blocked', rate: 20 });
    at(2, { type: 'reload', ok: true, changed: [path] });
    at(3, { type: 'reload', ok: true, changed: [path] });
    at(4, { type: 'limit-state', upstream, scope: 'upstream', from: 'open', to: 'blocked', rate: 20 });
    expect(texts().at(-1)).toBe('blocked: only one probe at a time is sent');
  },
);

test('an operator’s block persists through an unrelated reload, and is reported once', () => {
  const { at, texts } = begin();
  at(0, { type: 'operator', by: '10.0.0.1', action: 'block', upstream: 'till', time: undefined });
  at(1, { type: 'reload', ok: true, changed: ['upstreams.till.timeout', 'upstreams.tills'] });
  at(2, { type: 'limit-state', upstream: 'till', scope: 'upstream', from: 'open', to: 'blocked', rate: 20 });
  expect(texts().filter((text) => text.startsWith('blocked'))).toEqual(['blocked until it is unblocked, by 10.0.0.1']);
});

test('a block of a part does not end a block, and its own end is reported', () => {
  const timeline = new Timeline(
    () => 0,
    () => 'unreachable: connection refused',
  );
  const change = { type: 'limit-state', rate: 20, upstream: 'till', scope: 'upstream' } as const;
  const one = { blocked: 'client_path', blockedCause: 'errors' } as const;
  timeline.listen({ ...change, from: 'open', to: 'blocked', ...one });
  timeline.listen({ ...change, from: 'blocked', to: 'open', ...one });
  timeline.listen({ ...change, from: 'open', to: 'open', unblocked: 'client_path' });
  timeline.listen({ ...change, from: 'open', to: 'open', ...one, blocked: 'address' });
  timeline.listen({ ...change, from: 'open', to: 'blocked', ...one, blocked: 'upstream' });
  timeline.listen({ ...change, from: 'blocked', to: 'restoring', unblocked: 'upstream' });
  expect(timeline.since(0).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    'blocked blocked for one client on one path (unreachable: connection refused): only one probe at a time is sent',
    'blocked blocked only for one client on one path (unreachable: connection refused): other requests pass',
    'unblocked no longer blocked for one client on one path',
    'blocked blocked only for one address (unreachable: connection refused): other requests pass',
    'blocked blocked (unreachable: connection refused): only one probe at a time is sent',
    'unblocked no longer blocked: restoring',
  ]);
});

test('reports the end of a fault of the process as a recovery', () => {
  const { timeline, at } = begin();
  const overload = { type: 'overload', cause: 'heap', delay: 0, heapUsed: 0.9 } as const;
  at(0, { type: 'store-degraded', store: 'redis', isDegraded: true, cause: 'ECONNREFUSED' });
  at(1, { type: 'store-degraded', store: 'redis', isDegraded: false });
  at(2, { ...overload, began: true, shed: 0 });
  at(3, { ...overload, began: false, shed: 7 });
  expect(timeline.since(0).map(({ kind, text }) => `${kind}: ${text}`)).toEqual([
    'store: redis does not respond: this process keeps limits on its own',
    'recovered: redis responds again',
    'overload: overloaded (heap): some new requests are refused',
    'recovered: overload ended: 7 refused',
  ]);
});

test('reports a failing upstream with the cause and the share, and its recovery', () => {
  const { timeline, at } = begin();
  const refused = { at: 0, reason: 'connect', code: 'ECONNREFUSED' } as const;
  const error = { at: 0, reason: 'status', code: '500' } as const;
  at(0, { type: 'upstream-failing', upstream: 'till', failedShare: 1, failure: refused });
  at(1, { type: 'upstream-recovered', upstream: 'till', after: 200_400, failure: refused });
  at(2, { type: 'upstream-failing', upstream: 'till', failedShare: 0.624, failure: error });
  at(3, { type: 'upstream-recovered', upstream: 'till', after: 12_000, failure: error });
  at(4, { type: 'upstream-failing', upstream: 'till', failedShare: 0.998, failure: undefined });
  expect(timeline.since(0).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    'failing unreachable: connection refused (every attempt fails)',
    'recovered reachable again after 3 min 20 s',
    'failing responds with 500 (62 % of attempts fail)',
    'recovered attempts succeed again after 12 s',
    'failing 99 % of attempts fail',
  ]);
});

test('reports a certificate that expires, that has expired, and that was renewed', () => {
  const { timeline, at, texts } = begin();
  const certificate = { type: 'certificate', setting: 'listen.tls.cert', expiresAt: 0 } as const;
  at(0, { ...certificate, status: 'expires', left: 7 * 86_400_000 - 1 });
  at(1, { ...certificate, status: 'expires', left: 86_400_000 });
  at(2, { ...certificate, status: 'expired', left: 0 });
  at(3, { ...certificate, status: 'expired', left: 0, setting: 'state.tls.cert' });
  at(4, { ...certificate, status: 'renewed', left: 90 * 86_400_000 });
  expect(texts()).toEqual([
    'certificate of listen.tls.cert expires in 6 days',
    'certificate of listen.tls.cert expires in 24 hours',
    'certificate of listen.tls.cert has expired: clients that verify it cannot connect',
    'certificate of state.tls.cert has expired: the server that it is presented to may refuse connections',
    'certificate of listen.tls.cert was renewed',
  ]);
  expect(timeline.since(0).map(({ kind }) => kind)).toEqual(['expires', 'expires', 'expired', 'expired', 'renewed']);
});

test('an accepted configuration is reported with its changes, a rejected one with its first mistake', () => {
  const { at, texts } = begin();
  at(0, { type: 'reload', ok: true, changed: ['a', 'b', 'c', 'd', 'e', 'f', 'g'] });
  at(1, { type: 'reload', ok: false, problem: 'tidegate.yaml:2:3 upstreams: missing\nanother' });
  expect(texts()).toEqual([
    'configuration reloaded: a, b, c, d, e and 2 more',
    'configuration not reloaded: tidegate.yaml:2:3 upstreams: missing',
  ]);
});

test('an operator’s retries of many deliveries are one entry for each route, which evicts nothing', () => {
  const { timeline, at, texts } = begin();
  const retried = (delivery: string, route = '/hooks', action: 'retry' | 'cancel' = 'retry'): ProxyEvent => {
    return { type: 'operator', by: '10.0.0.1', action, upstream: 'till', route, delivery };
  };
  at(0, { type: 'endpoint-ejected', upstream: 'till', endpoint: 'a:443', cause: 'failures', time: 5000 });
  for (let i = 0; i < 2000; i += 1) at(10 + i, retried(`d${i}`));
  at(2010, retried('e1', '/other'));
  at(2011, retried('e2', '/other', 'cancel'));
  at(20_000, retried('d1'));
  expect(texts()).toEqual([
    'a:443 ejected for 5 s',
    '2000 deliveries of /hooks retried, by 10.0.0.1',
    'delivery e1 of /other retried, by 10.0.0.1',
    'delivery e2 of /other canceled, by 10.0.0.1',
    'delivery d1 of /hooks retried, by 10.0.0.1',
  ]);
  expect(timeline.since(0).map(({ kind }) => kind)).toEqual(['endpoint', 'retry', 'retry', 'cancel', 'retry']);
});
