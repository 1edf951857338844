import { describe, expect, test } from 'vitest';
import type { Explanation } from '../../../src/telemetry/explanations/build-explanation.ts';
import { renderExplanation } from '../../../src/telemetry/explanations/render-explanation.ts';
import { ByteBoundedRing } from '../../../src/telemetry/history/byte-bounded-ring.ts';
import {
  MAX_RECORD_STEPS,
  MAX_RECORDS,
  ExplanationRecorder,
} from '../../../src/telemetry/explanations/explanation-recorder.ts';
import { isNotable } from '../../../src/telemetry/history/notable-request.ts';
import type { LimitView } from '../../../src/core/events/gate-views.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import type { DecisionDetails } from '../../../src/core/admission/decision-details.ts';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import type { ObservedExchange } from '../../../src/core/exchange/exchange-observer.ts';
import { heldBytes } from '../../support/heap.ts';
import { requestFacts, response, retryPolicy } from '../../support/core/policy-builders.ts';

function recordOf(fields: Partial<RequestRecord> = {}): RequestRecord {
  return {
    ...{ id: 'i-1', at: 0, route: '/', upstream: 'up', method: requestFacts().method, path: '/v1/things' },
    ...{ client: '0123456789abcdef', status: 200, outcome: 'forwarded', reason: undefined, attempts: 1 },
    ...{ queueTime: 0, sleepTime: 0, timeToHead: 5, took: 10, retryAfterSeconds: undefined, isTruncated: false },
    ...fields,
  };
}

function watchedOf(record: RequestRecord): ObservedExchange {
  return {
    describe: () => ({
      ...{
        id: record.id,
        method: record.method,
        path: record.path,
        route: record.route,
        routePath: '/',
        upstream: 'up',
      },
      ...{ client: record.client, identifiedBy: 'ip', scheme: 'http', version: '1.1' },
      ...{ traceparent: undefined, tracestate: undefined, retryPolicy: retryPolicy() },
    }),
    lastAttempt: () => ({ endpoint: 'a:1', origin: 'http://a:1', outcome: response(record.status), cause: undefined }),
    steps: undefined,
    trace: undefined,
  };
}

const GROUNDS: DecisionDetails = {
  ...{
    limit: undefined,
    block: undefined,
    pinnedRate: undefined,
    waitsForConnection: false,
    estimatedWait: 400,
    maxWait: 1000,
    demand: 1.5,
    share: 2.5,
    allowance: 1,
  },
  ...{ clientBacklog: 1, heldFor: 0, returnSlot: undefined },
};

function keep(recorder: ExplanationRecorder, fields: Partial<RequestRecord>): void {
  const record = recordOf(fields);
  recorder.onEnd(watchedOf(record), record);
}

