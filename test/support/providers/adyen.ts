import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { Provider } from './provider.ts';
import { ask, startProvider } from './provider.ts';

/** Refusals are 2xx; a limit that is told by a bare 429; keys of 64 characters at most, 704 while one is under way. */
export function startAdyen({ rate = 1000 }: { readonly rate?: number } = {}): Promise<Provider> {
  const limit = new TokenBucket({ kind: 'token-bucket', rate, burst: Math.ceil(rate / 2) });
  return startProvider({
    refuse: ({ headers }, now) => {
      if (String(headers['idempotency-key'] ?? '').length > 64) return { status: 422, body: { errorCode: '130' } };
      return ask(limit, now) === undefined ? undefined : { status: 429 };
    },
    isOrder: ({ method }) => method === 'POST',
    keyOf: ({ headers }) => headers['idempotency-key']?.toString(),
    busy: { status: 422, body: { status: 422, errorCode: '704' } },
    answer: ({ method }) => ({ status: 200, body: method === 'POST' ? { resultCode: 'Authorised' } : {} }),
  });
}
