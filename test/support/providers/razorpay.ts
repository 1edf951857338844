import { Gcra } from '../../../src/simulator/limit-models/gcra.ts';
import type { ProviderFake, ProviderResponse } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

const BAD: ProviderResponse = { status: 400, body: { error: { code: 'BAD_REQUEST_ERROR' } } };

/** 5 payouts a second; each needs a key of 4 to 36 characters, which other requests ignore. */
export function startRazorpay(): Promise<ProviderFake> {
  const payouts = new Gcra({ kind: 'gcra', rate: 5, burst: 4 });
  return startProviderFake({
    refuse({ path, method, headers }, now) {
      if (path !== '/v1/payouts' || method !== 'POST') return undefined;
      if (!/^[\w -]{4,36}$/.test(String(headers['x-payout-idempotency'] ?? ''))) return BAD;
      return acquireFrom(payouts, now) === undefined ? undefined : { status: 429 };
    },
    isOrder: ({ method }) => method === 'POST',
    keyOf: ({ path, headers }) => (path === '/v1/payouts' ? headers['x-payout-idempotency']?.toString() : undefined),
  });
}
