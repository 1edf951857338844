import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { Provider } from './provider.ts';
import { ask, startProvider } from './provider.ts';

/**
 * REST: a leaky bucket, 2/s and 40 deep, whose fill is told on every answer. GraphQL: a bucket of its own, and THROTTLED in a
 * 200; of the Storefront API the message alone.
 */
export function startShopify(): Promise<Provider> {
  const rest = new TokenBucket({ kind: 'token-bucket', rate: 2, burst: 40 });
  const points = new TokenBucket({ kind: 'token-bucket', rate: 10, burst: 2 });
  const fill = (now: number) => `${40 - Math.floor(rest.quota(now).remaining)}/40`;
  return startProvider({
    refuse({ path }, now) {
      if (path.endsWith('/graphql.json')) {
        if (ask(points, now) === undefined) return undefined;
        const isAdmin = path.startsWith('/admin/');
        const errors = [{ message: 'Throttled', ...(isAdmin ? { extensions: { code: 'THROTTLED' } } : {}) }];
        return { status: 200, body: { errors } };
      }
      const headers = { 'X-Shopify-Shop-Api-Call-Limit': '40/40', 'Retry-After': '2.0' };
      return ask(rest, now) === undefined
        ? undefined
        : { status: 429, headers, body: { errors: 'Exceeded 2 calls per second' } };
    },
    isOrder: ({ method }) => method === 'POST',
    answer: ({ path }) =>
      path.endsWith('/graphql.json')
        ? { status: 200, body: { data: { done: true } } }
        : { status: 200, headers: { 'X-Shopify-Shop-Api-Call-Limit': fill(performance.now()) } },
  });
}
