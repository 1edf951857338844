import { Gcra } from '../../../src/simulator/limit-models/gcra.ts';
import type { ProviderFake } from './provider-fake.ts';
import { acquireFrom, startProviderFake } from './provider-fake.ts';

/** 100 reads and 100 writes a second, each; only a 2xx is stored with its key. */
export function startCheckout(): Promise<ProviderFake> {
  const reads = new Gcra({ kind: 'gcra', rate: 100, burst: 20 });
  const writes = new Gcra({ kind: 'gcra', rate: 100, burst: 20 });
  return startProviderFake({
    refuse: ({ method }, now) =>
      acquireFrom(method === 'GET' ? reads : writes, now) === undefined ? undefined : { status: 429 },
    isOrder: ({ method }) => method === 'POST',
    keyOf: ({ headers }) => headers['cko-idempotency-key']?.toString(),
    stores: (status) => status < 300,
    answer: () => ({ status: 201, body: { approved: true } }),
  });
}