describe('the recorder keeps', () => {
  test('the newest notable requests, and of others a sample over time', () => {
    const recorder = new ExplanationRecorder({ wallClock: () => 1_700_000_000_000 });
    // A thousand ordinary requests a second for ten minutes, and one in a thousand that is troubled.
    for (let i = 0; i < 600_000; i += 1) {
      const status = i % 1000 === 999 ? 503 : 200;
      keep(recorder, { id: `i-${i}`, at: i, status });
    }
    const all = recorder.recent({ limit: 1_000_000 }).requests;
    const troubled = all.filter(({ status }) => status === 503);
    const others = all.filter(({ status }) => status === 200);
    expect(troubled).toHaveLength(600);
    expect(others).toHaveLength(MAX_RECORDS.sampled);
    const times = others.map(({ id }) => Number(id.slice(2)));
    const span = Math.max(...times) - Math.min(...times);
    expect(span).toBeGreaterThan(300_000);
  });

  test('every request of a proxy with little traffic', () => {
    const recorder = new ExplanationRecorder({ wallClock: () => 0 });
    for (let i = 0; i < 100; i += 1) keep(recorder, { id: `i-${i}`, at: 10_000 + i });
    expect(recorder.recent({ limit: 1000 }).requests).toHaveLength(100);
  });

  test('a bounded number and size, and drops the oldest first', () => {
    const few = new ByteBoundedRing<{ readonly sizeBytes: number }>(3, 1000);
    const items = [1, 2, 3, 4, 5].map((sizeBytes) => ({ sizeBytes }));
    for (const item of items) few.add(item);
    expect([...few]).toEqual([5, 4, 3].map((sizeBytes) => ({ sizeBytes })));
    expect([few.size, few.bytes, few.evicted, few.fullness]).toEqual([3, 12, 2, 1]);

    const small = new ByteBoundedRing<{ readonly sizeBytes: number }>(100, 10);
    for (const sizeBytes of [4, 4, 4, 11]) small.add({ sizeBytes });
    expect([small.size, small.bytes, small.evicted]).toEqual([2, 8, 1]);
  });

  test('no more memory than it reports', () => {
    const recorder = new ExplanationRecorder({ wallClock: () => 0 });
    const path = `/${'long'.repeat(100)}`;
    const before = heldBytes();
    for (let i = 0; i < 40_000; i += 1) {
      const record = recordOf({ id: `instance-${i}`, at: i + 0.5, status: 503, path: `${path}${i}`, took: i + 0.25 });
      const watched = watchedOf(record);
      const step = {
        what: 'decided',
        decision: 'queued',
        why: undefined,
        retryAfterMs: undefined,
        isObserved: false,
      } as const;
      const limit: LimitView = {
        ...{
          upstream: 'up',
          nested: '',
          scope: 'upstream',
          key: '',
          state: 'restoring',
          rate: i + 0.3,
          ceiling: i + 0.4,
        },
        ...{ concurrencyLimit: undefined, blockedUntil: undefined, quotaLeft: 1 / (i + 2), queued: 1, inFlight: 2 },
      };
      const grounds = {
        ...GROUNDS,
        limit,
        demand: i + 0.1,
        estimatedWait: i + 0.7,
        share: i + 0.9,
        allowance: 1 / (i + 3),
      };
      recorder.onStep(watched, { ...step, at: i + 0.5, details: grounds });
      recorder.onOutcome(watched, 1, { kind: 'response', status: 503, hints: { ...NO_HINTS }, took: i + 0.5 }, i + 1.5);
      recorder.onEnd(watched, record);
    }
    const held = heldBytes() - before;
    expect(recorder.bound).toMatchObject({ name: 'stories' });
    expect(recorder.bound.used).toBeGreaterThan(0.99);
    expect(recorder.bound.reached).toBeGreaterThan(0);
    expect(held).toBeLessThan(1.1 * recorder.bytes);
    expect(recorder.bytes).toBeLessThan(24 * 1024 * 1024);
  });

  test('a limited number of steps of one request, and its last step', () => {
    const recorder = new ExplanationRecorder({ wallClock: () => 0 });
    const record = recordOf({ attempts: 200, status: 200, outcome: 'recovered', timeToHead: 2000, took: 2001 });
    const watched = watchedOf(record);
    for (let attempt = 1; attempt <= 199; attempt += 1) {
      recorder.onOutcome(watched, attempt, response(503), 10 * attempt);
    }
    expect(watched.steps).toHaveLength(MAX_RECORD_STEPS);
    recorder.onEnd(watched, record);
    const texts = recorder.find('i-1')?.steps.map(({ text }) => text) ?? [];
    expect(texts).toContain('more steps than are kept of one request');
    expect(texts.findLast((text) => text.startsWith('attempt'))).toMatch(/^attempt 200 received 200/);
  });

  test('no query that was removed from the path', () => {
    const recorder = new ExplanationRecorder({ wallClock: () => 0 });
    const before = heldBytes();
    for (let i = 0; i < 500; i += 1) {
      const target = Buffer.from(`/charges/of/somebody?${String(i).repeat(30_000)}`).toString();
      keep(recorder, { path: target.slice(0, target.indexOf('?')), status: 404 });
    }
    expect(heldBytes() - before).toBeLessThan(2 * 1024 * 1024);
    expect(recorder.bytes).toBeGreaterThan(0);
  });

  test('nothing of an ordinary request while it is in progress', () => {
    const recorder = new ExplanationRecorder({ wallClock: () => 0 });
    const watched = watchedOf(recordOf());
    recorder.onOutcome(watched, 1, response(200), 5);
    expect(watched.steps).toBeUndefined();
    recorder.onOutcome(watched, 1, response(503), 6);
    recorder.onOutcome(watched, 2, response(200), 7);
    expect(watched.steps).toHaveLength(2);
  });

  test('the beginning of a long path', () => {
    const recorder = new ExplanationRecorder({ wallClock: () => 0 });
    keep(recorder, { path: `/${'x'.repeat(30_000)}`, status: 404 });
    expect(recorder.find('i-1')?.path.length).toBeLessThan(600);
  });
});

