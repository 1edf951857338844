import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { ProviderFake, ProviderResponse } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

const PER_ITEM = 50;

/** Every request is a POST. Transactions are limited by Item; keys are in bodies. A minute lasts three seconds here. */
export function startPlaid(): Promise<ProviderFake> {
  const items = new Map<string, TokenBucket>();
  return startProviderFake({
    refuse({ path, body }, now) {
      if (path === '/item/public_token/exchange') return refusal('ADDITION_LIMIT');
      if (path !== '/transactions/sync') return undefined;
      const item = String(body['access_token']);
      const bucket = items.get(item) ?? new TokenBucket({ kind: 'token-bucket', rate: PER_ITEM / 3, burst: 5 });
      items.set(item, bucket);
      return acquireFrom(bucket, now) === undefined ? undefined : refusal('TRANSACTIONS_SYNC_LIMIT');
    },
    isOrder: ({ path }) => path.endsWith('/create'),
    keyOf: ({ body }) => (typeof body['idempotency_key'] === 'string' ? body['idempotency_key'] : undefined),
  });
}

function refusal(code: string): ProviderResponse {
  return { status: 429, body: { error_type: 'RATE_LIMIT_EXCEEDED', error_code: code, display_message: null } };
}
