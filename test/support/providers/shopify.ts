import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { ProviderFake } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

/**
 * REST: a leaky bucket of 2/s with a burst of 40, whose level is in every response. GraphQL: its own bucket, and THROTTLED in
 * a 200; the Storefront API has only the message.
 */
export function startShopify(): Promise<ProviderFake> {
  const rest = new TokenBucket({ kind: 'token-bucket', rate: 2, burst: 40 });
  const points = new TokenBucket({ kind: 'token-bucket', rate: 10, burst: 2 });
  const fill = (now: number) => `${40 - Math.floor(rest.quota(now).remaining)}/40`;
  return startProviderFake({
    refuse({ path }, now) {
      if (path.endsWith('/graphql.json')) {
        if (acquireFrom(points, now) === undefined) return undefined;
        const isAdmin = path.startsWith('/admin/');
        const errors = [{ message: 'Throttled', ...(isAdmin ? { extensions: { code: 'THROTTLED' } } : {}) }];
        return { status: 200, body: { errors } };
      }
      const headers = { 'X-Shopify-Shop-Api-Call-Limit': '40/40', 'Retry-After': '2.0' };
      return acquireFrom(rest, now) === undefined
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
