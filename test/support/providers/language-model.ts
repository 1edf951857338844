import type { ProviderFake, ProviderResponse } from './provider-fake.ts';
import { startProviderFake } from './provider-fake.ts';

/** Rejects requests selected by the test, for rate, credit or load; every other POST is an order. */
export function startLanguageModel(refuse: (path: string) => ProviderResponse | undefined): Promise<ProviderFake> {
  return startProviderFake({
    refuse: ({ path }) => refuse(path),
    isOrder: ({ method }) => method === 'POST',
  });
}
