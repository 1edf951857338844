import { expect, test } from 'vitest';
import { mergeEndpoints, mergeStores } from '../../../src/admin/operations/merge-views.ts';
import type { ProcessView } from '../../../src/admin/operations/process-api.ts';
import type { EndpointFailure, EndpointView } from '../../../src/core/events/gate-views.ts';
import { NO_CLIENTS } from '../../support/admin/metric-builders.ts';
import { ZERO_REQUEST_COUNTS } from '../../../src/telemetry/metrics/request-counts.ts';

function failureAt(at: number): EndpointFailure {
  return { at, reason: 'connect', code: 'ECONNREFUSED' };
}

function merge(...parts: readonly Partial<EndpointView>[]): EndpointView | undefined {
  const views = parts.map((part): ProcessView => {
    const endpoint = { upstream: 'payments', endpoint: 'a:443', isHealthy: true, ...part };
    return {
      counts: ZERO_REQUEST_COUNTS,
      upstreams: [],
      endpoints: [endpoint],
      clients: NO_CLIENTS,
      troubled: [],
      isDegraded: false,
    };
  });
  return mergeEndpoints(views)[0];
}

test('a failure that one process recorded is over once another process gets a response from the endpoint', () => {
  expect(merge({ failure: failureAt(10) }, {})?.failure).toEqual(failureAt(10));
  expect(merge({ failure: failureAt(10) }, { workedAt: 9 })?.failure).toEqual(failureAt(10));
  expect(merge({ failure: failureAt(10) }, { workedAt: 11 })?.failure).toBeUndefined();
  expect(merge({ failure: failureAt(10) }, { failure: failureAt(12) }, { workedAt: 11 })?.failure).toEqual(
    failureAt(12),
  );
});

test('an endpoint is ejected if any process has ejected it', () => {
  expect(merge({}, { isHealthy: false })?.isHealthy).toBe(false);
});

test('the store is degraded if any process does not reach it, with the reason of that process', () => {
  const view = (isDegraded: boolean, storeProblem?: string): ProcessView => ({
    counts: ZERO_REQUEST_COUNTS,
    upstreams: [],
    endpoints: [],
    clients: NO_CLIENTS,
    troubled: [],
    isDegraded,
    storeProblem,
  });
  expect(mergeStores([view(false), view(false)])).toEqual({ degraded: false, problem: null });
  expect(mergeStores([view(false), view(true, 'ECONNREFUSED')])).toEqual({ degraded: true, problem: 'ECONNREFUSED' });
  expect(mergeStores([view(true), view(false, 'of the past')])).toEqual({ degraded: true, problem: null });
});
