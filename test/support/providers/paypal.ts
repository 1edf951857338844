import { FixedWindow } from '../../../src/simulator/limit-models/fixed-window.ts';
import type { ProviderFake } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

/** An unpublished limit, shown by RATE_LIMIT_REACHED with Retry-After; a concurrent request with the same id fails. */
export function startPayPal({ limit = 1000 }: { readonly limit?: number } = {}): Promise<ProviderFake> {
  const window = new FixedWindow({ kind: 'fixed-window', limit, window: 2000 });
  return startProviderFake({
    refuse(_, now) {
      const wait = acquireFrom(window, now);
      if (wait === undefined) return undefined;
      const headers = { 'Retry-After': String(Math.ceil(wait / 1000)) };
      return { status: 429, headers, body: { name: 'RATE_LIMIT_REACHED', message: 'Too many requests.' } };
    },
    isOrder: ({ method }) => method === 'POST',
    keyOf: ({ headers }) => headers['paypal-request-id']?.toString(),
    busy: { status: 422, body: { name: 'UNPROCESSABLE_ENTITY', details: [{ issue: 'DUPLICATE_REQUEST_ID' }] } },
    stores: (status) => status < 500,
    takes: 100,
    answer: () => ({ status: 201, body: { status: 'CREATED' } }),
  });
}
