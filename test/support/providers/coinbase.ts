import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { ProviderFake } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

/** 10,000 requests an hour for each key. @param left remaining requests at the start */
export function startCoinbase({ left = 10_000 }: { readonly left?: number } = {}): Promise<ProviderFake> {
  const hour = new TokenBucket({ kind: 'token-bucket', rate: 10_000 / 3600, burst: left });
  return startProviderFake({
    refuse: (_, now) =>
      acquireFrom(hour, now) === undefined
        ? undefined
        : { status: 429, body: { errors: [{ id: 'rate_limit_exceeded', message: 'Too many requests' }] } },
    isOrder: ({ method }) => method === 'POST',
  });
}
