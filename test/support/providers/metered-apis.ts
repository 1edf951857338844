/** Fakes of APIs that count units, as their documentation describes them. */
import { TokenBucket } from '../../../src/simulator/limit-models/token-bucket.ts';
import type { ProviderFake, ProviderRequest, ProviderResponse } from './provider-fake.ts';
import { startProviderFake } from './provider-fake.ts';

/** What such a fake has counted. */
export interface MeteredFake extends ProviderFake {
  /** The units of accepted requests. */
  readonly units: () => number;
}

/** Takes units from a bucket that regains `rate` units a second. A request is accepted if all of its units are there. */
class UnitBucket {
  readonly size: number;
  readonly rate: number;
  #level: number;
  #at = performance.now();

  constructor(size: number, rate: number) {
    this.size = size;
    this.rate = rate;
    this.#level = size;
  }

  get level(): number {
    const now = performance.now();
    this.#level = Math.min(this.size, this.#level + ((now - this.#at) * this.rate) / 1000);
    this.#at = now;
    return this.#level;
  }

  take(units: number): boolean {
    if (this.level < units) return false;
    this.#level -= units;
    return true;
  }

  giveBack(units: number): void {
    this.#level = Math.min(this.size, this.level + units);
  }
}

/**
 * The GraphQL Admin API (shopify.dev: API limits): a query is charged its requested cost, and what it did not use is given back. A
 * throttled query costs nothing. The body names the cost in points, which each response shows.
 */
export async function startShopifyGraphql(size: number, restoreRate: number): Promise<MeteredFake> {
  const bucket = new UnitBucket(size, restoreRate);
  let units = 0;
  const status = () => ({
    maximumAvailable: size,
    currentlyAvailable: Math.floor(bucket.level),
    restoreRate,
  });
  const requestedBy = ({ body }: ProviderRequest): number => Number(body['requested'] ?? 10);
  const actualOf = ({ body }: ProviderRequest): number => Number(body['actual'] ?? 10);
  const fake = await startProviderFake({
    refuse(asked): ProviderResponse | undefined {
      if (bucket.take(requestedBy(asked))) return undefined;
      const cost = { requestedQueryCost: requestedBy(asked), actualQueryCost: null, throttleStatus: status() };
      const errors = [{ message: 'Throttled', extensions: { code: 'THROTTLED' } }];
      return { status: 200, body: { errors, extensions: { cost } } };
    },
    answer(asked) {
      bucket.giveBack(requestedBy(asked) - actualOf(asked));
      units += actualOf(asked);
      const cost = {
        requestedQueryCost: requestedBy(asked),
        actualQueryCost: actualOf(asked),
        throttleStatus: status(),
      };
      return { status: 200, body: { data: {}, extensions: { cost } } };
    },
  });
  return { ...fake, units: () => units };
}

/**
 * A model API (platform.openai.com: Rate limits): requests and tokens by the minute, and the tokens of each response in its `usage`.
 * @param perMinute the limits; each bucket is that of `window` seconds, so that a test needs no minute
 */
export async function startTokenApi(
  perMinute: { readonly requests: number; readonly tokens: number },
  window: number,
): Promise<MeteredFake> {
  const size = (limit: number): number => (limit * window) / 60;
  const requests = new TokenBucket({
    kind: 'token-bucket',
    rate: perMinute.requests / 60,
    burst: size(perMinute.requests),
  });
  const tokens = new UnitBucket(size(perMinute.tokens), perMinute.tokens / 60);
  let units = 0;
  const tokensOf = ({ body }: ProviderRequest): number => Number(body['tokens'] ?? 100);
  const reject = (type: 'requests' | 'tokens'): ProviderResponse => ({
    status: 429,
    body: { error: { type, code: 'rate_limit_exceeded', message: `Rate limit reached on ${type} per min` } },
  });
  const fake = await startProviderFake({
    refuse(asked, now) {
      if (!requests.tryAcquire(now).accepted) return reject('requests');
      return tokens.take(tokensOf(asked)) ? undefined : reject('tokens');
    },
    answer(asked) {
      units += tokensOf(asked);
      const usage = { prompt_tokens: 1, completion_tokens: tokensOf(asked) - 1, total_tokens: tokensOf(asked) };
      return { status: 200, body: { id: 'r', choices: [{ text: 'x'.repeat(200) }], usage } };
    },
  });
  return { ...fake, units: () => units };
}

/**
 * The secondary limit of the REST API of GitHub: points a minute, one for a read and five for a write. The headers of all responses are
 * those of the primary limit.
 */
export async function startGitHubPoints(perMinute: number): Promise<MeteredFake> {
  const bucket = new UnitBucket(perMinute / 10, perMinute / 60);
  let units = 0;
  const pointsOf = ({ method }: ProviderRequest): number => (method === 'GET' ? 1 : 5);
  const headers = {
    'X-RateLimit-Limit': '5000',
    'X-RateLimit-Remaining': '4000',
    'X-RateLimit-Reset': String(Math.ceil(Date.now() / 1000) + 3600),
    'X-RateLimit-Resource': 'core',
  };
  const fake = await startProviderFake({
    refuse(asked) {
      if (bucket.take(pointsOf(asked))) return undefined;
      const message = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';
      return { status: 403, headers, body: { message } };
    },
    answer(asked) {
      units += pointsOf(asked);
      return { status: 200, headers, body: {} };
    },
  });
  return { ...fake, units: () => units };
}
