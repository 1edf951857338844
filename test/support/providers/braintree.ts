import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { ProviderFake } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

/** The classic API: an unpublished limit, no keys, searches by POST. GraphQL rejects every second request once. */
export function startBraintree({ rate = 1000 }: { readonly rate?: number } = {}): Promise<ProviderFake> {
  const limit = new TokenBucket({ kind: 'token-bucket', rate, burst: Math.ceil(rate / 2) });
  let queries = 0;
  return startProviderFake({
    refuse: ({ headers, path }, now) => {
      if (path === '/graphql') {
        queries += 1;
        const errors = [{ message: 'Too many requests', extensions: { errorClass: 'RESOURCE_LIMIT' } }];
        return queries % 2 === 1 ? { status: 200, body: { errors } } : undefined;
      }
      if (headers['x-down'] !== undefined) return { status: 503 };
      return acquireFrom(limit, now) === undefined ? undefined : { status: 429 };
    },
    isOrder: ({ method, path }) => method === 'POST' && path !== '/graphql' && !path.includes('/advanced_search'),
    answer: () => ({ status: 201 }),
  });
}
