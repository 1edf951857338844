import type { ProviderFake, ProviderResponse } from './provider-fake.ts';
import { startProviderFake } from './provider-fake.ts';

/** The rest of the hourly quota, and its reset in epoch seconds, as in the response headers. */
export interface Hour {
  left: number;
  resetAt: number;
}

/** A resource with a quota of its own, for one path. */
export interface Resource {
  readonly path: string;
  /** As X-RateLimit-Resource names it. */
  readonly name: string;
  readonly limit: number;
  left: number;
}

const RATE_EXCEEDED = 'API rate limit exceeded for user ID 1.';
const SECONDARY = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';

/**
 * An hourly quota in the headers of every response; 403 when it is used up, 200 for GraphQL; a 403 for missing permission;
 * secondary limits in two forms, and in a third for GraphQL.
 * @param other a resource beside `core`, and the status of its responses once its quota is used up
 */
export function startGitHub(hour: Hour, other?: Resource & { readonly overrun: number }): Promise<ProviderFake> {
  const report = (name: string, limit: number, left: number) => ({
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(left),
    'X-RateLimit-Reset': String(hour.resetAt),
    'X-RateLimit-Resource': name,
  });
  const headers = () => report('core', 5000, hour.left);
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
      if (path === other?.path) {
        const isOverrun = other.left === 0;
        other.left = Math.max(0, other.left - 1);
        const { name, limit, left, overrun } = other;
        const status = isOverrun ? overrun : 200;
        return { status, headers: report(name, limit, left), body: { message: RATE_EXCEEDED } };
      }
      if (path.endsWith('/secondary')) return say(SECONDARY);
      if (path === '/graphql' && text.includes('costly')) return sayInGraphql('', SECONDARY);
      if (path === '/graphql' && hour.left === 0) {
        return sayInGraphql('RATE_LIMITED', RATE_EXCEEDED);
      }
      if (hour.left === 0) return say(RATE_EXCEEDED);
      hour.left -= 1;
      if (path === '/forbidden') return say('Must have admin rights to Repository.');
      return undefined;
    },
    isOrder: ({ method }) => method === 'POST',
    answer: () => ({ status: 200, headers: headers() }),
  });
}
