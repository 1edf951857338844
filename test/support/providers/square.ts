import { FixedWindow } from '../../../src/simulator/limit-models/fixed-window.ts';
import type { ProviderFake } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

/** An unpublished limit, shown by RATE_LIMITED with X-RateLimit-Reset; keys are in bodies only. */
export function startSquare({ limit = 1000 }: { readonly limit?: number } = {}): Promise<ProviderFake> {
  const window = new FixedWindow({ kind: 'fixed-window', limit, window: 2000 });
  return startProviderFake({
    refuse(_, now) {
      const wait = acquireFrom(window, now);
      if (wait === undefined) return undefined;
      const reset = String(Math.ceil((Date.now() + wait) / 1000));
      const body = { errors: [{ category: 'RATE_LIMIT_ERROR', code: 'RATE_LIMITED' }] };
      return { status: 429, headers: { 'X-RateLimit-Reset': reset }, body };
    },
    isOrder: ({ method }) => method === 'POST',
    keyOf: ({ body }) => (typeof body['idempotency_key'] === 'string' ? body['idempotency_key'] : undefined),
    answer: () => ({ status: 200, body: { payment: { status: 'COMPLETED' } } }),
  });
}
