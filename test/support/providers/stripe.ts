import { Gcra } from '../../../src/simulator/limit-models/gcra.ts';
import type { ProviderRequest, ProviderFake, ProviderResponse } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

const ENDPOINT = 25;
const ACCOUNT = 100;

/**
 * 25/s per operation within 100/s per account, with their reasons; locked objects; results stored with their keys,
 * including a 500.
 */
export function startStripe(): Promise<ProviderFake> {
  const account = new Gcra({ kind: 'gcra', rate: ACCOUNT, burst: 10 });
  const endpoints = new Map<string, Gcra>();
  return startProviderFake({
    refuse(asked, now) {
      if (acquireFrom(account, now) !== undefined) return refusal('global-rate');
      const name = operation(asked);
      const endpoint = endpoints.get(name) ?? new Gcra({ kind: 'gcra', rate: ENDPOINT, burst: 8 });
      endpoints.set(name, endpoint);
      return acquireFrom(endpoint, now) === undefined ? undefined : refusal('endpoint-rate');
    },
    isOrder: ({ method }) => method === 'POST',
    keyOf: ({ headers }) => headers['idempotency-key']?.toString(),
    busy: { status: 409, body: { error: { type: 'idempotency_error', code: 'idempotency_key_in_use' } } },
    stores: () => true,
  });
}

/** Another request holds the object. */
export const LOCKED: ProviderResponse = {
  status: 429,
  body: { error: { type: 'invalid_request_error', code: 'lock_timeout' } },
};

export const ONE_OBJECT: ProviderResponse = refusal('resource-specific');

export const ENDPOINT_RATE: ProviderResponse = refusal('endpoint-rate');

function refusal(reason: string): ProviderResponse {
  return {
    status: 429,
    headers: { 'Stripe-Rate-Limited-Reason': reason },
    body: { error: { type: 'invalid_request_error', code: 'rate_limit' } },
  };
}

/** POST /v1/charges, GET /v1/charges/{id} for all ids. */
function operation({ method, path }: ProviderRequest): string {
  return `${method} ${path
    .split('/')
    .map((part, i) => (i === 3 ? '*' : part))
    .join('/')}`;
}
