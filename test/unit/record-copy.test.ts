import { expect, test } from 'vitest';
import { RecordCopy } from '../../src/telemetry/history/reusable-record.ts';
import type { RequestRecord } from '../../src/core/events/proxy-events.ts';

/** Every field there is, and in each something else than there is to begin with. */
const FULL: Required<RequestRecord> = {
  ...{ id: 'i', at: 1.5, route: '/r', upstream: 'u', method: 'PUT', path: '/p', client: 'c', clientName: 'n' },
  ...{ status: 503, outcome: 'unknown', reason: 'reset', attempts: 2, polls: 3, queued: 4.5, slept: 5.5, toHead: 6.5 },
  ...{
    took: 7.5,
    retryAfter: 8,
    retryAfterFrom: 'upstream',
    cut: true,
    cause: 'ECONNRESET',
    carried: { toUpstream: 9, toClient: 10 },
  },
  ...{
    wouldHave: { decision: 'refused', why: 'queue_full' },
    wouldRetry: 'status_5xx',
    detail: 'd',
    retryEnd: 'deadline',
  },
  ...{ mintedKey: 'k', traceId: 't' },
};

test('every field of a record is copied, and nothing is left of the one before', () => {
  const copy = new RecordCopy();
  const fields = Object.keys(copy).toSorted();
  expect(fields).toEqual(Object.keys(FULL).toSorted());
  copy.write(FULL);
  expect(copy.read()).toStrictEqual(FULL);
  const { id, at, route, upstream, method, path, client, status, outcome, attempts, queued, slept, toHead, took } =
    FULL;
  const least = {
    id,
    at,
    route,
    upstream,
    method,
    path,
    client,
    status,
    outcome,
    attempts,
    queued,
    slept,
    toHead,
    took,
  };
  copy.write({ ...least, reason: undefined, retryAfter: undefined, cut: false });
  expect(copy.read()).toEqual({ ...least, cut: false });
  expect(Object.keys(copy).toSorted()).toEqual(fields);
});
