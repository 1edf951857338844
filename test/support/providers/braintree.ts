import { TokenBucket } from '../../../src/sim/models/token-bucket.ts';
import type { Provider } from './provider.ts';
import { ask, startProvider } from './provider.ts';

/** The classic API: an unpublished limit, no keys, searches by POST. */
export function startBraintree({ rate = 1000 }: { readonly rate?: number } = {}): Promise<Provider> {
  const limit = new TokenBucket({ kind: 'token-bucket', rate, burst: Math.ceil(rate / 2) });
  return startProvider({
    refuse: ({ headers }, now) => {
      if (headers['x-down'] !== undefined) return { status: 503 };
      return ask(limit, now) === undefined ? undefined : { status: 429 };
    },
    isOrder: ({ method, path }) => method === 'POST' && !path.includes('/advanced_search'),
    answer: () => ({ status: 201 }),
  });
}
