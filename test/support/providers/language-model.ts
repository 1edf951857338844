import type { Provider, Said } from './provider.ts';
import { startProvider } from './provider.ts';

/** Refuses what a test says, for its rate, for money or for load; every other POST is an order. */
export function startLanguageModel(refuse: (path: string) => Said | undefined): Promise<Provider> {
  return startProvider({
    refuse: ({ path }) => refuse(path),
    isOrder: ({ method }) => method === 'POST',
  });
}