test.each([
  ['went well', {}, false],
  ['was answered with an error', { status: 404 }, true],
  ['was recovered', { outcome: 'recovered', attempts: 2 }, true],
  ['was refused', { outcome: 'refused', status: 429 }, true],
  ['was cut', { isTruncated: true }, true],
  ['was left before its head', { status: 0 }, true],
  ['was shed for an overload of our own', { outcome: 'refused', status: 503, reason: 'overloaded' }, false],
] as const)('a request that %s is notable, or not', (_, fields, expected) => {
  expect(isNotable(recordOf(fields), undefined)).toBe(expected);
});

test('a request that waited is notable, however it ended', () => {
  const waited = [{ what: 'waited', at: 1, slept: 1 }] as const;
  expect(isNotable(recordOf(), waited)).toBe(true);
});

describe('a list of requests', () => {
  const recorder = new ExplanationRecorder({ wallClock: () => Date.UTC(2026, 0, 1) });
  for (let i = 1; i <= 9; i += 1) {
    keep(recorder, {
      id: `i-${i}`,
      client: i % 3 === 0 ? 'c' : 'd',
      status: i % 2 === 0 ? 503 : 200,
      upstream: `up${i % 2}`,
    });
  }
  const ids = (query: Parameters<ExplanationRecorder['recent']>[0]) =>
    recorder.recent(query).requests.map(({ id }) => id);

  test('is sorted by time, newest first, across both rings', () => {
    expect(ids({})).toEqual(['i-9', 'i-8', 'i-7', 'i-6', 'i-5', 'i-4', 'i-3', 'i-2', 'i-1']);
    expect(recorder.recent().next).toBeNull();
    expect(recorder.recent({ limit: 1 }).requests[0]).toEqual({
      ...{ id: 'i-9', at: '2025-12-31T23:59:59.990Z', route: '/', upstream: 'up1', client: 'c', method: 'GET' },
      ...{ path: '/v1/things', status: 200, outcome: 'forwarded', reason: null, attempts: 1, tookSeconds: 0.01 },
    });
  });

  test('continues where the previous page ended', () => {
    const first = recorder.recent({ limit: 4 });
    expect(first.requests.map(({ id }) => id)).toEqual(['i-9', 'i-8', 'i-7', 'i-6']);
    const second = recorder.recent({ limit: 5, cursor: first.next ?? '' });
    expect(second.requests.map(({ id }) => id)).toEqual(['i-5', 'i-4', 'i-3', 'i-2', 'i-1']);
    expect(second.next).toBeNull();
  });

  test('is filtered by one client, one upstream or one outcome', () => {
    expect(ids({ client: 'c' })).toEqual(['i-9', 'i-6', 'i-3']);
    expect(ids({ upstream: 'up0', limit: 2 })).toEqual(['i-8', 'i-6']);
    expect(ids({ outcome: 'refused' })).toEqual([]);
  });
});

describe('the text form', () => {
  const explanation: Explanation = {
    ...{
      id: 'i-1',
      at: '2026-01-01T00:00:00.000Z',
      client: { key: 'c', name: null, identifiedBy: 'ip' },
      route: '/',
      upstream: 'up',
    },
    ...{ method: 'GET', path: '/things', outcome: 'refused', status: 429, traceId: null, verdict: 'refused' },
    steps: [
      { at: 0, what: 'arrived', text: 'GET /things arrived' },
      { at: 12.5, what: 'decided', text: `refused: ${'because of this and that '.repeat(6)}` },
    ],
  };

  test('aligns times, and keeps lines within the terminal width', () => {
    const lines = renderExplanation(explanation, 60).split('\n');
    expect(lines).toContain(' 0.000 s  arrived   GET /things arrived');
    expect(lines).toContain('12.500 s  decided   refused: because of this and that');
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(60);
    const narrow = renderExplanation(explanation, 10).split('\n');
    expect(Math.max(...narrow.map(({ length }) => length))).toBeLessThanOrEqual(60);
  });

  test('keeps a number with its unit', () => {
    const step = { at: 0, what: 'waited', text: 'it waited as long as it may, which is not more than 1 s' } as const;
    const lines = renderExplanation({ ...explanation, steps: [step] }, 71).split('\n');
    expect(lines.slice(-3, -1).map((line) => line.trim())).toEqual([
      '0.000 s  waited    it waited as long as it may, which is not more than',
      '1 s',
    ]);
  });

  test('contains no control sequence for the terminal', () => {
    const text = renderExplanation({ ...explanation, path: '/\u001b[2J\u009b2J' }, 80);
    // oxlint-disable-next-line no-control-regex -- they are what is looked for
    expect(text).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
  });
});
