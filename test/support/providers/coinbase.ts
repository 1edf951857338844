import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { Provider } from './provider.ts';
import { ask, startProvider } from './provider.ts';

/** 10,000 an hour for a key. @param left of them, at the start */
export function startCoinbase({ left = 10_000 }: { readonly left?: number } = {}): Promise<Provider> {
  const hour = new TokenBucket({ kind: 'token-bucket', rate: 10_000 / 3600, burst: left });
  return startProvider({
    refuse: (_, now) =>
      ask(hour, now) === undefined
        ? undefined
        : { status: 429, body: { errors: [{ id: 'rate_limit_exceeded', message: 'Too many requests' }] } },
    isOrder: ({ method }) => method === 'POST',
  });
}
