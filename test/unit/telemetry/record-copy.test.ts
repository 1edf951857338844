import { expect, test } from 'vitest';
import { ReusableRecord } from '../../../src/telemetry/history/reusable-record.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';

/** Every field, each with a value other than its initial one. */
const FULL: Required<RequestRecord> = {
  ...{ id: 'i', at: 1.5, route: '/r', upstream: 'u', method: 'PUT', path: '/p', client: 'c', clientName: 'n' },
  ...{
    status: 503,
    outcome: 'unknown',
    reason: 'reset',
    attempts: 2,
    polls: 3,
    queueTime: 4.5,
    sleepTime: 5.5,
    timeToHead: 6.5,
  },
  ...{
    took: 7.5,
    retryAfterSeconds: 8,
    retryAfterFrom: 'upstream',
    isTruncated: true,
    isAbandonedWrite: true,
    cause: 'ECONNRESET',
    upgradeBytes: { toUpstream: 9, toClient: 10 },
  },
  ...{
    wouldHave: { decision: 'refused', why: 'queue_full' },
    wouldRetry: 'status_5xx',
    detail: 'd',
    retryOutcome: 'deadline',
  },
  ...{
    mintedKey: 'k',
    upstreamKey: 'u',
    delivery: '01a2',
    write: '0f0f',
    traceId: 't',
    spanId: 's',
    xRequestId: 'x',
    fallbackFrom: 'f',
    endpoint: 'e',
    bytesIn: 11,
    bytesOut: 12,
  },
};

test('copies every field of a record, and keeps no field of the previous one', () => {
  const copy = new ReusableRecord();
  const fields = Object.keys(copy).toSorted();
  expect(fields).toEqual(Object.keys(FULL).toSorted());
  copy.overwrite(FULL);
  expect(copy.copy()).toStrictEqual(FULL);
  const {
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
    queueTime,
    sleepTime,
    timeToHead,
    took,
  } = FULL;
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
    queueTime,
    sleepTime,
    timeToHead,
    took,
  };
  copy.overwrite({ ...least, reason: undefined, retryAfterSeconds: undefined, isTruncated: false });
  expect(copy.copy()).toEqual({ ...least, isTruncated: false });
  expect(Object.keys(copy).toSorted()).toEqual(fields);
});
