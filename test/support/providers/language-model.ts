import type { IncomingHttpHeaders } from 'node:http';
import type { ProviderFake, ProviderResponse } from './provider-fake.ts';
import { startProviderFake } from './provider-fake.ts';

/** Rejects requests selected by the test, for rate, credit or load; every other POST is an order. */
export function startLanguageModel(
  refuse: (path: string, headers: IncomingHttpHeaders) => ProviderResponse | undefined,
): Promise<ProviderFake> {
  return startProviderFake({
    refuse: ({ path, headers }) => refuse(path, headers),
    isOrder: ({ method }) => method === 'POST',
  });
}
