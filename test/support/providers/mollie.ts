import { FixedWindow } from '../../../src/simulator/limit-models/fixed-window.ts';
import type { Provider } from './provider.ts';
import { ask, startProvider } from './provider.ts';

/** An unpublished limit, told by a Retry-After; keys that count for POST and DELETE alone. */
export function startMollie({ limit = 1000 }: { readonly limit?: number } = {}): Promise<Provider> {
  const window = new FixedWindow({ kind: 'fixed-window', limit, window: 2000 });
  return startProvider({
    refuse(_, now) {
      const wait = ask(window, now);
      if (wait === undefined) return undefined;
      return { status: 429, headers: { 'Retry-After': String(Math.ceil(wait / 1000)) } };
    },
    isOrder: ({ method }) => method !== 'GET',
    keyOf: ({ method, headers }) =>
      method === 'POST' || method === 'DELETE' ? headers['idempotency-key']?.toString() : undefined,
    answer: () => ({ status: 201 }),
  });
}
