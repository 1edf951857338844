import type { Provider, Said } from './provider.ts';
import { startProvider } from './provider.ts';

/** What of the hour is left, and when the next begins; in epoch seconds, as it is told. */
export interface Hour {
  left: number;
  resetAt: number;
}

const SECONDARY = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';

/**
 * An hour's quota told on every answer, 403 when it is spent, of GraphQL 200; a 403 that forbids; secondary limits, in two ways, and
 * in a third of GraphQL.
 */
export function startGitHub(hour: Hour): Promise<Provider> {
  const headers = () => ({
    'X-RateLimit-Limit': '5000',
    'X-RateLimit-Remaining': String(hour.left),
    'X-RateLimit-Reset': String(hour.resetAt),
  });
  const say = (message: string, more: Record<string, string> = {}): Said => ({
    status: 403,
    headers: { ...headers(), ...more },
    body: { message },
  });
  const sayInGraphql = (type: string, message: string): Said => ({
    status: 200,
    headers: headers(),
    body: { data: null, errors: [{ ...(type === '' ? {} : { type }), message }] },
  });
  return startProvider({
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
