import type { ProviderFake, ProviderResponse } from './provider-fake.ts';
import { startProviderFake } from './provider-fake.ts';

/** The rest of the hourly quota, and its reset in epoch seconds, as in the response headers. */
export interface Hour {
  left: number;
  resetAt: number;
}

const SECONDARY = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';

/**
 * An hourly quota in the headers of every response; 403 when it is used up, 200 for GraphQL; a 403 for missing permission;
 * secondary limits in two forms, and in a third for GraphQL.
 */
export function startGitHub(hour: Hour): Promise<ProviderFake> {
  const headers = () => ({
    'X-RateLimit-Limit': '5000',
    'X-RateLimit-Remaining': String(hour.left),
    'X-RateLimit-Reset': String(hour.resetAt),
  });
  const say = (message: string, more: Record<string, string> = {}): ProviderResponse => ({
    status: 403,
    headers: { ...headers(), ...more },
    body: { message },
  });
  const sayInGraphql = (type: string, message: string): ProviderResponse => ({
    status: 200,
    headers: headers(),
    body: { data: null, errors: [{ ...(type === '' ? {} : { type }), message }] },
  });
  return startProviderFake({
    refuse({ path, text }) {
      if (Date.now() / 1000 >= hour.resetAt) Object.assign(hour, { left: 5000, resetAt: hour.resetAt + 3600 });
      if (path === '/secondary') return say(SECONDARY);
      if (path === '/graphql' && text.includes('costly')) return sayInGraphql('', SECONDARY);
      if (path === '/graphql' && hour.left === 0) {
        return sayInGraphql('RATE_LIMITED', 'API rate limit exceeded for user ID 1.');
      }
      if (hour.left === 0) return say('API rate limit exceeded for user ID 1.');
      hour.left -= 1;
      if (path === '/forbidden') return say('Must have admin rights to Repository.');
      return undefined;
    },
    isOrder: ({ method }) => method === 'POST',
    answer: () => ({ status: 200, headers: headers() }),
  });
}
