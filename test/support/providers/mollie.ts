import { FixedWindow } from '../../../src/simulator/limit-models/fixed-window.ts';
import type { ProviderFake } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

/** An unpublished limit, shown by Retry-After; keys apply only to POST and DELETE. */
export function startMollie({ limit = 1000 }: { readonly limit?: number } = {}): Promise<ProviderFake> {
  const window = new FixedWindow({ kind: 'fixed-window', limit, window: 2000 });
  return startProviderFake({
    refuse(_, now) {
      const wait = acquireFrom(window, now);
      if (wait === undefined) return undefined;
      return { status: 429, headers: { 'Retry-After': String(Math.ceil(wait / 1000)) } };
    },
    isOrder: ({ method }) => method !== 'GET',
    keyOf: ({ method, headers }) =>
      method === 'POST' || method === 'DELETE' ? headers['idempotency-key']?.toString() : undefined,
    answer: () => ({ status: 201 }),
  });
}
