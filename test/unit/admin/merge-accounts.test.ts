import { expect, test } from 'vitest';
import { mergeUpstreams } from '../../../src/admin/operations/merge-views.ts';
import type { ProcessView, UpstreamProcessView } from '../../../src/admin/operations/process-api.ts';
import type { AccountView } from '../../../src/core/events/gate-views.ts';
import { ZERO_REQUEST_COUNTS } from '../../../src/telemetry/metrics/request-counts.ts';
import { NO_CLIENTS } from '../../support/admin/metric-builders.ts';

function processWith(accounts: readonly AccountView[] | undefined): ProcessView {
  const upstream: UpstreamProcessView = {
    name: 'api',
    scope: 'credential',
    limits: 0,
    mostCritical: undefined,
    queued: 0,
    inFlight: 0,
    budget: 1,
    isBudgetSpent: false,
    lastFailure: undefined,
    refusals: { total: 0, clients: [] },
    nested: [],
    accounts,
  };
  return {
    counts: ZERO_REQUEST_COUNTS,
    upstreams: [upstream],
    endpoints: [],
    clients: NO_CLIENTS,
    troubled: [],
    isDegraded: false,
  };
}

function merge(...parts: readonly (readonly AccountView[] | undefined)[]): unknown {
  return mergeUpstreams(new Map(parts.map((accounts, process) => [process, processWith(accounts)])))[0]?.accounts;
}

const SERVING: AccountView = { upstream: 'api', account: 'main', isQuarantined: false, inFlight: 2, rate: 8 };

test('an account is quarantined if any process has noticed it, until the first probe of any of them', () => {
  const quarantined = { ...SERVING, isQuarantined: true, inFlight: 1 };
  expect(
    merge([SERVING], [{ ...quarantined, since: 50, probeAt: 900 }], [{ ...quarantined, since: 60, probeAt: 700 }]),
  ).toEqual([{ ...SERVING, isQuarantined: true, isCommonlyRejected: false, since: 50, probeAt: 700, inFlight: 4 }]);
});

test('unrelated clients are rejected if any process has noticed it', () => {
  const quarantined = { ...SERVING, isQuarantined: true, since: 50, probeAt: 900 };
  const [common, other] = [true, false].map((isCommonlyRejected) => ({ ...quarantined, isCommonlyRejected }));
  if (common === undefined || other === undefined) throw new Error('no account');
  expect(merge([SERVING], [other], [common])).toMatchObject([{ isCommonlyRejected: true }]);
  expect(merge([SERVING], [other])).toMatchObject([{ isCommonlyRejected: false }]);
});

test('keeps the accounts of a process that has been reloaded before the others', () => {
  expect(merge(undefined, [SERVING])).toEqual([SERVING]);
  const spare = { ...SERVING, account: 'spare' };
  expect(merge([SERVING], [SERVING, spare])).toEqual([{ ...SERVING, inFlight: 4 }, spare]);
  expect(merge([SERVING, spare], [SERVING])).toEqual([{ ...SERVING, inFlight: 4 }, spare]);
});
