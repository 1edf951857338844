import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { Provider } from './provider.ts';
import { ask, startProvider } from './provider.ts';

/** The classic API: an unpublished limit, no keys, searches by POST. GraphQL, which is refused once for every second request. */
export function startBraintree({ rate = 1000 }: { readonly rate?: number } = {}): Promise<Provider> {
  const limit = new TokenBucket({ kind: 'token-bucket', rate, burst: Math.ceil(rate / 2) });
  let queries = 0;
  return startProvider({
    refuse: ({ headers, path }, now) => {
      if (path === '/graphql') {
        queries += 1;
        const errors = [{ message: 'Too many requests', extensions: { errorClass: 'RESOURCE_LIMIT' } }];
        return queries % 2 === 1 ? { status: 200, body: { errors } } : undefined;
      }
      if (headers['x-down'] !== undefined) return { status: 503 };
      return ask(limit, now) === undefined ? undefined : { status: 429 };
    },
    isOrder: ({ method, path }) => method === 'POST' && path !== '/graphql' && !path.includes('/advanced_search'),
    answer: () => ({ status: 201 }),
  });
}
