import { Gcra } from '../../../src/simulator/limit-models/gcra.ts';
import type { Asked, Provider, Said } from './provider.ts';
import { ask, startProvider } from './provider.ts';

const ENDPOINT = 25;
const ACCOUNT = 100;

/**
 * 25/s an operation under 100/s of the account, with their reasons; objects that are locked; results stored with their keys,
 * a 500 among them.
 */
export function startStripe(): Promise<Provider> {
  const account = new Gcra({ kind: 'gcra', rate: ACCOUNT, burst: 10 });
  const endpoints = new Map<string, Gcra>();
  return startProvider({
    refuse(asked, now) {
      if (ask(account, now) !== undefined) return refusal('global-rate');
      const name = operation(asked);
      const endpoint = endpoints.get(name) ?? new Gcra({ kind: 'gcra', rate: ENDPOINT, burst: 8 });
      endpoints.set(name, endpoint);
      return ask(endpoint, now) === undefined ? undefined : refusal('endpoint-rate');
    },
    isOrder: ({ method }) => method === 'POST',
    keyOf: ({ headers }) => headers['idempotency-key']?.toString(),
    busy: { status: 409, body: { error: { type: 'idempotency_error', code: 'idempotency_key_in_use' } } },
    stores: () => true,
  });
}

/** Another request holds the object. */
export const LOCKED: Said = { status: 429, body: { error: { type: 'invalid_request_error', code: 'lock_timeout' } } };

export const ONE_OBJECT: Said = refusal('resource-specific');

export const ENDPOINT_RATE: Said = refusal('endpoint-rate');

function refusal(reason: string): Said {
  return {
    status: 429,
    headers: { 'Stripe-Rate-Limited-Reason': reason },
    body: { error: { type: 'invalid_request_error', code: 'rate_limit' } },
  };
}

/** POST /v1/charges, GET /v1/charges/{id} for all ids. */
function operation({ method, path }: Asked): string {
  return `${method} ${path
    .split('/')
    .map((part, i) => (i === 3 ? '*' : part))
    .join('/')}`;
}
