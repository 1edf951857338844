import { expect, test } from 'vitest';
import { emitEvents, metricsOf } from '../../support/admin/metric-builders.ts';

test('has series for each configured account from the start, and counts what its attempts showed', async () => {
  const metrics = metricsOf({
    accounts: [
      { upstream: 'api', account: 'main', isQuarantined: false, inFlight: 2, rate: 12.5 },
      { upstream: 'api', account: 'spare', isQuarantined: true, probeAt: 9000, inFlight: 0, rate: Infinity },
    ],
  });
  const result = { type: 'account-result', upstream: 'api', account: 'main' } as const;
  emitEvents(
    metrics,
    { ...result, result: 'accepted' },
    { ...result, result: 'accepted' },
    { ...result, result: 'throttled' },
  );
  const lines = (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith('tidegate_account_'));
  expect(lines).toEqual([
    'tidegate_account_requests_total{upstream="api",account="main",result="accepted"} 2',
    'tidegate_account_requests_total{upstream="api",account="main",result="throttled"} 1',
    'tidegate_account_requests_total{upstream="api",account="main",result="rejected"} 0',
    'tidegate_account_requests_total{upstream="api",account="main",result="failed"} 0',
    'tidegate_account_requests_total{upstream="api",account="spare",result="accepted"} 0',
    'tidegate_account_requests_total{upstream="api",account="spare",result="throttled"} 0',
    'tidegate_account_requests_total{upstream="api",account="spare",result="rejected"} 0',
    'tidegate_account_requests_total{upstream="api",account="spare",result="failed"} 0',
    'tidegate_account_quarantined{upstream="api",account="main"} 0',
    'tidegate_account_quarantined{upstream="api",account="spare"} 1',
    'tidegate_account_rate_requests_per_second{upstream="api",account="main"} 12.5',
    'tidegate_account_rate_requests_per_second{upstream="api",account="spare"} +Inf',
  ]);
});
