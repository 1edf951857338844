import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { ProviderFake } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

/** Refusals are 2xx; a limit shown by a bare 429; keys of at most 64 characters; error 704 while a key is in progress. */
export function startAdyen({ rate = 1000 }: { readonly rate?: number } = {}): Promise<ProviderFake> {
  const limit = new TokenBucket({ kind: 'token-bucket', rate, burst: Math.ceil(rate / 2) });
  return startProviderFake({
    refuse: ({ headers }, now) => {
      if (String(headers['idempotency-key'] ?? '').length > 64) return { status: 422, body: { errorCode: '130' } };
      return acquireFrom(limit, now) === undefined ? undefined : { status: 429 };
    },
    isOrder: ({ method }) => method === 'POST',
    keyOf: ({ headers }) => headers['idempotency-key']?.toString(),
    busy: { status: 422, body: { status: 422, errorCode: '704' } },
    answer: ({ method }) => ({ status: 200, body: method === 'POST' ? { resultCode: 'Authorised' } : {} }),
  });
}
